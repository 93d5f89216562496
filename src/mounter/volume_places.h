// The directories at which volumes are mounted. They are made before the mount and removed after
// it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any, one call per place at a time. Blocks: until the deadline.

// Does not ask the mounted filesystem for anything.
Result<bool> IsMountPoint(Kernel& kernel, const SafePath& place, const CallOptions& call);

// Makes the place, and missing parents, with the mode 0750.
Status MakePlace(Kernel& kernel, const SafePath& place, const CallOptions& call);

// After a failure that had no effect, removes the directory; if it cannot be removed, the failure
// counts as maybe applied. `done` is answered as it is if it succeeded or may have had an effect.
Status OrNothing(Kernel& kernel, const SafePath& place, const Status& done,
                 const CallOptions& call);

// Succeeds if nothing is mounted and there is no directory. A link in the place of the directory is
// removed, and not followed. Errors: those of Unmount; those of RemoveDirectory and RemoveFile,
// maybe applied.
Status UnmountAndRemove(Kernel& kernel, const SafePath& place, const CallOptions& call);

// Every other place that shows the device which is mounted at `place`; empty if nothing is mounted.
Result<std::vector<std::string>> FindDeviceMountRefs(Kernel& kernel, const SafePath& place,
                                                     const CallOptions& call);

}  // namespace volumed
