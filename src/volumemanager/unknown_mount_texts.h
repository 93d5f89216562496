// What people are told of the mounts that a start found on no record: what each is, and where it is
// mounted, for that is what they look at and unmount.
//
// Pure; threads: any.
#pragma once

#include <string>
#include <vector>

#include "volumehost/kubelet_paths.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// "volume V of pod UID: PATH", "device of volume V of PLUGIN: PATH", each with all its paths, those
// of the pods first; a device that pods have as it is names them ("..of PLUGIN, which pod UID
// has"). The path is that of the mount table, else the place that such a mount has. REQUIRES:
// LookAtNode has filled in `found`.
std::vector<std::string> TextsOfUnknownMounts(
    const FoundAtStart& found, const KubeletPaths& paths,
    const std::vector<KubeletPaths::PodVolume>& of_pods,
    const std::vector<KubeletPaths::DeviceMount>& of_devices);

}  // namespace volumed
