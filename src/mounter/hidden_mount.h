// Mounts that the table has at a path and that a look-up of that path does not end in.
#pragma once

#include <optional>

#include "base/result.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// The mount at a directory above that a look-up of the mount's place ends in, if it does not end at
// the place: one that was mounted over that directory later. Whoever binds the place by its path
// would get what is there instead. Nullopt: it can be seen. Threads: any. Blocks: as ListMounts:
// never on a filesystem. Errors: those of ListMounts.
Result<std::optional<MountEntry>> FindMountHiding(Kernel& kernel, const MountEntry& mount,
                                                  const CallOptions& call);

}  // namespace volumed
