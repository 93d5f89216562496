// hostPath: a path of the node itself, given to a pod as it is.
// Source: kubernetes pkg/volume/hostpath/host_path.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pluginmgr/recyclable_volume_plugin.h"
#include "pluginmgr/volume_options.h"

namespace volumed {

inline constexpr char kHostPathPluginName[] = "kubernetes.io/host-path";

struct HostPathSettings {
  // The recycler pod's template and timeouts, and whether volumes are provisioned.
  VolumeConfig config;
  // Absolute, clean directories. Volumes may be deleted only below them, and are made below the
  // first. If there are none, volumes are neither deleted nor made. (Kubelet's are fixed:
  // /tmp/hostpath_pv, and whatever contains "/tmp/".)
  std::vector<std::string> roots;
  // Runs recycler pods; outlives the plugin. Null: volumes are not recycled.
  RecyclerPodRunner* recycler_pods = nullptr;
};

// Nothing is mounted and nothing lies below the agent's root: set-up only checks the type of the
// path, or makes what is missing (directories 0755, files 0644). Links are followed, as in kubelet.
// The path may lie on a filesystem that hangs: FaultDomain() names it.
//
// Recycling and deleting follow no link and cross no mount, and never touch "/", the agent's own
// root, a directory that contains it, or one that lies in it.
class HostPathPlugin final : public PlainVolumePlugin,
                             public PersistentVolumePlugin,
                             public RecyclableVolumePlugin,
                             public DeletableVolumePlugin,
                             public ProvisionableVolumePlugin {
 public:
  explicit HostPathPlugin(HostPathSettings settings = {}) : settings_(std::move(settings)) {}

  std::string GetPluginName() const override { return kHostPathPluginName; }
  // The path as it is written in the spec. Errors: InvalidArgument, not applied, if the spec is no
  // hostPath.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // The mounter's SetUp fails with InvalidArgument, not applied, for a relative path and one with
  // "..", and with FailedPrecondition, not applied, "hostPath type check failed: ...", if something
  // else is there than the spec's type says; without a type nothing is looked at. Its SetUpAt is
  // InvalidArgument: the place is fixed.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // Nothing on disk tells the path, so the volume's name is used as the path, as in kubelet.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  // The path without empty and "." elements; links are not followed.
  std::string FaultDomain(const VolumeSpec& spec) const override;
  bool HandsOutWhatIsThere() const override { return true; }

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  RecyclableVolumePlugin* AsRecyclable() override { return this; }
  DeletableVolumePlugin* AsDeletable() override { return this; }
  ProvisionableVolumePlugin* AsProvisionable() override { return this; }

  std::vector<AccessMode> GetAccessModes() const override { return {AccessMode::kReadWriteOnce}; }
  // Errors: InvalidArgument for a path that must not be touched.
  Status CanRecycle(const VolumeSpec& spec) const override;
  // Errors: InvalidArgument if it is not a persistent hostPath volume, or must not be touched;
  // Unimplemented if nothing runs recycler pods; those of the recycler.
  Status Recycle(const std::string& pv_name, const VolumeSpec& spec,
                 const RecycleEventRecorder& recorder, const CallOptions& call) override;
  // Errors, not applied: InvalidArgument if it is not a persistent hostPath volume; those of
  // NewHostPathDeleter, among them PermissionDenied if the path is outside the configured roots.
  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override;
  // Errors, not applied: FailedPrecondition, "provisioning in volume plugin
  // \"kubernetes.io/host-path\" is disabled", if the settings say so or there is no root;
  // InvalidArgument if the class has a parameter.
  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override;

 private:
  const HostPathSettings settings_;
};

}  // namespace volumed
