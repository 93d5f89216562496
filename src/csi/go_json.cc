#include "csi/go_json.h"

#include "base/json_text.h"

namespace volumed {

void AppendGoJsonText(std::string_view text, std::string& out) {
  out += '"';
  AppendJsonText(text, JsonStyle::kGo, out);
  out += '"';
}

std::string GoJsonObject(const StringMap& texts) {
  std::string out = "{";
  for (const auto& [key, text] : texts) {
    if (out.size() > 1) out += ',';
    AppendGoJsonText(key, out);
    out += ':';
    AppendGoJsonText(text, out);
  }
  return out + "}";
}

}  // namespace volumed
