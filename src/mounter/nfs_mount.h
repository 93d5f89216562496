// An export of an NFS server, mounted at a place by mount.nfs and taken away from it; for every
// plugin that has such volumes. A server that does not answer hangs whatever touches its mounts, so
// only the mount table is asked what is mounted, and the domain of each call is the server's.
//
// Threads: any, one call per place at a time. Blocks: until the call's deadline, if nothing else is
// said.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Errors, not applied: NotFound, naming the package, if there is no mount.nfs.
Status CheckNfsHelper(Kernel& kernel, const CallOptions& call);

// Whether an export is mounted at `dir`. Errors, not applied: FailedPrecondition, if something else
// is.
Result<bool> IsNfsMountedAt(Kernel& kernel, const SafePath& dir, const CallOptions& call);

// Mounts the export ("server:/path") at `dir`, which is there. REQUIRES: nothing is mounted there.
// Errors: those of Mount; Unavailable, maybe applied, if mount.nfs ends well without a mount.
Status MountNfs(Kernel& kernel, const std::string& exported, const SafePath& dir,
                const std::vector<std::string>& options, const CallOptions& call);

struct NfsUnmountTimes {
  // How long an unmount that begins now may take before it is forced. Threads: any.
  // Source: kubernetes pkg/volume/nfs/nfs.go@v1.36.2 (unMountTimeout).
  std::function<Duration()> unmount = [] { return Duration(std::chrono::minutes(1)); };
  // For a forced unmount, which waits for no server.
  Duration force = std::chrono::seconds(20);
};

// Unmounts what is at `dir`, by force if that hangs, and never lazily; success if nothing is there.
// A forced unmount fails every request to the server that the kernel is making for that filesystem,
// so it is made only if no other mount shows the same filesystem. Blocks: for `times`, whatever the
// call's deadline. Errors: those of Unmount; if one that hangs may not be forced, its error names
// the other place that shows the same filesystem.
Status UnmountNfs(Kernel& kernel, const Clock& clock, const SafePath& dir,
                  const NfsUnmountTimes& times, const CallOptions& call);

}  // namespace volumed
