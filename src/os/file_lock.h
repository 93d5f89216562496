// TakeFileLock (os/image_requests.h). Source: flock(2).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: as the filesystem does, never for the lock.
Result<FileLock> DoTakeFileLock(const TakeFileLock& request, const KernelFeatures& features);

}  // namespace volumed
