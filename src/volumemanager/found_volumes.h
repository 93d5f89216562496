// What a plugin makes of a volume that no record knows, from what is on disk: which volume of the
// node it is, so that the pod that comes back, and others that share it, mean the same one.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconstruct_common.go@v1.36.2
// (reconstructVolume).
#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/volume_spec.h"
#include "volumehost/kubelet_paths.h"

namespace volumed {

struct FoundVolume {
  // As the plugin constructs it: with the names that its places have, and without what they do not
  // tell.
  VolumeSpec spec;
  // As DesiredStateOfWorld names it. Empty for one that every pod has for itself.
  UniqueVolumeName unique_name = {};
  bool has_device = false;
  std::string global_map_path = {};  // of a block volume
};

// Threads: any. Blocks: until the call's deadline: the plugin may look at mounts, links and nodes.
// Nullopt where the plugin has no devices: nothing is to be found out.
// Errors, not applied: what FindPluginForTeardown and the plugin say; NotFound where nothing tells
// any more which volume it was, as after a reboot.
Result<std::optional<FoundVolume>> ConstructFoundVolume(const VolumePluginMgr& plugins,
                                                        const KubeletPaths& paths,
                                                        const KubeletPaths::PodVolume& found,
                                                        const CallOptions& call);

}  // namespace volumed
