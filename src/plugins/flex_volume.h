// flexVolume: volumes of a driver, which is an executable on the node that is called for each step.
// Source: kubernetes pkg/volume/flexvolume/plugin.go@v1.36.2.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pluginmgr/attachable_volume_plugin.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "plugins/attach_limit_settings.h"
#include "plugins/flex_volume_driver.h"

namespace volumed {

// One driver. FlexVolumeProber has asked it once by `init` what it can do, before this object is
// made. A volume of a driver that attaches is mounted once for the node, at
// <root>/plugins/kubernetes.io/flexvolume/<driver>/mounts/<volume>, and bound into pods; any other
// driver mounts each pod's volume itself. If a driver does not support a step, the agent does it
// instead.
//
// There are deliberate differences from kubelet. Every call has a deadline. A driver is run only if
// nobody but root can change it. `expandvolume` is called here, since there is no controller. A
// bind for a pod that only reads is read-only. What a driver mounted that was removed since is
// unmounted without it (its volumes are not detached, since that needs the driver).
class FlexVolumePlugin final : public PlainVolumePlugin,
                               public PersistentVolumePlugin,
                               public AttachableVolumePlugin,
                               public ExpandableVolumePlugin {
 public:
  // The driver is shared by this object and by what it has made. `limits` outlives this object.
  FlexVolumePlugin(std::shared_ptr<FlexVolumeDriver> driver, FlexCapabilities capabilities,
                   DeviceVolumeSettings settings, const AttachLimitSettings* limits = nullptr);

  // "vendor/driver". It is the name by which specs select the driver.
  std::string GetPluginName() const override { return driver_->name(); }
  // Returns FlexVolumeName; kubelet ignores what the driver answers to getvolumename.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Errors: InvalidArgument, not applied, for a volume of another driver; that of NoPod if there is
  // no pod, whose names the driver gets.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // Constructs an inline volume of the driver without options, since nothing on disk tells them.
  // Without its options the name of the volume is another one than before: FlexVolumeName has a
  // digest of them.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  // The domain is the driver's: its calls hang together.
  std::string FaultDomain(const VolumeSpec&) const override {
    return FlexFaultDomain(driver_->name());
  }

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  // A driver whose `init` says attach=false is neither attachable nor device-mountable: it mounts
  // each pod's volume itself.
  AttachableVolumePlugin* AsAttachable() override { return capabilities_.attach ? this : nullptr; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return AsAttachable(); }
  ExpandableVolumePlugin* AsExpandable() override { return this; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override { return &node_expander_; }
  VolumePluginWithAttachLimits* AsWithAttachLimits() override {
    return capabilities_.attach ? &limits_ : nullptr;
  }

  std::vector<AccessMode> GetAccessModes() const override {
    return {AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany};
  }

  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  // Every other place that shows the device mounted there; empty if nothing is mounted.
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  Result<bool> CanAttach(const VolumeSpec& spec) const override { return CanSupport(spec); }
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override { return CanSupport(spec); }
  // True until the driver has said that it does not know isattached.
  bool VerifiesAttachments() const override {
    return !driver_->IsKnownUnsupported(FlexCommand::kIsAttached);
  }

  // Calls expandvolume; a driver that does not know it needs no such step. Answers the driver's
  // size if it tells one. Sizes are sent in bytes. Errors: InvalidArgument, not applied, for a
  // volume of another driver; those of FlexVolumeDriver::Call.
  Result<Quantity> ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                      const Quantity& old_size, const CallOptions& call) override;
  bool RequiresFsResize() const override { return capabilities_.requires_fs_resize; }

 private:
  // Both steps are done on the node: expandvolume and then, if the driver wants it, expandfs or its
  // replacement.
  class NodeExpander final : public NodeExpandableVolumePlugin {
   public:
    explicit NodeExpander(FlexVolumePlugin& owner) : owner_(owner) {}
    VolumePlugin& plugin() override { return owner_; }
    bool RequiresFsResize() const override { return true; }
    // Errors, besides the driver's: Internal, maybe applied, if the filesystem did not grow;
    // Internal, maybe applied, also if expandvolume answers less than was asked for; DataLoss if
    // the device has no filesystem. What fails after the driver's expandvolume has succeeded is
    // maybe applied, and not applied if the driver has no expandvolume. Without options.device_path
    // the device is what is mounted at the device's place.
    Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

   private:
    Result<bool> GrowFilesystem(const NodeResizeOptions& options, const CallOptions& call) const;
    Result<bool> GrowFilesystemItself(const NodeResizeOptions& options, const std::string& device,
                                      const CallOptions& call) const;
    FlexVolumePlugin& owner_;
  };

  const std::shared_ptr<FlexVolumeDriver> driver_;
  const FlexCapabilities capabilities_;
  const DeviceVolumeSettings settings_;
  NodeExpander node_expander_{*this};
  ConfiguredAttachLimits limits_;
};

}  // namespace volumed
