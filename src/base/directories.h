// Directories that the process makes for itself on the node.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace volumed {

// Makes the directory, and each of its parents that is missing, with these modes; what is there
// stays as it is. Whatever the process's umask is, nobody but root may write to them. `path` is
// absolute. Blocks: as long as the filesystems take to answer. Errors: errno of mkdir(2), not
// applied.
Status MakeDirectories(const std::string& path, mode_t parent_mode, mode_t mode);

}  // namespace volumed
