// FilesystemUuid: which filesystem a directory lies on, over reboots and renamed disks.
#pragma once

#include <string>

namespace volumed {

// 32 lowercase hexadecimal digits: the UUID that is written on the filesystem's disk. "" if it has
// none or if it cannot be known: tmpfs, overlay, NFS; on a kernel before 6.9 also btrfs, and any if
// udev keeps no links to its disk. Threads: any. Blocks: on the directory's filesystem.
std::string FilesystemUuid(const std::string& directory);

}  // namespace volumed
