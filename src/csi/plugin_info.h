// What a plugin says of itself when it registers, held against what kubelet takes.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "csi/csi_caller.h"
#include "os/safe_path.h"

namespace volumed {

// All are pure; threads: any. Errors, not applied: InvalidArgument, unless it says otherwise.
//
// Source: CSI spec v1.13.0, GetPluginInfoResponse.name.
Status CheckCsiDriverName(const std::string& name);

struct PluginVersion {
  std::string text;                   // as it was given
  std::array<uint64_t, 3> numbers{};  // further ones do not count
  friend auto operator<=>(const PluginVersion& a, const PluginVersion& b) {
    return a.numbers <=> b.numbers;
  }
  friend bool operator==(const PluginVersion& a, const PluginVersion& b) {
    return a.numbers == b.numbers;
  }
};

// The highest of the versions; those that are none, and those above 1.x, are passed over. Only 1.x
// is taken. Source: kubernetes apimachinery pkg/util/version/version.go@v1.36.3
// (HighestSupportedVersion).
Result<PluginVersion> HighestSupportedVersion(const std::vector<std::string>& versions);

// The path below the longest of these directories that it lies in. Errors, not applied:
// InvalidArgument for a path that is not absolute and clean; PermissionDenied, about
// kCsiSocketRefused, for one that lies in none of them.
Result<SafePath> PlaceInOneOf(const std::vector<std::string>& directories, const std::string& path);

}  // namespace volumed
