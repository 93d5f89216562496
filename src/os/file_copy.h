// CopyFile (os/image_requests.h). Source: lseek(2).
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any; one file's at a time. Blocks: as long as the bytes take at the rate that is given,
// and as the filesystems do; a cancel is seen within a fifth of a second.
Result<FileExtent> DoCopyFile(const CopyFile& request, const KernelFeatures& features,
                              const CallOptions& options);

}  // namespace volumed
