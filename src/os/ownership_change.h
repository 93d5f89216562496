// Group and mode of one entry, changed only where they are wrong, never through a link.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace volumed {

// Both answer 0 or an errno, and set `changed` once something was changed. `wanted_mode` is not
// looked at for links. Threads: any. Blocks: as the filesystem does.
int ChangeEntryOwnership(int directory, const char* name, const struct statx& now, uint32_t gid,
                         uint32_t wanted_mode, bool has_fchmodat2, bool& changed);

// The same for what the descriptor `fd` (O_PATH will do) refers to.
int ChangeRootOwnership(int fd, const struct statx& now, uint32_t gid, uint32_t wanted_mode,
                        bool& changed);

}  // namespace volumed
