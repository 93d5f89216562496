// The mounts of local volumes: a device's, for the node, and a pod's bind of it. Private to local.
// Source: kubernetes pkg/volume/local/local.go@v1.36.2.
#pragma once

#include <string>
#include <vector>

#include "attacher/attacher.h"
#include "mounter/mounter.h"
#include "plugins/local.h"

namespace volumed {

// Threads: one at a time per volume. Blocks: until the deadline, but for mkfs and fsck.
class LocalDeviceMounter final : public DeviceMounter {
 public:
  LocalDeviceMounter(VolumeHost& host, const LocalVolumeSettings& settings)
      : host_(host), settings_(settings) {}
  Result<SafePath> GetDeviceMountPath(const VolumeSpec& spec) const override;
  // Read-only where the volume's own mount options say so, or the disk takes no writes and there
  // are pods that only read. A claim's readOnly is a matter of the pod's bind: a pod that writes
  // may join. But for pods that only read nothing is formatted. Errors: NotFound "path \"...\" does
  // not exist"; those of SafeFormatAndMount.
  Status MountDevice(const VolumeSpec& spec, const std::string& device_path,
                     const SafePath& device_mount_path, const DeviceMounterArgs& args) override;

 private:
  Status MountBlock(const VolumeSpec& spec, const SafePath& place, const DeviceMounterArgs& args);

  VolumeHost& host_;
  const LocalVolumeSettings settings_;
};

// NodeExpand of LocalVolumePlugin. REQUIRES: a local persistent volume.
Result<bool> ExpandLocalVolume(VolumeHost& host, const NodeResizeOptions& options,
                               const CallOptions& call);

class LocalDeviceUnmounter final : public DeviceUnmounter {
 public:
  explicit LocalDeviceUnmounter(VolumeHost& host) : host_(host) {}
  // InvalidArgument, not applied, for a place that is not one of local's.
  Status UnmountDevice(const SafePath& device_mount_path, const CallOptions& call) override;

 private:
  VolumeHost& host_;
};

class LocalVolumeMounter final : public Mounter {
 public:
  // REQUIRES: a local persistent volume.
  LocalVolumeMounter(VolumeHost& host, VolumeSpec spec, const VolumeTarget& target);

  std::string GetPath() const override { return place_.Display(); }
  SafePath GetSafePath() const override { return place_; }
  Attributes GetAttributes() const override;
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status SetUp(const MounterArgs& args) override { return SetUpAt(place_, args); }
  // FailedPrecondition, not applied, for a pod that writes, where the device takes no writes: it
  // never gets a read-only filesystem without a word.
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  Result<SafePath> FindSource(const CallOptions& call) const;
  Status WarnOfOtherGroup(const SafePath& source, int64_t fs_group, const CallOptions& call) const;

  VolumeHost& host_;
  const VolumeSpec spec_;
  const PodUid pod_;  // whom the events are about
  const SafePath place_;
  const bool read_only_;  // by the claim of the pod, or by the volume
};

}  // namespace volumed
