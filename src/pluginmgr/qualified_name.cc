#include "pluginmgr/qualified_name.h"

#include <algorithm>
#include <string_view>

namespace volumed {
namespace {

constexpr size_t kMaxNameLength = 63;
constexpr size_t kMaxSubdomainLength = 253;

constexpr char kNameRule[] =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation "
    "is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr char kQualifiedRule[] =
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used "
    "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain "
    "prefix and '/' (e.g. 'example.com/MyName')";
constexpr char kSubdomainRule[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

// Not <cctype>: that depends on the locale.
bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsAlnum(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

bool IsName(std::string_view text) {
  return !text.empty() && IsAlnum(text.front()) && IsAlnum(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsLabel(std::string_view text) {
  return !text.empty() && IsLower(text.front()) && IsLower(text.back()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLower(c) || c == '-'; });
}

bool IsSubdomain(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string TooLong(size_t limit) {
  return "must be no more than " + std::to_string(limit) + " characters";
}

}  // namespace

std::vector<std::string> QualifiedNameProblems(const std::string& value) {
  if (std::count(value.begin(), value.end(), '/') > 1) return {kQualifiedRule};
  std::vector<std::string> problems;
  const size_t slash = value.find('/');
  if (slash != std::string::npos) {
    const std::string_view prefix = std::string_view(value).substr(0, slash);
    if (prefix.empty()) {
      problems.push_back("prefix part must be non-empty");
    } else {
      if (prefix.size() > kMaxSubdomainLength) {
        problems.push_back("prefix part " + TooLong(kMaxSubdomainLength));
      }
      if (!IsSubdomain(prefix)) problems.push_back(std::string("prefix part ") + kSubdomainRule);
    }
  }
  const std::string_view name =
      std::string_view(value).substr(slash == std::string::npos ? 0 : slash + 1);
  if (name.empty()) problems.push_back("name part must be non-empty");
  if (name.size() > kMaxNameLength) problems.push_back("name part " + TooLong(kMaxNameLength));
  if (!IsName(name)) problems.push_back(std::string("name part ") + kNameRule);
  return problems;
}

}  // namespace volumed
