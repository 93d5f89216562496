// Opening the regular file that a SafePath names, and no other, for the requests of
// os/image_requests.h. Threads: any. Blocks: as the filesystem does.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"

namespace volumed {

// Opens the file with the open(2) flags `flags` (O_CLOEXEC is added), after it was found to be a
// regular one and, unless `expected` has no inode, this one: to open anything else can have
// effects. `what` names the effect in errors. Errors, not applied: those of os/safe_open.h;
// FailedPrecondition for what is no regular file, or another one than expected.
Result<Descriptor> OpenRegularFile(const SafePath& path, int flags, const StorageObject& expected,
                                   const KernelFeatures& features, const std::string& what);

// The same of a file that is open, if only with O_PATH.
Result<Descriptor> ReopenRegularFile(int file, int flags, const std::string& what);

// What tells the open file from others. Errors, not applied: FailedPrecondition if its mount was
// taken away meanwhile.
Result<StorageObject> ObjectOfFile(int file, const KernelFeatures& features,
                                   const std::string& what);

}  // namespace volumed
