#include "csi/go_json.h"

#include <cstddef>

#include "base/printable_text.h"

namespace volumed {
namespace {

// Of one byte; '\0' if it has none.
char ShortEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
      return c;
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return '\0';
  }
}

void AppendByte(char c, std::string& out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (const char escape = ShortEscape(c); escape != '\0') {
    out += '\\';
    out += escape;
  } else if (byte >= 0x20 && c != '<' && c != '>' && c != '&') {
    out += c;
  } else {
    out += "\\u00";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

}  // namespace

void AppendGoJsonText(std::string_view text, std::string& out) {
  constexpr std::string_view kLineSeparator = "\xe2\x80\xa8";
  constexpr std::string_view kParagraphSeparator = "\xe2\x80\xa9";
  out += '"';
  while (!text.empty()) {
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      AppendByte(text[0], out);
      text.remove_prefix(1);
      continue;
    }
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      out += "\\ufffd";
    } else if (character == kLineSeparator) {
      out += "\\u2028";
    } else if (character == kParagraphSeparator) {
      out += "\\u2029";
    } else {
      out += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
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
