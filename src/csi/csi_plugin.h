// CsiPlugin: "kubernetes.io/csi", the volumes of all CSI drivers.
// Source: kubernetes pkg/volume/csi/csi_plugin.go@v1.36.2.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "csi/csi_attach.h"
#include "csi/csi_context.h"
#include "kube/objects.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"

namespace volumed {

class CsiStorage;

// One plugin for all drivers, as kubelet's. What a driver can do is asked per volume, of what the
// driver once said: so a driver that is away changes no answer. Stage is MountDevice(), publish is
// SetUp() or MapPodDevice(), ControllerPublish is Attach().
//
// There are deliberate differences from kubelet. The agent attaches itself where nobody else does.
// After each RPC the mount table has to show what the driver said, or it is an error whose outcome
// is open. What may have been changed is taken back by the same driver alone, and by what the
// record of the volume says; the file vol_data.json is the second witness.
//
// Its parts are in files of their own: csi_attach, csi_devices, csi_mounts, csi_block, csi_expand,
// csi_metrics, csi_find, csi_storage.
//
// Init() and the end of its life are on the control thread.
class CsiPlugin final : public VolumePlugin,
                        public PersistentVolumePlugin,
                        public AttachableVolumePlugin,
                        public BlockVolumePlugin,
                        public VolumePluginWithAttachLimits {
 public:
  explicit CsiPlugin(CsiPluginParts parts);
  ~CsiPlugin() override;

  // ---- VolumePlugin ----
  Status Init(PluginContext context) override;
  std::string GetPluginName() const override;
  // "<driver>^<handle>"; an inline volume's is its name, for each pod has one of its own.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  // Not those of the driver that is served here.
  bool CanSupport(const VolumeSpec& spec) const override;
  // Whether its CSIDriver says requiresRepublish.
  bool RequiresRemount(const VolumeSpec& spec) const override;
  // Errors: InvalidArgument, not applied, for another plugin's volume; that of NoPod if there is no
  // pod.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounterOf(const VolumeSpec& recorded,
                                                    const PodUid& pod) override;
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  // Whether its CSIDriver says seLinuxMount.
  bool SupportsSELinuxContextMount(const VolumeSpec& spec) const override;
  // "csi:<driver>", or "" for a volume that is another plugin's.
  std::string FaultDomain(const VolumeSpec& spec) const override;
  bool WorksInLane(const VolumeSpec& spec) const override { return CanSupport(spec); }
  // The driver's CSIDriver, the VolumeAttachment of the volume, and the secrets that it names.
  std::set<ObjectKey> DependsOn(const VolumeSpec& spec) const override;

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  AttachableVolumePlugin* AsAttachable() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override { return expander_.get(); }
  BlockVolumePlugin* AsBlock() override { return this; }
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override;
  std::string WhyNoProvisionerOf(const std::string& provisioner) const override;
  DeletableVolumePlugin* AsDeletable() override;
  ExpandableVolumePlugin* AsExpandable() override;
  VolumePluginWithAttachLimits* AsWithAttachLimits() override { return this; }

  std::vector<AccessMode> GetAccessModes() const override;

  // ---- Attaching: csi_attach ----
  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<bool> CanAttach(const VolumeSpec& spec) const override;
  bool VerifyExhaustedResource(const VolumeSpec& spec) const override;
  Result<std::map<std::string, int64_t>> GetVolumeLimits() const override;
  std::string VolumeLimitKey(const VolumeSpec& spec) const override;

  // ---- Staging: csi_devices ----
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  // Of persistent volumes, also if the driver stages nothing, as kubelet's.
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override;

  Result<std::vector<UnrecordedDevice>> FindDevices(const CallOptions& call) override;

  // ---- Raw block devices: csi_block ----
  // Errors of all three, before anything is made or removed: InvalidArgument, not applied, for a
  // volume with HasSharedBlockDir().
  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapperOf(const VolumeSpec& recorded,
                                                                        const PodUid& pod) override;
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

 private:
  const CsiPluginParts parts_;
  // Set by Init().
  std::optional<CsiContext> context_;
  std::unique_ptr<CsiAttaching> attaching_;
  std::unique_ptr<NodeExpandableVolumePlugin> expander_;
  std::unique_ptr<CsiStorage> storage_;
};

}  // namespace volumed
