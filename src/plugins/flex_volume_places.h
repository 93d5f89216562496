// Where the devices of flexVolume drivers lie: below the name of all of them,
//   <root>/plugins/kubernetes.io/flexvolume/<driver>/mounts/<volume>
// "vendor/driver" keeps its slash.
// Source: kubernetes pkg/volume/flexvolume/plugin.go@v1.36.2 (getDeviceMountPath).
//
// Threads: any. Blocks: never.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "volumehost/kubelet_paths.h"

namespace volumed {

SafePath FlexDeviceMountDir(const KubeletPaths& paths, const std::string& driver,
                            const SpecName& volume);

// The inverse, as a KubeletPaths::DeviceLayout; the plugin that it names is the driver. `elements`
// are those below <root>/plugins. nullopt: the path is no such place.
std::optional<KubeletPaths::DeviceMount> FlexDeviceAt(const std::vector<std::string>& elements);

}  // namespace volumed
