// What the running kernel can do, found out by trying; a mask makes it seem older.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Every name in `masked` must be one that KernelFeatures gives.
// Needs CAP_SYS_ADMIN: without it, what could not be tried counts as missing.
// Threads: any. Blocks: never (microseconds; no filesystem is mounted anywhere).
// Errors: InvalidArgument, not applied, naming a mask that does not exist.
Result<KernelFeatures> ProbeKernelFeatures(const std::vector<std::string>& masked);

// Clears the named features. Errors: as above.
Result<KernelFeatures> MaskFeatures(KernelFeatures features,
                                    const std::vector<std::string>& masked);

// Whether this thread has the capability (CAP_SYS_RESOURCE) now. Threads: any. Blocks: never.
bool HasCapability(unsigned capability);

}  // namespace volumed
