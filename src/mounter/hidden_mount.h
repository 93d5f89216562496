// Mounts that the table has at a path and that a look-up of that path does not end in.
#pragma once

#include <optional>

#include "base/result.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// Another mount at a directory above the mount's place, by which it is hidden: one that was mounted
// over that directory later. Whoever binds the place by its path would get what is there instead.
// Nullopt: it can be seen.
// Threads: any. Blocks: as ListMounts: never on a filesystem. Errors: those of ListMounts.
Result<std::optional<MountEntry>> FindMountHiding(Kernel& kernel, const MountEntry& mount,
                                                  const CallOptions& call);

}  // namespace volumed
