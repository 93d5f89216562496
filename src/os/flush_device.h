// Writes what the kernel still keeps of a block device back to it, and forgets the rest.
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// See FlushDevice. Threads: any. Blocks: until the device has taken it all.
Result<Done> DoFlushDevice(const FlushDevice& request);

}  // namespace volumed
