// ProvisionableVolumePlugin: volumes that are made when a claim asks for one.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (ProvisionableVolumePlugin, Provisioner).
//
// Threads: any, after Init, unless said otherwise. plugin() is the plugin that has the capability.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kube/objects.h"
#include "os/kernel.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// What an error of a Provisioner is about (Error::about) if it is certain who has asked in vain:
// the parameters of the StorageClass, or the claim, with its size.
inline constexpr const char* kAboutClassParameters = "parameters of the StorageClass";
inline constexpr const char* kAboutClaim = "what the claim asks for";

// Threads: one call at a time.
class Provisioner {
 public:
  virtual ~Provisioner() = default;
  // The volume as Provision makes it, so that it can be recorded before. Blocks: never; no effect.
  // Errors: those of what the claim or its class asks for in vain; Unimplemented, not applied, for
  // a plugin that cannot tell. This is not of the seed, whose controller keeps no intents.
  virtual Result<PersistentVolume> Plan() {
    return Error::NotApplied(Code::kUnimplemented,
                             "the plugin does not say beforehand which volume it makes");
  }
  // What a repeated Provision needs besides the planned volume, to ask for exactly the same again:
  // it is on record with the plan, and comes back as VolumeOptions::plan. It has no secrets. "":
  // the volume says all. REQUIRES: Plan() has succeeded. Blocks: never.
  virtual std::string PlanText() { return ""; }
  // Makes the storage (again: what is there already is taken), and answers the PersistentVolume
  // that stands for it. `selected_node` is null unless the claim waits for its first consumer.
  // Blocks: until the deadline.
  virtual Result<PersistentVolume> Provision(const NodeObject* selected_node,
                                             const std::vector<TopologyTerm>& topologies,
                                             const CallOptions& call) = 0;
  // The volume that a Provision of this plan may have left, so that it can be taken back; nullopt:
  // certainly there is none. Storage whose name only its maker knows may have to be made once more
  // to learn it. Blocks: until the deadline. Errors: it is not known what is there.
  virtual Result<std::optional<PersistentVolume>> FindMade(const PersistentVolume& planned,
                                                           const CallOptions& /*call*/) {
    return std::optional(planned);
  }
  // Takes back what FindMade() has answered, which nobody has used. What is not its own stays, and
  // is no error. Blocks: until the deadline.
  virtual Status Undo(const PersistentVolume& /*made*/, const CallOptions& /*call*/) {
    return Error::NotApplied(Code::kUnimplemented,
                             "the plugin does not take back what it has made");
  }
};

class ProvisionableVolumePlugin {
 public:
  virtual ~ProvisionableVolumePlugin() = default;
  virtual VolumePlugin& plugin() = 0;
  // Blocks: never.
  virtual Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) = 0;
  // Whether its volumes may have something in them from the beginning (VolumeOptions::content). The
  // others refuse a claim that asks for that.
  virtual bool TakesContents() const { return false; }
  // The device of a volume that is cloned by this: nobody else may have it meanwhile, as it is cut.
  // Empty: none. Blocks: never.
  virtual UniqueVolumeName DeviceOfContent(const VolumeOptions& /*options*/) const { return {}; }
};

}  // namespace volumed
