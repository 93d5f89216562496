#include "unit/metrics/text_format.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace volumed {
namespace {

bool IsNameChar(char c, bool first) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  return letter || (!first && c >= '0' && c <= '9');
}

std::string TakeName(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && IsNameChar(text[length], length == 0)) ++length;
  std::string name(text.substr(0, length));
  text.remove_prefix(length);
  return name;
}

bool Take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

// The rest after the closing quote, if the value is well-formed.
bool TakeQuoted(std::string_view& text) {
  if (!Take(text, "\"")) return false;
  while (!text.empty() && text[0] != '"') {
    if (text[0] == '\\') {
      text.remove_prefix(1);
      if (text.empty() || (text[0] != '\\' && text[0] != '"' && text[0] != 'n')) return false;
    }
    text.remove_prefix(1);
  }
  return Take(text, "\"");
}

// The family that a sample belongs to: for a histogram, without its suffix.
std::string FamilyOf(const ParsedExposition& parsed, const std::string& name) {
  for (const std::string_view suffix : {"_bucket", "_sum", "_count"}) {
    if (!name.ends_with(suffix)) continue;
    const std::string base = name.substr(0, name.size() - suffix.size());
    const auto type = parsed.types.find(base);
    if (type != parsed.types.end() && type->second == "histogram") return base;
  }
  return name;
}

std::optional<std::set<std::string>> TakeLabels(std::string_view& text) {
  std::set<std::string> names;
  if (!Take(text, "{")) return names;
  while (!Take(text, "}")) {
    if (!names.empty() && !Take(text, ",")) return std::nullopt;
    const std::string label = TakeName(text);
    if (label.empty() || !names.insert(label).second) return std::nullopt;
    if (!Take(text, "=") || !TakeQuoted(text)) return std::nullopt;
  }
  return names;
}

class Reader {
 public:
  ParsedExposition Read(std::string_view text) {
    if (!text.empty() && text.back() != '\n') Problem("no newline at the end", text);
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size() - 1);
      ReadLine(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    return std::move(parsed_);
  }

 private:
  void Problem(const std::string& what, std::string_view line) {
    parsed_.problems.push_back(what + ": " + std::string(line.substr(0, 120)));
  }

  void ReadLine(std::string_view line) {
    if (line.starts_with("#")) {
      ReadHeader(line);
    } else {
      ReadSample(line);
    }
  }

  void ReadHeader(std::string_view line) {
    std::string_view rest = line;
    const bool help = Take(rest, "# HELP ");
    if (!help && !Take(rest, "# TYPE ")) return Problem("comment", line);
    const std::string name = TakeName(rest);
    if (name.empty() || !Take(rest, " ") || rest.empty()) return Problem("bad header", line);
    if (help) {
      if (!helped_.insert(name).second) Problem("family twice", line);
      return;
    }
    if (helped_.count(name) == 0) Problem("TYPE without HELP before it", line);
    if (rest != "counter" && rest != "gauge" && rest != "histogram") Problem("bad type", line);
    if (!parsed_.types.emplace(name, rest).second) Problem("family twice", line);
    current_ = name;
  }

  void ReadSample(std::string_view line) {
    std::string_view rest = line;
    const std::string name = TakeName(rest);
    if (name.empty()) return Problem("no name", line);
    auto labels = TakeLabels(rest);
    if (!labels) return Problem("bad labels", line);
    const std::string series(line.substr(0, line.size() - rest.size()));
    const std::string family = FamilyOf(parsed_, name);
    if (family != current_) Problem("sample outside of its family", line);
    labels->erase("le");
    if (const auto known = parsed_.label_names.find(family);
        known != parsed_.label_names.end() && known->second != *labels) {
      Problem("other labels than its family's", line);
    }
    parsed_.label_names[family] = *labels;
    if (!Take(rest, " ")) return Problem("no value", line);
    double value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (error != std::errc() || end != rest.data() + rest.size()) Problem("bad value", line);
    if (!parsed_.values.emplace(series, rest).second) Problem("series twice", line);
  }

  ParsedExposition parsed_;
  std::set<std::string> helped_;
  std::string current_;
};

}  // namespace

ParsedExposition ParseExposition(std::string_view text) { return Reader().Read(text); }

}  // namespace volumed
