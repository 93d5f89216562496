#include "csi/plugin_info.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/printable_text.h"
#include "base/strings.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

constexpr size_t kNameBytes = 63;
constexpr size_t kShown = 80;

bool IsAlphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Error Invalid(std::string what) {
  return Error::NotApplied(Code::kInvalidArgument, std::move(what));
}

// "v1.2.3-beta" is 1.2.3. Source: k8s.io/apimachinery pkg/util/version (ParseGeneric).
std::optional<PluginVersion> ParseVersion(const std::string& text) {
  std::string_view rest = TrimSpace(text);
  if (!rest.empty() && rest[0] == 'v') rest.remove_prefix(1);
  rest = rest.substr(0, rest.find_first_not_of("0123456789."));
  const std::vector<std::string> parts = Split(rest, '.');
  if (parts.size() < 2) return std::nullopt;
  PluginVersion version{text, {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::optional<uint64_t> number = ParseUint64(parts[i]);
    if (!number) return std::nullopt;
    if (i < version.numbers.size()) version.numbers[i] = *number;
  }
  return version;
}

// Whether `path` is below `directory`, of which it is told the rest.
std::optional<std::string> Rest(const std::string& directory, const std::string& path) {
  const std::string prefix = directory == "/" ? "/" : directory + "/";
  if (!path.starts_with(prefix)) return std::nullopt;
  return path.substr(prefix.size());
}

}  // namespace

Status CheckCsiDriverName(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= kNameBytes && IsAlphanumeric(name.front()) &&
                    IsAlphanumeric(name.back()) &&
                    std::all_of(name.begin(), name.end(),
                                [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.'; });
  if (fits) return OkStatus();
  return Invalid(
      Quoted(name, kShown) +
      " is no name of a CSI driver: 63 letters, digits, '-' and '.' at most, and a letter "
      "or digit first and last");
}

Result<PluginVersion> HighestSupportedVersion(const std::vector<std::string>& versions) {
  // A driver that offers a later major version beside 1.x is called by 1.x.
  std::optional<PluginVersion> highest;
  std::optional<PluginVersion> later;
  for (const std::string& text : versions) {
    const std::optional<PluginVersion> version = ParseVersion(text);
    if (!version) continue;
    std::optional<PluginVersion>& best = version->numbers[0] > 1 ? later : highest;
    if (!best || *best < *version) best = version;
  }
  if (!highest) highest = later;
  if (versions.empty()) return Invalid("the driver names no versions that it supports");
  if (!highest) {
    return Invalid("of the versions that the driver supports none is a version: " +
                   Quoted(Join(versions, ", "), kShown));
  }
  if (highest->numbers[0] != 1) {
    return Invalid("the highest version that the driver supports is " +
                   Quoted(highest->text, kShown) + "; only 1.x is used");
  }
  return *highest;
}

Result<SafePath> PlaceInOneOf(const std::vector<std::string>& directories,
                              const std::string& path) {
  if (const Status valid = ValidateSafePath({path, ""}); !valid.ok()) {
    return Invalid("the endpoint " + Quoted(path, kShown) + " is no absolute, clean path");
  }
  SafePath place;
  for (const std::string& directory : directories) {
    const std::optional<std::string> rest = Rest(directory, path);
    if (rest && directory.size() > place.root.size()) place = {directory, *rest};
  }
  if (!place.root.empty()) return place;
  return Error::NotApplied(Code::kPermissionDenied,
                           "the endpoint " + Quoted(path, kShown) +
                               " lies outside the directories in which drivers are looked for: " +
                               Join(directories, ", ") + " (csi-endpoint-dirs)")
      .About(kCsiSocketRefused);
}

}  // namespace volumed
