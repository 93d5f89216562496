// The mounts of local volumes: a device's mount for the node, and a pod's bind of it. Private to
// local.
// Source: kubernetes pkg/volume/local/local.go@v1.36.2.
#pragma once

#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "mounter/mounter.h"
#include "plugins/local.h"

namespace volumed {

// Threads: one at a time per volume. Blocks: until the deadline, except for mkfs and fsck.
class LocalDeviceMounter final : public DeviceMounter {
 public:
  LocalDeviceMounter(VolumeHost& host, const LocalVolumeSettings& settings)
      : host_(host), settings_(settings) {}
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Mounts read-only if the volume's own mount options say so, or if the disk takes no writes and
  // some pods only read. A claim's readOnly concerns only the pod's bind, since a pod that writes
  // may join. If all pods only read, nothing is formatted. Errors: NotFound "path \"...\" does not
  // exist"; those of SafeFormatAndMount; InvalidArgument for what is neither a directory nor a
  // block device. For a directory nothing is done. A place that is a mount point already is
  // success.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Status MountBlock(const VolumeSpec& spec, const SafePath& place, const DeviceMounterArgs& args);

  VolumeHost& host_;
  const LocalVolumeSettings settings_;
};

// Implements NodeExpand of LocalVolumePlugin. REQUIRES: a local persistent volume.
Result<bool> ExpandLocalVolume(VolumeHost& host, const NodeResizeOptions& options,
                               const CallOptions& call);

// Threads: one at a time per volume. Blocks: until the call's deadline.
class LocalDeviceUnmounter final : public DeviceUnmounter {
 public:
  explicit LocalDeviceUnmounter(VolumeHost& host) : host_(host) {}
  // Errors: InvalidArgument, not applied, if the place is not one of local's; those of
  // UnmountAndRemove. A directory was never mounted there, which is success.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;

 private:
  VolumeHost& host_;
};

// Binds the directory, or the device's mount, at a pod's place. The group is the first pod's: if
// another pod has the volume already, ownership stays and a pod with another group gets an event.
// Threads: one at a time per volume. Blocks: until the call's deadline.
class LocalVolumeMounter final : public Mounter {
 public:
  // REQUIRES: `spec` is a local persistent volume.
  LocalVolumeMounter(VolumeHost& host, VolumeSpec spec, const VolumeTarget& target);

  std::string GetPath() const override { return place_.Display(); }
  SafePath GetSafePath() const override { return place_; }
  Attributes GetAttributes() const override;
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  // Errors: FailedPrecondition, not applied, if the pod writes and the device takes no writes: the
  // pod must not get a read-only filesystem without an error; NotFound, not applied, if the path
  // does not exist; InvalidArgument, not applied, if it is neither a directory nor a block device;
  // FailedPrecondition, not applied, if the device is not mounted for the node, or if what is at
  // the path is not what was approved. A failed change of ownership is maybe applied.
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  Result<SafePath> FindSource(const CallOptions& call) const;

  VolumeHost& host_;
  const VolumeSpec spec_;
  const PodUid pod_;  // the pod that gets the events
  const SafePath place_;
  const bool read_only_;  // because of the pod's claim, or of the volume
};

}  // namespace volumed
