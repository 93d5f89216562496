// ListExtents (os/image_requests.h). Source: Linux Documentation/filesystems/fiemap.rst.
#pragma once

#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Threads: any. Blocks: as the filesystem does, which writes the file back first.
Result<ExtentList> DoListExtents(const ListExtents& request, const KernelFeatures& features);

}  // namespace volumed
