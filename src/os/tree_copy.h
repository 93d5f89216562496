// CopyTree (os/tree_requests.h): by descriptors, never through a link, on one filesystem. Depth
// costs neither stack nor descriptors without bound. Source: GNU coreutils src/copy.c@v9.1 for what
// is kept of each kind of file.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any. Blocks: as long as the bytes take at the rate that is given, and as the filesystem
// does.
Result<TreeCopied> DoCopyTree(const CopyTree& request, const KernelFeatures& features,
                              const CallOptions& options);

}  // namespace volumed
