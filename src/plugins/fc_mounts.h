// The mounts of Fibre Channel volumes: a device's mount for the node, and a pod's bind of it.
// Private to fc. Source: kubernetes pkg/volume/fc/attacher.go, disk_manager.go@v1.36.2.
//
// The free functions are pure. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "mounter/mounter.h"
#include "os/mount_entry.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/volume_plugin.h"
#include "plugins/fc_disk.h"

namespace volumed {

// The names in a spec, cleaned and with '_' for blanks. Errors: InvalidArgument, not applied, if it
// is not an fc volume; those of ValidateFcNames.
Result<FcNames> FcNamesOf(const VolumeSpec& spec);
// Decided by the claim, or for an inline volume by its source.
// Source: kubernetes pkg/volume/fc/fc.go@v1.36.2 (getVolumeSource).
bool IsReadOnlyFc(const VolumeSpec& spec);

// <root>/plugins/kubernetes.io/fc/<names>
SafePath FcDevicePlace(const VolumeHost& host, const FcNames& names);
// <root>/plugins/kubernetes.io/fc/volumeDevices/<names>
SafePath FcMapPlace(const VolumeHost& host, const FcNames& names);
// The names that belong to an absolute path, if it is one of these two places. Errors:
// InvalidArgument, not applied. For WWIDs that are not all hexadecimal the whole name is one WWID:
// see ParseFcDirectoryName.
Result<FcNames> FcNamesAt(const VolumeHost& host, const SafePath& place);

// Threads: one at a time per volume. Blocks: until the deadline, except for mkfs and fsck.
class FcAttacher final : public Attacher {
 public:
  FcAttacher(VolumeHost& host, FcDisks& disks, const DeviceVolumeSettings& settings)
      : host_(host), disks_(disks), settings_(settings) {}

  Result<std::string> Attach(const VolumeSpec&, const NodeName&, const CallOptions&) override {
    return std::string();  // the fabric has attached it
  }
  // Decided by the disks from which the node has the volumes mounted or mapped: see
  // device_attachments.h. (In kubelet all are attached, whatever has become of their disks.)
  // Errors: InvalidArgument, not applied, for another node.
  Result<std::vector<bool>> VolumesAreAttached(const std::vector<VolumeSpec>& specs,
                                               const NodeName& node,
                                               const CallOptions& call) override;
  // Returns the device's node, "/dev/dm-3" or "/dev/sdb". Errors: those of FcNamesOf and
  // FcDisks::WaitFor.
  Result<std::string> WaitForAttach(const VolumeSpec& spec, const std::string& device_path,
                                    const Pod& pod, const CallOptions& call) override;
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Finds and proves the device once more, since a name may be given to another device; the one
  // that was proven is mounted. It is mounted read-only if the claim says so, as in kubelet:
  // another node may write to it. A place that is a mount point already is success, whatever is
  // mounted there. After an error that was not applied, no place is left that this call made.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Status Mount(const VolumeSpec& spec, const FoundDevice& device, const SafePath& place,
               const DeviceMounterArgs& args);

  VolumeHost& host_;
  FcDisks& disks_;
  const DeviceVolumeSettings settings_;
};

// Threads: one at a time per volume. Blocks: until the call's deadline.
class FcDetacher final : public Detacher {
 public:
  FcDetacher(VolumeHost& host, FcDisks& disks) : host_(host), disks_(disks) {}
  // Unmounts, removes the place, and then removes the volume's disks from the node. A second call
  // goes on where the first one ended. Only a new agent no longer knows which device was mounted: a
  // multipath device whose paths are all gone stays then. Errors: InvalidArgument, not applied, if
  // the place is not one of fc's; those of UnmountAndRemove; those of FcDisks::Remove, maybe
  // applied once it is unmounted.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;
  Status Detach(const std::string&, const NodeName&, const CallOptions&) override {
    // UnmountDevice, or TearDownDevice, has left nothing to do.
    return OkStatus();
  }

 private:
  Status RemoveDisks(const FcNames& names, const SafePath& place,
                     const std::optional<MountEntry>& mount, const CallOptions& call);

  VolumeHost& host_;
  FcDisks& disks_;
};

}  // namespace volumed
