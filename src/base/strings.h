// Small helpers for text. All are pure; threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// Every part, the empty ones too; an empty text is one empty part.
std::vector<std::string> Split(std::string_view text, char separator);
// Without the empty parts.
std::vector<std::string> SplitNonEmpty(std::string_view text, char separator);

// `Parts` is any range of things that convert to std::string_view.
template <typename Parts>
std::string Join(const Parts& parts, std::string_view separator) {
  std::string joined;
  bool first = true;
  for (const auto& part : parts) {
    if (!first) joined += separator;
    joined += std::string_view(part);
    first = false;
  }
  return joined;
}

// Without leading and trailing blanks, tabs, newlines and carriage returns.
std::string_view TrimSpace(std::string_view text);
// The rest, if `text` begins (ends) so.
std::optional<std::string_view> StripPrefix(std::string_view text, std::string_view prefix);
std::optional<std::string_view> StripSuffix(std::string_view text, std::string_view suffix);

// The whole text as a decimal number: no blanks, no '+', nothing behind it. Nothing when it does
// not fit.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);

// A plugin's name as a directory name: "kubernetes.io/empty-dir" is "kubernetes.io~empty-dir".
// Source: k8s.io/utils/strings/escape.go (EscapeQualifiedName).
std::string EscapeQualifiedName(std::string_view name);
std::string UnescapeQualifiedName(std::string_view name);

}  // namespace volumed
