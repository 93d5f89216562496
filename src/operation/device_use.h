// Finds out whether nobody uses the device of a volume any more. That has to be proven before the
// device is detached, and is reported if it is not so. A mount table cannot prove it: a container's
// copies of the mounts are in another namespace, and a device can be claimed without any mount.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateUnmountDeviceFunc: DeviceOpened).
//
// Threads: any. Blocks: until the call's deadline; opening a dead disk may hang.
#pragma once

#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "operation/volume_record.h"
#include "os/kernel.h"

namespace volumed {

// The block device that is mounted at `place`; nullopt if the mount table names none. What a driver
// (by the volume's fault domain) has mounted there may be a directory of the node's own disk, or of
// one for many volumes: a part of a filesystem names no device that were the volume's. Neither does
// a directory of the filesystem that the volume hangs with, if its fault domain is a path.
Result<std::optional<MountedSource>> FindMountedSource(Kernel& kernel, const SafePath& place,
                                                       const std::string& fault_domain,
                                                       const CallOptions& call);

// Says who has the device: "/dev/sdb is mounted at /mnt/x". Empty if an attempt to claim the device
// showed that nobody has it, or if it is not on the node any more. Errors: those of CheckDeviceUse.
Result<std::string> FindDeviceUsers(Kernel& kernel, const MountedSource& source,
                                    const CallOptions& call);

// Errors: FailedPrecondition, not applied, with the text of FindDeviceUsers if somebody has the
// device. A path that is not a block device is success, as in kubelet: there is no device to ask
// about.
Status CheckDeviceLetGo(Kernel& kernel, const MountedSource& source, const CallOptions& call);

struct ReleasedDevice {
  UniqueVolumeName volume;
  MountedSource source;
  bool is_detached_next = false;
};

// The last step of an unmount or unmapping. A device that is to be detached must be free. A device
// that stays on the node may have another user as well (an administrator's mount); that is logged,
// so that nobody takes it for free. Errors: those of CheckDeviceLetGo, for a device that is to be
// detached.
Status CheckReleasedDevice(Kernel& kernel, Logger& logger, const ReleasedDevice& device,
                           const CallOptions& call);

}  // namespace volumed
