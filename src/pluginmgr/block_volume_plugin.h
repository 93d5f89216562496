// BlockVolumePlugin: volumes that pods can have as a raw block device.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (BlockVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>

#include "base/result.h"
#include "blockmapper/block_volume_mapper.h"
#include "os/kernel.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

class BlockVolumePlugin {
 public:
  virtual ~BlockVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Neither has side effects. NewBlockVolumeUnmapper works from what is on disk. The plugin
  // outlives what is made. `pod` is null for a device at a place that a CO gave
  // (operation/given_place.h): nobody asks such a mapper for the places of a pod, and a plugin that
  // needs a pod answers InvalidArgument, not applied.
  virtual Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                          PodPtr pod) = 0;
  virtual Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(
      const SpecName& spec, const PodUid& pod) = 0;
  // The same for a volume of which the record says what it was.
  virtual Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapperOf(
      const VolumeSpec& recorded, const PodUid& pod) {
    return NewBlockVolumeUnmapper(recorded.name(), pod);
  }
  // What the volume was, from the pod's link to it, which is in `map_path`. Blocks: until the
  // deadline.
  virtual Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                                      const SafePath& map_path,
                                                      const CallOptions& call) = 0;
};

}  // namespace volumed
