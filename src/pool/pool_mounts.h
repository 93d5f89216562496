// The device of a pool's volume, mounted once for the node. Private to PoolPlugin and to the
// operations of the pool; a pod's bind of it is pluginmgr/device_bind.h.
#pragma once

#include <string>

#include "attacher/attacher.h"
#include "pool/pool_plugin.h"
#include "pool/pool_record.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Threads: one at a time per volume. Blocks: until the deadline, except for mkfs and fsck.
class PoolDeviceMounter final : public DeviceMounter {
 public:
  PoolDeviceMounter(VolumeHost& host, const PoolPluginParts& parts) : host_(host), parts_(parts) {}
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Opens the volume, formats it if it is new, mounts it, and puts on record which filesystem it
  // has: from then on no other one is mounted, and nothing is formatted. What a first format has
  // left that did not end, and cannot be gone on with, goes (PoolVolumes::MakeAnew), and the volume
  // is formatted again. The filesystem of a copy is grown to the volume's size; that it cannot be
  // is told as an event, and fails nothing. A place that is a mount point already is success if it
  // shows the volume. A directory is bound there, read-only for whoever only reads; an export is
  // mounted there with the options of the list besides those that are asked for. After an error
  // that was not applied neither a place nor an open device is left that this call made. Errors:
  // those of PoolVolumes::Open and MountDeviceVolume; InvalidArgument, not applied, for a block
  // volume, and for mount options of a directory, whose filesystem is mounted already;
  // FailedPrecondition, not applied, if something else is mounted at the place; those of
  // CheckNfsHelper and MountNfs.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Status MountTree(const VolumeSpec& spec, const PoolVolumeRecord& volume, const SafePath& place,
                   const CallOptions& call);
  Status MountExport(const VolumeSpec& spec, const PoolVolumeRecord& volume, const SafePath& place,
                     const CallOptions& call);
  Status MountOpened(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                     const OpenedVolume& opened, const SafePath& place,
                     const DeviceMounterArgs& given);
  // After a refusal of MountOpened: whether the device has nothing but the rest of a format.
  Result<bool> HasHalfFormat(const VolumeSpec& spec, const PoolVolumeRecord& volume,
                             const OpenedVolume& opened, const CallOptions& call);
  Status MountAnew(const VolumeSpec& spec, const PoolVolumeRecord& volume, const SafePath& place,
                   const DeviceMounterArgs& args);
  void GrowMounted(const PoolVolumeRecord& volume, const std::string& fs_type,
                   const OpenedVolume& opened, const SafePath& place,
                   const DeviceMounterArgs& args);
  Status NoteMounted(const PoolVolumeRecord& volume, const MountEntry& mount, bool is_own_place,
                     const CallOptions& call);

  VolumeHost& host_;
  const PoolPluginParts& parts_;  // of the plugin, which outlives this
};

// Whether the filesystem of the volume, whose device has this place, can be made larger as it is
// now. Threads: any. Blocks: until the call's deadline. Errors: those of PoolVolumes::Find;
// FailedPrecondition, not applied, for an ext3 or ext4 that is mounted, without CAP_SYS_RESOURCE.
Status CheckGrowsWhereItIs(VolumeHost& host, const PoolVolumes& volumes, const std::string& id,
                           const SafePath& place, const CallOptions& call);

// Threads: one at a time per volume. Blocks: until the call's deadline; for a mounted export, for
// the times of UnmountNfs.
class PoolDeviceUnmounter final : public DeviceUnmounter {
 public:
  PoolDeviceUnmounter(VolumeHost& host, const PoolPluginParts& parts)
      : host_(host), parts_(parts) {}
  // Unmounts, removes the place, and closes the volume. A second call goes on where the first one
  // ended. Errors: InvalidArgument, not applied, if the place is not one of a pool's; those of
  // UnmountAndRemove, and of UnmountNfs; those of PoolVolumes::Close, maybe applied.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;
  // The same; the directory of a place that a CO gave stays, and what is on record says the id.
  Status UnmountRecorded(const VolumeSpec& recorded, const SafePath& device_mount_path,
                         const CallOptions& call) override;

 private:
  // Unmounts what is mounted there if it is an export, as the mount table says: one whose row is
  // gone, too. Whether it was one.
  Result<bool> UnmountExport(const SafePath& place, const CallOptions& call);
  Status CloseUnmounted(const std::string& id, const CallOptions& call);

  VolumeHost& host_;
  const PoolPluginParts& parts_;  // of the plugin, which outlives this
};

}  // namespace volumed
