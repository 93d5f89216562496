// ExpandableVolumePlugin: volumes whose storage can be made larger.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (ExpandableVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include "base/quantity.h"
#include "base/result.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Storage that was made larger.
struct ExpandedStorage {
  Quantity size;            // what it has now; not less than was asked for
  bool needs_node = false;  // the volume has to be made larger on the node, too
};

class ExpandableVolumePlugin {
 public:
  virtual ~ExpandableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Makes the storage larger and returns the size that the volume has afterwards. Blocks: until the
  // deadline.
  virtual Result<Quantity> ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                              const Quantity& old_size,
                                              const CallOptions& call) = 0;
  // Whether the filesystem is to be grown on the node afterwards.
  virtual bool RequiresFsResize() const = 0;

  // The rest is not of the seed, whose controller knows all of this by the plugin's name.
  //
  // Whether this node makes the storage of such a volume larger; false: somebody else does, if
  // anybody. Constant as long as what is known of the volume's driver. Blocks: never.
  virtual bool ExpandsStorage(const VolumeSpec&) const { return false; }
  // Whether nobody may have the volume meanwhile: nothing of it is attached to a node. Blocks:
  // never.
  virtual bool ExpandsOnlyUnused(const VolumeSpec&) const { return false; }
  // ExpandVolumeDevice, with what is to follow for this volume. Idempotent. Blocks: until the
  // deadline. Errors: InvalidArgument, NotFound and OutOfRange, not applied: not to this size.
  virtual Result<ExpandedStorage> ExpandStorage(const VolumeSpec& spec, const Quantity& new_size,
                                                const Quantity& old_size, const CallOptions& call) {
    ASSIGN_OR_RETURN(const Quantity size, ExpandVolumeDevice(spec, new_size, old_size, call));
    return ExpandedStorage{size, RequiresFsResize()};
  }
};

}  // namespace volumed
