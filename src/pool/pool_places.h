// Where on the node a volume of a pool shows: by the mount table, and by which devices its pool has
// of it, so that no question hangs with a filesystem.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "os/mount_entry.h"
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

// The same by the mount table as it is, which is read whole.
Result<ShownAt> FindShownAtAnew(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                                const SafePath& place, const CallOptions& call);

// Whether a mount is the bind of the directory or subvolume that the volume is. Its id is nobody
// else's. Pure; blocks: never.
bool BindsVolume(const MountEntry& mount, const std::string& id);

// The same of a mount that is known.
Result<ShownAt> WhatShows(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                          const MountEntry& mount, const CallOptions& call);

// Errors: those of WhatShows; FailedPrecondition, not applied, if the mount shows something else.
Status CheckShowsVolume(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                        const MountEntry& mount, const CallOptions& call);

// Whether the node has certainly no device of the volume: its file is at its place, and is attached
// nowhere. Never of a device that is there already. Threads, blocking and errors: as FindShownAt.
Result<bool> HasNoDevice(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                         const CallOptions& call);

// Whether the volume is mounted at any place, or its device bound, or a part of its directory. The
// mount table is read whole, as it is (FindMountsOfTree). Threads, blocking and errors: as
// FindShownAt.
Result<bool> IsShownAnywhere(const PoolVolumes& volumes, Kernel& kernel, const std::string& id,
                             const CallOptions& call);

// Where a device of the volume is mounted; empty: nowhere. Whoever may rename what lies around a
// place takes the mount to another name. Threads, blocking and errors: as FindShownAt.
Result<std::vector<std::string>> FindMountsOf(const PoolVolumes& volumes, Kernel& kernel,
                                              const std::string& id, const CallOptions& call);

}  // namespace volumed
