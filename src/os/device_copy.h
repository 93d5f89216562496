// CopyDevice (os/image_requests.h). Source: open(2) (O_EXCL, O_DIRECT).
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any; one file's at a time. Blocks: as the device does, and as DoCopyFile.
Result<FileExtent> DoCopyDevice(const CopyDevice& request, const KernelFeatures& features,
                                const CallOptions& options);

}  // namespace volumed
