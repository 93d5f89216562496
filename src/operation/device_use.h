// Whether the device of a volume is let go of: what has to be proven before it is detached, and
// what is said of it when it is not. A mount table cannot prove it: a container's copy of the
// mounts is in another namespace, and a device can be claimed without any mount. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2 (GenerateUnmountDeviceFunc:
// DeviceOpened).
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

// The block device that is mounted at `place`, as far as the mount table names one.
Result<std::optional<MountedSource>> FindMountedSource(Kernel& kernel, const SafePath& place,
                                                       const CallOptions& call);

// Who has the device, in words: "/dev/sdb is mounted at /mnt/x". Empty: nobody has it, which was
// tried, or it is not on the node any more. Errors: those of CheckDeviceUse.
Result<std::string> FindDeviceUsers(Kernel& kernel, const MountedSource& source,
                                    const CallOptions& call);

// FailedPrecondition, not applied, with those words while somebody has it. A path that is no block
// device is success, as kubelet's: there is nothing to be asked.
Status CheckDeviceLetGo(Kernel& kernel, const MountedSource& source, const CallOptions& call);

struct ReleasedDevice {
  UniqueVolumeName volume;
  MountedSource source;
  bool is_detached_next = false;
};

// The last step of an unmount or unmapping. What is to be detached must be let go of; what stays on
// the node may be somebody else's as well (an administrator's mount), but nobody is told that it is
// free: that is a line of the log. Errors: those of CheckDeviceLetGo, of what is to be detached.
Status CheckReleasedDevice(Kernel& kernel, Logger& logger, const ReleasedDevice& device,
                           const CallOptions& call);

}  // namespace volumed
