// What is mounted below the root and on no record, as the operations have to know of it: which
// volume each is, as far as anything tells it.
//
// Threads: any. Blocks: never. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "operation/unrecorded_mounts.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// Of pods' volumes also those that have no device, as a driver may be told of their places, or of
// the handle of an inline volume. REQUIRES: LookAtNode has filled in `found`.
std::vector<UnrecordedMount> FindUnrecordedMounts(const FoundAtStart& found,
                                                  const KubeletPaths& paths);

// Where something of such a volume, or of such a device, may be mounted: there, or below it. Pure.
std::vector<std::string> MountPlacesOf(const KubeletPaths::PodVolume& volume,
                                       const KubeletPaths& paths);
std::vector<std::string> MountPlacesOf(const KubeletPaths::DeviceMount& device,
                                       const KubeletPaths& paths);

// Block volumes that pods have of devices which are on record, though the pods' own rows are not.
// REQUIRES: the same.
std::vector<KubeletPaths::PodVolume> FindLostBlockVolumes(const FoundAtStart& found);

}  // namespace volumed
