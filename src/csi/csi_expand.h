// Growth of CSI volumes on the node: NodeExpandVolume.
// Source: kubernetes pkg/volume/csi/expander.go@v1.36.2.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "csi/csi_context.h"
#include "pluginmgr/node_expandable_volume_plugin.h"

namespace volumed {

// What the node and the driver say of a volume's size after a growth.
struct CsiGrowth {
  int64_t old_bytes = 0;  // before, as far as is known
  int64_t wanted_bytes = 0;
  int64_t said_bytes = 0;                    // by the driver; 0: it does not say
  std::optional<int64_t> device_bytes = {};  // of the disk that is mounted or mapped; nullopt: none
  bool filesystem_is_smaller = false;        // than that disk, by more than it cannot use
};
// Why the growth is not proven, in words that follow "and"; nullopt: it is. Where there is a disk,
// it decides. It may be smaller than the volume, by what an encryption keeps for itself: it counts
// if it is larger than the volume was, and the driver says the size. Threads: any. Blocks: never.
std::optional<std::string> WhyNotGrown(const CsiGrowth& growth);

// NodeExpand asks the driver, with the pod's path of the volume, and proves by the node that it has
// grown, and that what was mounted at that path and at the staging path is mounted still. An RPC
// that did not end, or of which nobody knows how it ended, is maybe applied, and so never taken for
// a refusal, which kubelet does. Errors: Unimplemented, not applied, without EXPAND_VOLUME;
// InvalidArgument, not applied, for a volume that is no persistent one; Unavailable, not applied,
// without its Secret; those of the driver; that of DriverLied(). The context and the plugin outlive
// what is made. Threads: any. Blocks: until the deadline.
std::unique_ptr<NodeExpandableVolumePlugin> MakeCsiExpander(const CsiContext& context,
                                                            VolumePlugin& plugin);

}  // namespace volumed
