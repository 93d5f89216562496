// fc: a LUN of a Fibre Channel array. The fabric's zoning and the array's masking have made it
// visible to this node; nothing is attached by a call.
// Source: kubernetes pkg/volume/fc/fc.go, attacher.go, fc_util.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attacher/device_finder.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/volume_plugin.h"
#include "plugins/attach_limit_settings.h"
#include "plugins/device_attachments.h"
#include "plugins/device_volume.h"
#include "plugins/fc_disk.h"

namespace volumed {

struct FcSettings {
  DeviceVolumeSettings device = {};
  // Outlives the plugin. Null: no volume is attached, as nothing waits for devices.
  DeviceFinder* devices = nullptr;
  FcDiskPlaces places = {};
  const AttachLimitSettings* limits = nullptr;  // outlives the plugin; null: none
};

// WaitForAttach finds the LUN's multipath device or disk, MountDevice mounts it at
// <root>/plugins/kubernetes.io/fc/<wwn>-lun-<lun> or ../fc/<wwid>, and pods get binds;
// UnmountDevice takes the multipath device and its disks away from the node. With volumeMode Block
// the pod gets the device.
//
// Differences from kubelet's, on purpose: a disk is proven by sysfs and by its opened descriptor,
// not by its links' names; nothing is polled every ten seconds; what is still in use is not deleted
// below whoever uses it; a volume can be grown; its filesystem is measured by statfs.
class FcPlugin final : public VolumePlugin,
                       public PersistentVolumePlugin,
                       public AttachableVolumePlugin,
                       public BlockVolumePlugin,
                       public NodeExpandableVolumePlugin {
 public:
  explicit FcPlugin(FcSettings settings) : settings_(std::move(settings)) {}

  Status Init(PluginContext context) override;
  std::string GetPluginName() const override { return kFcPluginName; }
  // "[500a0982991b8dc5]:0", "[3600508b400105e21..]".
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  bool RequiresRemount(const VolumeSpec&) const override { return false; }
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // With the names that the place of the device's mount says. FailedPrecondition, not applied,
  // where nothing of fc is mounted at the volume's path.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return true; }
  // "fc:<first port>" or "fc:<first WWID>": what hangs with the array's port hangs together.
  std::string FaultDomain(const VolumeSpec& spec) const override;

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  AttachableVolumePlugin* AsAttachable() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  BlockVolumePlugin* AsBlock() override { return this; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override { return this; }
  VolumePluginWithAttachLimits* AsWithAttachLimits() override { return &limits_; }

  std::vector<AccessMode> GetAccessModes() const override {
    return {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany};
  }
  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<bool> CanAttach(const VolumeSpec& spec) const override { return CanSupport(spec); }
  BulkVolumeVerifier* AsBulkVolumeVerifier() override { return &verifier_; }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override { return CanSupport(spec); }

  bool RequiresFsResize() const override { return true; }
  // The array has made the LUN larger: its disks are asked for their size again, and the filesystem
  // grows. Errors: those of ScsiDevices::RescanSize and GrowDeviceVolume.
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  // With the names that the place of the pod's node says.
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

 private:
  const FcSettings settings_;
  VolumeHost* host_ = nullptr;
  std::unique_ptr<FcDisks> disks_;  // from Init on
  NodeByNodeVerifier verifier_{*this};
  ConfiguredAttachLimits limits_{*this, settings_.limits};
};

}  // namespace volumed
