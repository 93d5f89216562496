// How a filesystem answers that has failed.
#pragma once

#include <cerrno>

namespace volumed {

// Whether a filesystem answers so to everything once its disk has failed, or the kernel has shut it
// down.
inline bool IsFailedFilesystem(int sys_errno) { return sys_errno == EIO || sys_errno == ESHUTDOWN; }

}  // namespace volumed
