// How much a tree uses. See os/kernel_requests.h (Usage).
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Entries that vanish while the walk goes on are not counted, and no error. Mounts below the path
// are not counted, their mount points neither. Threads: any. Blocks: as the filesystem does.
Result<UsageInfo> DoUsage(const Usage& request, const CallOptions& options);

}  // namespace volumed
