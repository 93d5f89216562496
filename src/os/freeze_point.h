// Freezing and thawing one mounted filesystem, and ThawFilesystem (os/freeze_requests.h).
// Source: ioctl_fsfreeze (Linux include/uapi/linux/fs.h, fs/super.c).
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// A filesystem that is open, so that it cannot be unmounted meanwhile: an unmount of a frozen one
// would succeed, and leave it frozen.
struct OpenedPoint {
  Descriptor root;
  std::string what;  // "filesystem /mnt (7:3)", for errors
};
// Threads: any. Blocks: as the filesystem does; never for being frozen. Errors, not applied: those
// of os/safe_open.h; FailedPrecondition if another filesystem is there.
Result<OpenedPoint> OpenFreezePoint(const FreezePoint& point, const KernelFeatures& features);

// 0, or an errno: EBUSY if it is frozen already. Blocks: until all writes that have begun are done
// and everything is on the device; no signal ends that.
int FreezeFilesystem(int root);
// 0, or an errno: EINVAL if it is not frozen, or is only about to be. Blocks: while a freeze writes
// back.
int ThawFrozen(int root);

Result<Changed> DoThawFilesystem(const ThawFilesystem& request, const KernelFeatures& features);

}  // namespace volumed
