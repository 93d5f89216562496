// ReadRegularFile: the content of a small file that an administrator names.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace volumed {

// Whatever is at the path: a FIFO is not waited for, and a device that never ends is not read.
// Links are followed, so the path must be one that only an administrator can change. The content
// may have any bytes, zeros included.
// Threads: any. Blocks: on the filesystem. Errors, all not applied: errno's, as NotFound, which a
// socket gives too (ENXIO); FailedPrecondition for anything else that is no regular file;
// ResourceExhausted for more than `max_bytes`.
Result<std::string> ReadRegularFile(const std::string& path, size_t max_bytes);

}  // namespace volumed
