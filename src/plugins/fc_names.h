// The names of a Fibre Channel volume: ports of an array and a LUN, or the World Wide Identifiers
// of its disks. Its directory has these names, so that what was mounted or bound there is
// recognised without a record.
// Source: kubernetes pkg/volume/fc/fc.go, fc_util.go@v1.36.2 (GetVolumeName, makePDNameInternal,
// volumeSpecToMounter).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

// The name that kubelet gives the plugin.
inline constexpr char kFcPluginName[] = "kubernetes.io/fc";

// Either ports with a LUN, or WWIDs: see ValidateFcNames. It is a value.
struct FcNames {
  std::vector<std::string> target_wwns;  // "500a0982991b8dc5"
  std::optional<int32_t> lun;            // with target_wwns
  // "3600508b400105e210000900000490000"; blanks are replaced by '_'.
  std::vector<std::string> wwids;
  friend bool operator==(const FcNames&, const FcNames&) = default;
};

// All of these functions are pure.

// Errors, not applied: InvalidArgument if there are neither ports nor WWIDs, or both, if there are
// ports without a LUN, or if a name cannot be part of a path.
Status ValidateFcNames(const FcNames& names);
// "[500a0982991b8dc5]:0"; "[3600508b400105e210000900000490000]".
std::string FcVolumeName(const FcNames& names);
// "500a0982991b8dc5-lun-0"; "3600508b400105e210000900000490000".
std::string FcDirectoryName(const FcNames& names);
// The inverse of FcDirectoryName. WWIDs are separated if all of them are hexadecimal; otherwise the
// whole name is one WWID.
FcNames ParseFcDirectoryName(const std::string& name);

// Where the devices of Fibre Channel lie, as a KubeletPaths::DeviceLayout:
//   <root>/plugins/kubernetes.io/fc/<names>                      a device, mounted for all pods
//   <root>/plugins/kubernetes.io/fc/volumeDevices/<names>/<uid>  a block volume's device, bound
std::optional<KubeletPaths::DeviceMount> FcDeviceAt(const std::vector<std::string>& elements);

}  // namespace volumed
