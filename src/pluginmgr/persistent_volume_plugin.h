// PersistentVolumePlugin: volumes that keep data beyond the life of a pod.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (PersistentVolumePlugin).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <vector>

#include "kube/objects.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

class PersistentVolumePlugin {
 public:
  virtual ~PersistentVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // In which ways such a volume can be used. Blocks: never.
  virtual std::vector<AccessMode> GetAccessModes() const = 0;
};

}  // namespace volumed
