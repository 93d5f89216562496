// Small helpers for text. All are pure; threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace volumed {

// Returns every part, the empty ones too: "a,,b," has four. An empty text is one empty part.
std::vector<std::string> Split(std::string_view text, char separator);
// As Split(), but it leaves out the empty parts, so that an empty text has none.
std::vector<std::string> SplitNonEmpty(std::string_view text, char separator);

// Returns the parts with `separator` between any two. `Parts` is any range of things that convert
// to std::string_view.
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

// Returns the text without leading and trailing blanks, tabs, newlines and carriage returns. This
// and the next two return views into `text`.
std::string_view TrimSpace(std::string_view text);
// Returns the rest, if `text` begins (ends) so; nullopt if it does not.
std::optional<std::string_view> StripPrefix(std::string_view text, std::string_view prefix);
std::optional<std::string_view> StripSuffix(std::string_view text, std::string_view suffix);

// Reads the whole text as a decimal number: no blanks, no '+', nothing behind it, and '-' for the
// signed one alone. It is nullopt for anything else, and for a number that does not fit.
std::optional<int64_t> ParseInt64(std::string_view text);
std::optional<uint64_t> ParseUint64(std::string_view text);

// Returns a plugin's name as a directory name: "kubernetes.io/empty-dir" is
// "kubernetes.io~empty-dir". The second gives the name back, unless the name itself has a '~'.
// Source: k8s.io/utils/strings/escape.go (EscapeQualifiedName).
std::string EscapeQualifiedName(std::string_view name);
std::string UnescapeQualifiedName(std::string_view name);

}  // namespace volumed
