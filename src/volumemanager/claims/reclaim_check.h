// Whether anything on this node can do what a volume's reclaim policy asks.
#pragma once

#include <string>

#include "kube/objects.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volume/claim_binding.h"

namespace volumed {

// For a volume whose claim is gone: why nothing on this node can do this to its storage; "" if
// something can. Threads: any. Blocks: never.
std::string WhyNotReclaimed(const VolumePluginMgr& plugins, const PersistentVolume& volume,
                            ReclaimAction action);

}  // namespace volumed
