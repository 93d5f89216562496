// SetFileSize (os/image_requests.h). Source: ftruncate(2), fallocate(2).
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any; one file's at a time. Blocks: as the filesystem does, as long as it allocates and
// writes back.
Result<FileExtent> DoSetFileSize(const SetFileSize& request, const KernelFeatures& features);

}  // namespace volumed
