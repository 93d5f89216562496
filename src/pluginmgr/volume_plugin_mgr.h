// VolumePluginMgr: owns the plugins and finds the one for a spec or a name.
// Source: kubernetes pkg/volume/plugins.go@v1.36.2 (VolumePluginMgr); the error texts are
// kubelet's. FindCreatablePluginBySpec, FindVolumePluginWithLimitsBySpec and
// ListVolumePluginWithLimits are of v1.21.1.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "pluginmgr/dynamic_plugin_prober.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: InitPlugins once; afterwards any. Blocks: as the prober does, and Init of a plugin that
// it brings; without a prober never.
//
// Pointers that are found stay owned by the manager and live as long: a probed plugin that was
// removed or replaced is not found any more, and works on for those who hold it.
class VolumePluginMgr {
 public:
  VolumePluginMgr();
  ~VolumePluginMgr();
  VolumePluginMgr(const VolumePluginMgr&) = delete;
  VolumePluginMgr& operator=(const VolumePluginMgr&) = delete;

  // Names must be qualified names and unique. All errors are gathered into one; the plugins that
  // are good stay loaded. Errors: InvalidArgument, not applied.
  Status InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins, VolumeHost& host)
      EXCLUDES(mu_);
  // The same with plugins that come and go. `prober` may be null. One that cannot start, and a
  // probed plugin that cannot be used, is logged and does without; neither is an error here.
  Status InitPlugins(std::vector<std::unique_ptr<VolumePlugin>> plugins,
                     std::unique_ptr<DynamicPluginProber> prober, VolumeHost& host, Logger& log)
      EXCLUDES(mu_);

  // Waits until what plugins look up at the host is there; there is nothing to wait for if the host
  // is no kubelet's. Blocks: until the deadline. Errors: those of KubeletHost::WaitForCacheSync;
  // FailedPrecondition, not applied, before InitPlugins.
  Status Run(const CallOptions& call);

  // Each Find... asks the prober for news first. Errors, not applied: NotFound "no volume plugin
  // matched", with the prober's reason appended if a driver is missing; FailedPrecondition
  // "multiple volume plugins matched: a,b"; InvalidArgument "could not find plugin because volume
  // spec is nil" for one that was moved from.
  Result<VolumePlugin*> FindPluginBySpec(const VolumeSpec& spec) const EXCLUDES(mu_);
  // Errors, not applied: NotFound "no volume plugin matched name: <n>"; FailedPrecondition
  // "multiple volume plugins matched: a and b" if a static and a probed one have it.
  Result<VolumePlugin*> FindPluginByName(const std::string& name) const EXCLUDES(mu_);

  // The same for what takes a volume away: if a probed plugin was removed, or is not there yet, one
  // is found that can take away what it has made. NotFound has the prober's reason appended.
  Result<VolumePlugin*> FindPluginForTeardown(const std::string& name) const EXCLUDES(mu_);

  // NotFound if the plugin lacks the capability: "no persistent volume plugin matched" (then
  // recyclable, provisionable, deletable, creatable), "no plugin with limits found".
  Result<PersistentVolumePlugin*> FindPersistentPluginBySpec(const VolumeSpec& spec) const;
  Result<PersistentVolumePlugin*> FindPersistentPluginByName(const std::string& name) const;
  Result<RecyclableVolumePlugin*> FindRecyclablePluginBySpec(const VolumeSpec& spec) const;
  // The plugin of that name, or the one that makes the volumes of a provisioner of that name
  // (VolumePlugin::AsProvisionerOf).
  Result<ProvisionableVolumePlugin*> FindProvisionablePluginByName(const std::string& name) const
      EXCLUDES(mu_);
  // Why no plugin makes the volumes of a provisioner of that name, for people; empty if no plugin
  // knows (VolumePlugin::WhyNoProvisionerOf).
  std::string WhyNoProvisioner(const std::string& name) const EXCLUDES(mu_);
  Result<ProvisionableVolumePlugin*> FindCreatablePluginBySpec(const VolumeSpec& spec) const;
  Result<DeletableVolumePlugin*> FindDeletablePluginBySpec(const VolumeSpec& spec) const;
  Result<DeletableVolumePlugin*> FindDeletablePluginByName(const std::string& name) const;
  Result<VolumePluginWithAttachLimits*> FindVolumePluginWithLimitsBySpec(
      const VolumeSpec& spec) const;
  // Of the plugins that InitPlugins was given; probed ones are not asked.
  std::vector<VolumePluginWithAttachLimits*> ListVolumePluginWithLimits() const EXCLUDES(mu_);
  std::vector<DeviceMountableVolumePlugin*> ListDeviceMountablePlugins() const EXCLUDES(mu_);

  // Null, and no error, if the plugin lacks the capability. The BySpec forms of the first two also
  // return null if CanAttach or CanDeviceMount says no.
  Result<AttachableVolumePlugin*> FindAttachablePluginBySpec(const VolumeSpec& spec) const;
  Result<AttachableVolumePlugin*> FindAttachablePluginByName(const std::string& name) const;
  Result<DeviceMountableVolumePlugin*> FindDeviceMountablePluginBySpec(
      const VolumeSpec& spec) const;
  Result<DeviceMountableVolumePlugin*> FindDeviceMountablePluginByName(
      const std::string& name) const;
  // Null also if no plugin matches. For a spec that only the node expands
  // (VolumeSpec::IsKubeletExpandable) it is a plugin that does nothing.
  Result<ExpandableVolumePlugin*> FindExpandablePluginBySpec(const VolumeSpec& spec) const;
  Result<ExpandableVolumePlugin*> FindExpandablePluginByName(const std::string& name) const;
  Result<NodeExpandableVolumePlugin*> FindNodeExpandablePluginBySpec(const VolumeSpec& spec) const;
  Result<NodeExpandableVolumePlugin*> FindNodeExpandablePluginByName(const std::string& name) const;
  Result<BlockVolumePlugin*> FindMapperPluginBySpec(const VolumeSpec& spec) const;
  Result<BlockVolumePlugin*> FindMapperPluginByName(const std::string& name) const;

  // The static ones by name, then the probed ones that are known by now; the prober is not asked.
  std::vector<std::string> PluginNames() const EXCLUDES(mu_);

 private:
  using Plugins = std::map<std::string, std::unique_ptr<VolumePlugin>>;

  Status InitOne(VolumePlugin& plugin) const REQUIRES(mu_);
  void RefreshProbedPlugins() const REQUIRES(mu_);
  void Apply(ProbeEvent event) const REQUIRES(mu_);
  void Retire(Plugins::iterator probed) const REQUIRES(mu_);
  // ": reason", or nothing.
  std::string Why(const std::string& driver) const REQUIRES(mu_);

  std::unique_ptr<WrapperVolumes> wrapper_volumes_;
  const std::unique_ptr<ExpandableVolumePlugin> kubelet_expandable_;

  // One mutex for all of it, as look-ups change what is probed.
  mutable Mutex mu_;
  VolumeHost* host_ GUARDED_BY(mu_) = nullptr;
  Logger* log_ GUARDED_BY(mu_) = nullptr;
  std::unique_ptr<DynamicPluginProber> prober_ GUARDED_BY(mu_);
  Plugins plugins_ GUARDED_BY(mu_);
  mutable Plugins probed_ GUARDED_BY(mu_);
  mutable std::vector<std::unique_ptr<VolumePlugin>> retired_ GUARDED_BY(mu_);
  // Of the retired ones those whose driver is gone: the last of each name.
  mutable std::map<std::string, VolumePlugin*> removed_ GUARDED_BY(mu_);
};

}  // namespace volumed
