// The composite effects on sub-paths: a part of a volume as a bind of its own. Checks and mounts
// happen on the same descriptor, inside the primitive effects; here is only their order. See
// os/composite_requests.h for what they do.
// Threads: one at a time per target. Blocks: as the calls of `kernel` do.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<Done> DoPrepareSubPath(Kernel& kernel, const PrepareSubPath& request,
                              const CallOptions& options);
Result<Changed> DoRemoveSubPaths(Kernel& kernel, const RemoveSubPaths& request,
                                 const CallOptions& options);

}  // namespace volumed
