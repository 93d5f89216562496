// ReadRegularFile: the content of a small file that an administrator names.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace volumed {

// Whatever is at the path: a FIFO is not waited for, and a device that never ends is not read.
// Threads: any. Blocks: on the filesystem. Errors, not applied: errno's, as NotFound;
// FailedPrecondition for what is no regular file; ResourceExhausted for more than `max_bytes`.
Result<std::string> ReadRegularFile(const std::string& path, size_t max_bytes);

}  // namespace volumed
