// The composite effects on a directory volume. See os/composite_requests.h for what they do; and
// os/composites.h, which calls them. A function may be called again after any error or end: what is
// there is looked at first. Threads: one at a time per volume. Blocks: as the calls of `kernel` do.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<EnsuredVolume> DoEnsureVolume(Kernel& kernel, const EnsureVolume& request,
                                     const CallOptions& options);
Result<Changed> DoRemoveVolume(Kernel& kernel, const RemoveVolume& request,
                               const CallOptions& options);

}  // namespace volumed
