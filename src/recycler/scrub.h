// ScrubDirectory: deletes everything in a directory, by Kernel effects, and proves that it is
// empty.
#pragma once

#include <string>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// A volume's directory as a place that no link leads to or out of; empty names in the path are left
// out. InvalidArgument, not applied, for a path that is relative, has "." or "..", or is "/".
Result<SafePath> ScrubbedPlace(const std::string& path);

// FailedPrecondition, not applied, naming the mount, if anything is mounted below `place` (what is
// mounted at it is what is to be scrubbed).
Status CheckNothingMountedBelow(Kernel& kernel, const SafePath& place, const CallOptions& call);

// The directory itself stays; links in it are deleted and not followed.
// Threads: any. Blocks: until the deadline. Errors: NotFound, not applied, without the directory;
// those of CheckNothingMountedBelow and of the effects, maybe applied once one was made.
// With an inode in `expected`, FailedPrecondition, not applied, if another directory is there by
// now: what was approved is emptied, and is seen empty.
Status ScrubDirectory(Kernel& kernel, const SafePath& place, const CallOptions& call,
                      const StorageObject& expected = {});

}  // namespace volumed
