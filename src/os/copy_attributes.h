// What a file has besides its content: owner, mode, times and extended attributes, copied from one
// open file, of whatever kind, to another. Descriptors opened by O_PATH are enough.
//
// Threads: any. Blocks: as the filesystem does. It answers 0 or an errno.
#pragma once

#include <sys/stat.h>

namespace volumed {

// All of it but the inode's own flags; `stat` is what fstat(2) said of `from`. The marks of this
// program (trusted.volumed.*) are not copied, as the copy is somebody else's; nor is a label of
// SELinux that the filesystem of `to` does not take.
int CopyAttributes(int from, const struct stat& stat, int to);

}  // namespace volumed
