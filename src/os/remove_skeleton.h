// The composite effect that takes away a directory of which it is known what may be in it. See
// os/composite_requests.h for what it does.
// Threads: one at a time per directory. Blocks: as the calls of `kernel` do.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<Changed> DoRemoveSkeleton(Kernel& kernel, const RemoveSkeleton& request,
                                 const CallOptions& options);

}  // namespace volumed
