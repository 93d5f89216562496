// Questions about the mount table that mounting asks. Each costs what its answer does, and not what
// the table does (see ListMounts), unless it says so.
//
// Threads: any. Blocks: as ListMounts: never on a filesystem. Errors: those of ListMounts.
// Paths are absolute and clean, and compared as text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "os/mount_entry.h"

namespace volumed {

// The topmost mount at exactly this path (MountSnapshot::FindTop); nullopt if it is no mount point.
Result<std::optional<MountEntry>> FindMountAt(Kernel& kernel, const std::string& path,
                                              const CallOptions& call);

// The same of the table as it is, which is read whole. What it has and the kept one has missed, the
// kept one knows from then on.
Result<std::optional<MountEntry>> FindMountAtAnew(Kernel& kernel, const std::string& path,
                                                  const CallOptions& call);

// The mount that a lookup of the path ends in, which has its own mount point or one above; nullopt
// if none has.
Result<std::optional<MountEntry>> FindMountAround(Kernel& kernel, const std::string& path,
                                                  const CallOptions& call);

// The mount points of every other place at which what is at `path` shows; empty if it shows nowhere
// else.
// Source: kubernetes mount-utils mount_linux.go@v1.36.2 (SearchMountPoints).
Result<std::vector<std::string>> FindMountRefs(Kernel& kernel, const std::string& path,
                                               const CallOptions& call);

// Where else a mount shows what is at `path`, or something within it, and what is mounted there or
// within it. Reads the whole table, as it is: whoever removes something needs that, and the one
// that is kept misses mounts of directories that were renamed (os/kept_mount_table.h).
Result<std::vector<std::string>> FindMountsOfTree(Kernel& kernel, const std::string& path,
                                                  const CallOptions& call);

// Whether a mount shows what is at `path`, which is seldom a mount point: the directory itself, and
// neither one above nor one below it. If it does not, the whole table is read before that is said.
Result<bool> ShowsWhatIsAt(Kernel& kernel, const MountEntry& mount, const std::string& path,
                           const CallOptions& call);

// The part of the filesystem that is at `path`. Pure. REQUIRES: the path is the mount's mount point
// or lies below it, and no other mount is meant.
FilesystemPart PartAt(const MountEntry& mount, const std::string& path);

// Whether the filesystem, or the mount itself, lets nobody write to it. Pure.
bool TakesNoWrites(const MountEntry& mount);

}  // namespace volumed
