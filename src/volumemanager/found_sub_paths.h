// Volumes of which a container has a part (subPath) mounted, though the whole is mounted no more: a
// part alone says neither its plugin nor which volume it is.
//
// Threads: any. Blocks: never. Errors: none.
#pragma once

#include <set>
#include <vector>

#include "base/ids.h"
#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/found_at_start.h"

namespace volumed {

// Those that are on no record. REQUIRES: the records and `mounted` are in `found`.
std::set<PodVolumeKey> FindSubPathsAlone(const MountListing& listing, const KubeletPaths& paths,
                                         const FoundAtStart& found);

// The same volumes with the plugins that their directories name; one that has no directory any more
// has none.
std::vector<KubeletPaths::PodVolume> WithPlugins(
    std::set<PodVolumeKey> volumes, const std::vector<KubeletPaths::PodVolume>& directories);

}  // namespace volumed
