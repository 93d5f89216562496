// NodeExpandableVolumePlugin: volumes that are made larger on the node.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (NodeExpandableVolumePlugin, NodeResizeOptions).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/quantity.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// How far the volume is on the node. (Of the seed; v1.36 tells it by which path is set.)
enum class CsiVolumePhase { kStaged, kPublished };
// "staged", "published".
std::string_view CsiVolumePhaseName(CsiVolumePhase phase);

// Which volume is to be made larger, where it is on the node, and from which size to which.
struct NodeResizeOptions {
  VolumeSpec spec;
  std::string device_path;  // the device on the node, or a driver's id of it
  // The global mount; the pod's, if there is none or if the plugin needs a pod.
  SafePath device_mount_path;
  SafePath device_stage_path;
  Quantity new_size;
  Quantity old_size;
  CsiVolumePhase csi_volume_phase = CsiVolumePhase::kPublished;
  PodUid pod = {};  // that has it; empty if none is needed
  // What was done, in words for the event. May be empty.
  std::function<void(const std::string&)> note = {};
};

class NodeExpandableVolumePlugin {
 public:
  virtual ~NodeExpandableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  virtual bool RequiresFsResize() const = 0;
  // Whether the volume is made larger where a pod has it, and not at its device's one mount. Pure.
  virtual bool NeedsPod(const VolumeSpec& /*spec*/) const { return false; }
  // True: the volume is proven to have the new size now; false: it is to be asked again.
  // Idempotent. Blocks: until the deadline, but for the growth of a filesystem. Errors:
  // ClassifyExpansionFailure() says what each means.
  virtual Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) = 0;
};

}  // namespace volumed
