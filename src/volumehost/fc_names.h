// How a Fibre Channel volume is called: by ports of an array and a LUN, or by the World Wide
// Identifiers of its disks. Its directory is named after that, so that what was mounted or bound
// there is known again without a record.
// Source: kubernetes pkg/volume/fc/fc.go, fc_util.go@v1.36.2 (GetVolumeName, makePDNameInternal,
// volumeSpecToMounter).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace volumed {

// The name that kubelet gives the plugin.
inline constexpr char kFcPluginName[] = "kubernetes.io/fc";

struct FcNames {
  std::vector<std::string> target_wwns;  // "500a0982991b8dc5"
  std::optional<int32_t> lun;            // with target_wwns
  std::vector<std::string> wwids;        // "3600508b400105e210000900000490000"; blanks are '_'
  friend bool operator==(const FcNames&, const FcNames&) = default;
};

// All of these are pure.

// Errors, not applied: InvalidArgument for neither or both of the two, ports without a LUN, and for
// a name that cannot be part of a path.
Status ValidateFcNames(const FcNames& names);
// "[500a0982991b8dc5]:0"; "[3600508b400105e210000900000490000]".
std::string FcVolumeName(const FcNames& names);
// "500a0982991b8dc5-lun-0"; "3600508b400105e210000900000490000".
std::string FcDirectoryName(const FcNames& names);
// The inverse. WWIDs are told apart where all of them are hexadecimal; else the whole is one.
FcNames ParseFcDirectoryName(const std::string& name);

}  // namespace volumed
