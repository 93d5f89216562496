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
};

}  // namespace volumed
