// MoveDirectory (os/tree_requests.h).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: as the filesystem does, until both names are on the disk.
Result<Changed> DoMoveDirectory(const MoveDirectory& request, const KernelFeatures& features);

}  // namespace volumed
