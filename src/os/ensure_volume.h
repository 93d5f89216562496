// The composite effects on a directory volume. See os/composite_requests.h for what they do; and
// os/composites.h, which calls them.
#pragma once

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

Result<EnsuredVolume> DoEnsureVolume(Kernel& kernel, const EnsureVolume& request,
                                     const CallOptions& options);
Result<Changed> DoRemoveVolume(Kernel& kernel, const RemoveVolume& request,
                               const CallOptions& options);

}  // namespace volumed
