// The directories that volumes are mounted at: made before, removed after.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any, one call per place at a time. Blocks: until the deadline.

// Without asking what is mounted there for anything.
Result<bool> IsMountPoint(Kernel& kernel, const SafePath& place, const CallOptions& call);

// 0750, as the parents that it lacks.
Status MakePlace(Kernel& kernel, const SafePath& place, const CallOptions& call);

// What failed without an effect leaves no directory behind; if one stays, something may be there.
Status OrNothing(Kernel& kernel, const SafePath& place, const Status& done,
                 const CallOptions& call);

// Nothing mounted, and no directory, is success. Errors: those of Unmount; of RemoveDirectory,
// maybe applied.
Status UnmountAndRemove(Kernel& kernel, const SafePath& place, const CallOptions& call);

// Every other place at which the device that is mounted there shows; none where nothing is mounted.
Result<std::vector<std::string>> FindDeviceMountRefs(Kernel& kernel, const SafePath& place,
                                                     const CallOptions& call);

}  // namespace volumed
