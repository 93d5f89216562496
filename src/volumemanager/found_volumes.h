// Lets a plugin find out from the disk which volume of the node an unrecorded volume is, so that
// the pod that comes back, and other pods that share it, mean the same one.
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
  // The volume as the plugin constructs it: it has the names of its places, and lacks what these do
  // not tell.
  VolumeSpec spec;
  // The name that DesiredStateOfWorld gives it. Empty for a volume that pods do not share.
  UniqueVolumeName unique_name = {};
  bool has_device = false;
  std::string global_map_path = {};  // for a block volume
  std::string driver_domain = {};    // as in WantedVolume
};

// Threads: any. Blocks: until the call's deadline; the plugin may look at mounts, links and nodes.
// nullopt if the plugin has no devices, so that there is nothing to find out.
// Errors, not applied: those of FindPluginForTeardown and the plugin; NotFound if nothing tells any
// more which volume it was, as after a reboot.
Result<std::optional<FoundVolume>> ConstructFoundVolume(const VolumePluginMgr& plugins,
                                                        const KubeletPaths& paths,
                                                        const KubeletPaths::PodVolume& found,
                                                        const CallOptions& call);

}  // namespace volumed
