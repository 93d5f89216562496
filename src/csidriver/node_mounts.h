// What the mount table says is at a place of a CO: a volume of a pool, or something else. By the
// mount table alone, so that it hangs with no filesystem.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "os/safe_path.h"
#include "pool/pool_volumes.h"

namespace volumed {

enum class ShownAt {
  kNothing,
  kFilesystem,  // the volume's, or the volume itself, if it is a directory or an export
  kDevice,      // the volume's, as a block device
  kElse,        // something that is not this volume
};

// Threads: any. Blocks: until the call's deadline. Errors, not applied: Unavailable while something
// is there and the pool of the volume is not open, so that nobody knows its devices; those of
// ListMounts, and of the backend that has the volume.
Result<ShownAt> FindShownAt(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                            const SafePath& place, const CallOptions& call);

// Whether the directory of the volume's pool is there; without it nothing on the node is known to
// be the volume's. Threads: any. Blocks: until the call's deadline. Errors: those of
// Pool::CheckThere.
Status CheckPoolIsThere(const PoolVolumes& volumes, const std::string& id, const CallOptions& call);

// Whether the node has a device of the volume: of an image that is attached, say. Threads: any.
// Blocks: until the call's deadline. Errors: as FindShownAt.
Result<bool> HasDevice(const PoolVolumes& volumes, const std::string& id, const CallOptions& call);

// Where a device of the volume is mounted; empty: nowhere. Whoever may rename what lies around a
// place takes the mount to another name. Threads, blocking and errors: as FindShownAt.
Result<std::vector<std::string>> FindMountsOf(const PoolVolumes& volumes, Kernel& kernel,
                                              const std::string& id, const CallOptions& call);

// Whether the process that has called will see what is mounted at the place. One in another mount
// namespace, as a kubelet is for an agent in a container, sees it only if the mount that the place
// lies on is shared; without that a pod would have the node's own directory in place of its volume.
// `caller`: 0 is one that nobody knows, and is let pass. Threads: any. Blocks: until the call's
// deadline. Errors: FailedPrecondition, not applied; those of ListMounts.
Status CheckCallerSees(Kernel& kernel, pid_t caller, const SafePath& place,
                       const CallOptions& call);

}  // namespace volumed
