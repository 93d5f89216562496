// MakeSubvolume and RemoveSubvolume (os/subvolume_requests.h), and what else is asked of a btrfs.
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: as the filesystem does: until its next commit is on the disk, and while it
// is frozen.
Result<FileExtent> DoMakeSubvolume(const MakeSubvolume& request, const KernelFeatures& features);
Result<Changed> DoRemoveSubvolume(const RemoveSubvolume& request, const KernelFeatures& features);

// Whether an open file (O_PATH is enough) lies on a btrfs, and whether it is the root of a
// subvolume there. Threads: any. Blocks: as the filesystem does.
bool IsOnBtrfs(int file);
bool IsSubvolumeRoot(int file);

// Makes the subvolume writable whose root is open; 0, or an errno. Threads: any. Blocks: likewise.
int MakeSubvolumeWritable(int subvolume);

// The number of the subvolume in which an open directory lies. Errors, not applied: errno.
Result<uint64_t> SubvolumeIdOf(int directory, const std::string& what);

}  // namespace volumed
