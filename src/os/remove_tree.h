// Removing a tree on one filesystem: by descriptors, never through a link, never across a mount.
// Depth costs neither stack nor descriptors.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "os/work_meter.h"

namespace volumed {

// See os/kernel_requests.h (RemoveTree). Besides: what cannot be removed is left, the rest is
// removed, and the first failure is the error; a mount point that is in the way comes before every
// other failure. Threads: any. Blocks: as the filesystem does.
Result<Changed> DoRemoveTree(const RemoveTree& request, const KernelFeatures& features,
                             const CallOptions& options);

// The same for `name` in the directory `parent`; `display` names it in errors.
Result<Changed> RemoveTreeAt(int parent, const std::string& name, const std::string& display,
                             WorkMeter& meter);

}  // namespace volumed
