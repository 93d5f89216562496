// A pod's bind of a device that is mounted once for the node. It is for the plugins of block
// devices, in whatever folder they are.
// Source: kubernetes pkg/volume/iscsi/disk_manager.go, pkg/volume/fc/disk_manager.go@v1.36.2.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "mounter/mounter.h"
#include "os/mount_entry.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct DeviceBind {
  std::string volume;     // "fc volume [5..]:0": for messages
  SpecName spec;          // for events
  SafePath device_mount;  // of the device, for the node
  SafePath place;         // of the pod
  PodUid pod;
  bool read_only = false;  // because of the pod or of the volume
  // It is a directory of a larger filesystem: its figures are its own, where something counts them.
  bool is_tree = false;
  // Whoever has the filesystem elsewhere says whose its files are: they keep owner, group and
  // label.
  bool keeps_owners = false;
  // Of a tree: the project by which they are counted; 0: by whichever it has, or by none.
  uint32_t project_id = 0;
  // What has to be so before the pod has the volume, also if it is bound already. Empty: nothing.
  // Errors: as SetUpAt has them, not applied.
  std::function<Status(const CallOptions& call)> before_bind = nullptr;
  // Whether what is mounted at device_mount is the device. Empty: nobody but the agent puts
  // anything there. Errors: likewise.
  std::function<Status(const MountEntry& mount, const CallOptions& call)> check_device = nullptr;
};

// Binds the device's mount at a pod's place, and gives the files to the pod's group if the pod
// writes, unless they keep their owners. A bind that is there is kept. It mounts no device: that is
// DeviceMounter's.
//
// Threads: one at a time per volume. Blocks: until the call's deadline.
class DeviceBindMounter final : public Mounter {
 public:
  DeviceBindMounter(VolumeHost& host, DeviceBind bind) : host_(host), bind_(std::move(bind)) {}

  std::string GetPath() const override { return bind_.place.Display(); }
  SafePath GetSafePath() const override { return bind_.place; }
  // Managed exactly if it is not read-only, and its files do not keep their owners.
  Attributes GetAttributes() const override;
  // The figures of the whole filesystem, by statfs at the pod's place, or of the directory; those
  // of the unmounter are always the filesystem's.
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status SetUp(const MounterArgs& args) override { return SetUpAt(bind_.place, args); }
  // Errors: FailedPrecondition, not applied, if the device is not mounted for the node, or was
  // taken away while it was bound, or if it takes no writes and the pod writes. A failed change of
  // ownership fails the set-up; kubelet's diskSetUp ignores it, so that the pod starts with files
  // to which it cannot write. An error after the bind was made, or was found, is maybe applied.
  Status SetUpAt(const SafePath& dir, const MounterArgs& args) override;

 private:
  Result<MountEntry> FindDevice(const CallOptions& call);

  VolumeHost& host_;
  const DeviceBind bind_;
};

// Takes the pod's bind away, and its directory; the device stays mounted for the node. A place that
// is missing is success.
//
// Threads: one at a time per volume. Blocks: until the call's deadline.
class DeviceBindUnmounter final : public Unmounter {
 public:
  DeviceBindUnmounter(VolumeHost& host, SafePath place) : host_(host), place_(std::move(place)) {}

  std::string GetPath() const override { return place_.Display(); }
  Result<Metrics> GetMetrics(const CallOptions& call) override;
  Status TearDown(const CallOptions& call) override { return TearDownAt(place_, call); }
  // Errors: those of UnmountAndRemove.
  Status TearDownAt(const SafePath& dir, const CallOptions& call) override;

 private:
  VolumeHost& host_;
  const SafePath place_;
};

}  // namespace volumed
