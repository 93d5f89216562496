// fc: a LUN of a Fibre Channel array. The fabric's zoning and the array's masking make it visible
// to this node; no call attaches it.
// Source: kubernetes pkg/volume/fc/fc.go, attacher.go, fc_util.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attacher/device_finder.h"
#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "plugins/attach_limit_settings.h"
#include "plugins/device_attachments.h"
#include "plugins/fc_disk.h"

namespace volumed {

struct FcSettings {
  DeviceVolumeSettings device = {};
  // Outlives the plugin. Null: no volume is attached, since nothing waits for devices.
  DeviceFinder* devices = nullptr;
  FcDiskPlaces places = {};
  FcLooks looks = {};
  const AttachLimitSettings* limits = nullptr;  // outlives the plugin; null: no limits
};

// WaitForAttach finds the LUN's multipath device or disk, MountDevice mounts it at
// <root>/plugins/kubernetes.io/fc/<wwn>-lun-<lun> or ../fc/<wwid>, and pods get binds of it.
// UnmountDevice removes the multipath device and its disks from the node. With volumeMode Block the
// pod gets the device.
//
// There are deliberate differences from kubelet. A disk is proven by sysfs and by its opened
// descriptor, not by the names of its links. Nothing is polled every ten seconds. What is still in
// use is not deleted under its user. A volume can be grown. Its filesystem is measured by statfs.
class FcPlugin final : public PlainVolumePlugin,
                       public PersistentVolumePlugin,
                       public AttachableVolumePlugin,
                       public BlockVolumePlugin,
                       public NodeExpandableVolumePlugin {
 public:
  explicit FcPlugin(FcSettings settings) : settings_(std::move(settings)) {}

  Status Init(PluginContext context) override;
  std::string GetPluginName() const override { return kFcPluginName; }
  // "[500a0982991b8dc5]:0" or "[3600508b400105e21..]".
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Errors: those of FcNamesOf. The bind is read-only if the claim, the inline source or the
  // volume's own mount options say so.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The spec has the names that the place of the device's mount tells. Errors: FailedPrecondition,
  // not applied, if no fc device is mounted at the volume's path.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return true; }
  // "fc:<first port>" or "fc:<first WWID>": volumes behind one port of the array hang together.
  // "fc:" alone for a spec that is no valid fc volume.
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
  // Nothing is attached by a call (Attach and Detach do nothing): the attacher is needed for
  // WaitForAttach and MountDevice, the detacher for UnmountDevice.
  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<bool> CanAttach(const VolumeSpec& spec) const override { return CanSupport(spec); }
  BulkVolumeVerifier* AsBulkVolumeVerifier() override { return &verifier_; }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  // Every other place that shows the device mounted there; empty if nothing is mounted.
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override { return CanSupport(spec); }

  bool RequiresFsResize() const override { return true; }
  // For a LUN that the array has made larger: asks its disks for their size again, and grows the
  // filesystem. Errors: those of ScsiDevices::RescanSize and GrowDeviceVolume. It first waits for
  // the device as WaitForAttach does, which may scan the SCSI hosts.
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  // The spec has the names that the place of the pod's device node tells.
  // Errors: those of FindGlobalMapPathUUIDFromPod and FcNamesAt.
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

 private:
  const FcSettings settings_;
  std::unique_ptr<FcDisks> disks_;  // set by Init
  NodeByNodeVerifier verifier_{*this};
  ConfiguredAttachLimits limits_{*this, settings_.limits};
};

}  // namespace volumed
