// SetIoLimits (os/cgroup_requests.h).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any; one cgroup's at a time. Blocks: never for long, as the files of cgroups are memory
// of the kernel, but for opening the device.
Result<CgroupIoLimits> DoSetIoLimits(const SetIoLimits& request);

}  // namespace volumed
