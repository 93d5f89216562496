// PoolPlugin: the volumes of this node's own pools, as a volume plugin. A volume is a
// PersistentVolume with a csi source whose driver is this agent's own, and whose handle is the id
// that the pool gave it. An image has a loop device, which is formatted, checked and mounted once
// for the node as any other device (pluginmgr/device_volume.h), or is given to pods as it is. A
// directory or subvolume is bound where the device of an image would be mounted: so the mount table
// says that the node has it, and what shows it. A listed export is mounted there.
//
// A pod's inline volume of that driver is refused: a generic ephemeral volume is what is meant.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mounter/nfs_mount.h"
#include "pluginmgr/block_volume_plugin.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/device_mountable_volume_plugin.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/node_expandable_volume_plugin.h"
#include "pluginmgr/persistent_volume_plugin.h"
#include "pluginmgr/plain_volume_plugin.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pool/pool_volumes.h"

namespace volumed {

inline constexpr char kPoolPluginName[] = "volumed.io/pool";

// What the plugin is made from. All outlive it.
struct PoolPluginParts {
  PoolVolumes& volumes;
  // By which PersistentVolumes and classes name the pools: "pool.volumed.io". Empty: no volume is
  // the plugin's, and it only takes away what an agent before this one has left.
  std::string driver;
  DeviceVolumeSettings devices;
  // Of listed exports.
  NfsUnmountTimes nfs_unmount = {};
};

// The label of the node, and of its volumes' affinity, that says where the pools of this driver
// are: "topology.pool.volumed.io/node". Pure.
std::string PoolTopologyLabel(const std::string& driver);

// How the data of the volume is deleted once no PersistentVolume names it, for people. What was
// there before it was listed is the administrator's, and no command deletes it.
std::string HowDataIsDeleted(const PoolVolumes& volumes, const std::string& id);

// Threads and blocking: as the capabilities say.
class PoolPlugin final : public PlainVolumePlugin,
                         public PersistentVolumePlugin,
                         public ProvisionableVolumePlugin,
                         public DeletableVolumePlugin,
                         public ExpandableVolumePlugin,
                         public DeviceMountableVolumePlugin,
                         public BlockVolumePlugin,
                         public NodeExpandableVolumePlugin {
 public:
  explicit PoolPlugin(PoolPluginParts parts) : parts_(std::move(parts)) {}

  std::string GetPluginName() const override { return kPoolPluginName; }
  // The volume's id, whatever the PersistentVolume is called. Errors, of this and of what takes a
  // spec: InvalidArgument, not applied, for an inline volume, for another driver's, and for a
  // handle that is no id of a pool's volume.
  Result<std::string> GetVolumeName(const VolumeSpec& spec) const override;
  // Also an inline volume of the driver, so that it is refused with the reason.
  bool CanSupport(const VolumeSpec& spec) const override;
  Result<std::unique_ptr<Mounter>> NewMounter(const VolumeSpec& spec,
                                              const VolumeTarget& target) override;
  Result<std::unique_ptr<Unmounter>> NewUnmounter(const SpecName& spec, const PodUid& pod) override;
  // The spec names the volume whose device is mounted where the pod's bind comes from. Errors:
  // FailedPrecondition, not applied, if none is.
  Result<ReconstructedVolume> ConstructVolumeSpec(const SpecName& spec, const SafePath& volume_path,
                                                  const CallOptions& call) override;
  bool SupportsMountOption() const override { return true; }
  // The path of the pool: the filesystem on which it lies is what the volume hangs with. Of an
  // export its server's domain, as that of the plugin for NFS. "" for a volume that no record
  // knows.
  std::string FaultDomain(const VolumeSpec& spec) const override;
  // "NFS server nas-1" of an export; else "".
  std::string FaultDomainName(const VolumeSpec& spec) const override;
  // The path of the pool: a volume of a disk that was away is tried again when it comes. None of an
  // export.
  std::vector<std::string> DevicePaths(const VolumeSpec& spec) const override;

  VolumePlugin& plugin() override { return *this; }
  PersistentVolumePlugin* AsPersistent() override { return this; }
  ProvisionableVolumePlugin* AsProvisionable() override { return this; }
  // For the driver's own name; that is what a class has as its provisioner.
  ProvisionableVolumePlugin* AsProvisionerOf(const std::string& provisioner) override;
  DeletableVolumePlugin* AsDeletable() override { return this; }
  ExpandableVolumePlugin* AsExpandable() override { return this; }
  DeviceMountableVolumePlugin* AsDeviceMountable() override { return this; }
  BlockVolumePlugin* AsBlock() override { return this; }
  NodeExpandableVolumePlugin* AsNodeExpandable() override { return this; }

  // Those of one node.
  std::vector<AccessMode> GetAccessModes() const override;
  bool TakesContents() const override { return true; }
  UniqueVolumeName DeviceOfContent(const VolumeOptions& options) const override;
  Result<std::unique_ptr<Provisioner>> NewProvisioner(const VolumeOptions& options) override;
  // Errors: FailedPrecondition, not applied, for a volume that was not made for a claim by this
  // driver.
  Result<std::unique_ptr<Deleter>> NewDeleter(const VolumeSpec& spec) override;
  // Makes the file and its loop device larger, or the limit of a directory. Errors:
  // FailedPrecondition, not applied, for an ext3 or ext4 that is mounted, if the kernel does not
  // let this agent grow it there: it would not have its size before its pods leave; those of
  // PoolVolumes::Expand.
  Result<Quantity> ExpandVolumeDevice(const VolumeSpec& spec, const Quantity& new_size,
                                      const Quantity& old_size, const CallOptions& call) override;
  bool ExpandsStorage(const VolumeSpec&) const override { return true; }
  // Of both kinds of growth.
  bool RequiresFsResize() const override { return true; }
  // Makes the filesystem as large as the device is by then; of a directory nothing is left to be
  // done. REQUIRES: the volume is on the node.
  // Errors: those of PoolVolumes::Open and GrowDeviceVolume.
  Result<bool> NodeExpand(const NodeResizeOptions& options, const CallOptions& call) override;
  // REQUIRES of its callers, and of those of the mappers: the device's row says who is to have the
  // volume before it is opened, as PoolVolumes::Recover() closes what is open and on nobody's
  // record.
  Result<std::unique_ptr<DeviceMounter>> NewDeviceMounter() override;
  Result<std::unique_ptr<DeviceUnmounter>> NewDeviceUnmounter() override;
  // None of an export: each of its mounts holds it for itself, and the table does not tell binds
  // of one from mounts of their own.
  Result<std::vector<std::string>> GetDeviceMountRefs(const SafePath& device_mount_path,
                                                      const CallOptions& call) override;
  Result<bool> CanDeviceMount(const VolumeSpec& spec) const override;
  Result<std::unique_ptr<BlockVolumeMapper>> NewBlockVolumeMapper(const VolumeSpec& spec,
                                                                  PodPtr pod) override;
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapper(const SpecName& spec,
                                                                      const PodUid& pod) override;
  // Also for a device at a place that a CO gave, which does not tell whose it is.
  Result<std::unique_ptr<BlockVolumeUnmapper>> NewBlockVolumeUnmapperOf(const VolumeSpec& recorded,
                                                                        const PodUid& pod) override;
  // Errors: those of FindGlobalMapPathUUIDFromPod (blockmapper/volume_path_handler.h).
  Result<VolumeSpec> ConstructBlockVolumeSpec(const PodUid& pod, const SpecName& spec,
                                              const SafePath& map_path,
                                              const CallOptions& call) override;

 private:
  const PoolPluginParts parts_;
};

}  // namespace volumed
