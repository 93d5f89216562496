// iscsi: a LUN of an iSCSI target, by open-iscsi, as a filesystem or a raw block device.
// Source: kubernetes pkg/volume/iscsi/iscsi.go@v1.36.2.
#pragma once

#include <memory>
#include <optional>
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
#include "plugins/iscsi_mounts.h"

namespace volumed {

// The plugin keeps a copy; what the pointers lead to outlives it.
struct IscsiSettings {
  DeviceVolumeSettings formats = {};
  DeviceFinder* devices = nullptr;  // outlives the plugin; null: no volume is attached
  IscsiOptions options = {};
  const AttachLimitSettings* limits = nullptr;  // outlives the plugin; null: no limits
};

// The node logs in to a disk when it is waited for; the disk is mounted once for the node below
// <root>/plugins/kubernetes.io/iscsi, and bound from there into each pod; the node logs out when
// that mount goes. The volume may hang with its portal: FaultDomain() names it.
class IscsiPlugin final : public PlainVolumePlugin,
                          public PersistentVolumePlugin,
                          public AttachableVolumePlugin,
                          public BlockVolumePlugin,
                          public NodeExpandableVolumePlugin {
 public:
  explicit IscsiPlugin(IscsiSettings settings) : settings_(std::move(settings)) {}

  Status Init(PluginContext context) override;
  std::string GetPluginName() const override { return kIscsiPluginName; }
  // "<portal>:<iqn>:<lun>", with the portal as it is written in the spec.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  bool CanSupport(const VolumeSpec& spec) const override;
  // Errors: those of IscsiVolumeOf. The bind is read-only if the source, the claim or the volume's
  // own mount options say so.
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // Constructs the volume from the name of the directory at which the disk is mounted. Errors:
  // NotFound, not applied, if no disk is mounted. The volume is an inline one with a single portal;
  // secrets, the initiator's name and the type of the filesystem are not told by a name.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  bool SupportsSELinuxContextMount(const VolumeSpec&) const override { return true; }
  // "iscsi:<first portal>"; empty for a spec that is no valid iSCSI volume.
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
  // The attacher and the detacher can be made without a DeviceFinder, but each of their calls that
  // needs the disk is then Unimplemented, not applied.
  Result<std::unique_ptr<Attacher>> NewAttacher() override;
  Result<std::unique_ptr<Detacher>> NewDetacher() override;
  Result<bool> CanAttach(const VolumeSpec& spec) const override { return CanSupport(spec); }
  // False without a DeviceFinder.
  bool VerifiesAttachments() const override { return initiator_ != nullptr; }
  BulkVolumeVerifier* AsBulkVolumeVerifier() override { return &verifier_; }
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override { return CanSupport(spec); }

  // Errors: those of IscsiVolumeOf.
  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  // Constructs the volume from the pod's device node, whose directory names it. Errors: NotFound,
  // not applied, if the node is none of an iSCSI volume.
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

  bool RequiresFsResize() const override { return true; }
  // Asks the target for the disk's size on every path, and then grows the filesystem. (Kubelet does
  // neither.) Errors: those of ScsiDevices::RescanSize and GrowDeviceVolume; FailedPrecondition,
  // not applied, if no session has the disk.
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;

 private:
  IscsiParts parts() { return {*host_, settings_.formats, initiator_.get()}; }

  const IscsiSettings settings_;
  std::unique_ptr<IscsiInitiator> initiator_;
  NodeByNodeVerifier verifier_{*this};
  ConfiguredAttachLimits limits_{*this, settings_.limits};
};

}  // namespace volumed
