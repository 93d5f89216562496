// CloneFile (os/image_requests.h). Source: ioctl_ficlone(2).
#pragma once

#include <string>

#include "base/result.h"
#include "os/copy_target.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any; one file's at a time. Blocks: as the filesystem does.
Result<FileExtent> DoCloneFile(const CloneFile& request, const KernelFeatures& features);

// Lets the empty `target` share the blocks of `source`; nothing is synced. Errors: errno, maybe
// applied.
Status ShareBlocks(const CopySource& source, const MadeFile& target, const std::string& what);

}  // namespace volumed
