// ProvisionableVolumePlugin: volumes that are made when a claim asks for one.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (ProvisionableVolumePlugin, Provisioner).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: one call at a time.
class Provisioner {
 public:
  virtual ~Provisioner() = default;
  // Makes the storage, and answers the PersistentVolume that stands for it. `selected_node` is null
  // unless the claim waits for its first consumer. Blocks: until the deadline.
  virtual Result<PersistentVolume> Provision(const NodeObject* selected_node,
                                             const std::vector<TopologyTerm>& topologies,
                                             const CallOptions& call) = 0;
};

class ProvisionableVolumePlugin {
 public:
  virtual ~ProvisionableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Blocks: never.
  virtual Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) = 0;
};

}  // namespace volumed
