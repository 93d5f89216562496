// What has to be so around a place of a CO before a volume is put there, or taken away. By the
// mount table alone, so that it hangs with no filesystem.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "os/kernel.h"
#include "os/safe_path.h"
#include "pool/pool_volumes.h"

namespace volumed {

// Whether the directory of the volume's pool is there; without it nothing on the node is known to
// be the volume's. Threads: any. Blocks: until the call's deadline. Errors: those of
// Pool::CheckThere.
Status CheckPoolIsThere(const PoolVolumes& volumes, const std::string& id, const CallOptions& call);

// Whether the process that has called will see what is mounted at the place. One in another mount
// namespace, as a kubelet is for an agent in a container, sees it only if the mount that the place
// lies on is shared; without that a pod would have the node's own directory in place of its volume.
// `caller`: 0 is one that nobody knows, and is let pass. Threads: any. Blocks: until the call's
// deadline. Errors: FailedPrecondition, not applied; those of ListMounts.
Status CheckCallerSees(Kernel& kernel, pid_t caller, const SafePath& place,
                       const CallOptions& call);

// That what is mounted at the place is reached by its path: what lies below a later mount would
// stay when it is said to be gone. Threads: any. Blocks: until the call's deadline. Errors:
// FailedPrecondition, not applied; those of ListMounts.
Status CheckNotHidden(Kernel& kernel, const SafePath& place, const CallOptions& call);

}  // namespace volumed
