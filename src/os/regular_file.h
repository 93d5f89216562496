// Opening the regular file that a SafePath names, and no other, for the requests of
// os/image_requests.h. Threads: any. Blocks: as the filesystem does.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"
#include "os/safe_open.h"

namespace volumed {

// Opens the file with the open(2) flags `flags` (O_CLOEXEC is added), after it was found to be a
// regular one and, unless `expected` has no inode, this one: to open anything else can have
// effects. `what` names the effect in errors. Errors, not applied: those of os/safe_open.h;
// FailedPrecondition for what is no regular file, or another one than expected.
Result<Descriptor> OpenRegularFile(const SafePath& path, int flags, const StorageObject& expected,
                                   const KernelFeatures& features, const std::string& what);

// The same of a file that is open, if only with O_PATH.
Result<Descriptor> ReopenRegularFile(int file, int flags, const std::string& what);

// A file that was opened by its name, or made there.
struct MadeFile {
  ParentAndName place;
  Descriptor file;    // for reading and writing
  bool made = false;  // by this call; else it was there

  // Takes the name back, if this call has made the file. Whether it is gone then.
  bool Unmake() const;
  // Writes the file and its name to the disk. Errors: errno, maybe applied.
  Status Sync(const std::string& what) const;
};
// Makes an empty file (0600), or opens the regular one that is there. Errors, not applied: NotFound
// for a missing directory; AlreadyExists (EEXIST) for what is no regular file.
Result<MadeFile> MakeRegularFile(const SafePath& path, const std::string& what);

// The open file as it is now. `changed` is left to the caller. Errors: maybe applied.
Result<FileExtent> ExtentOfFile(int file, const KernelFeatures& features, const std::string& what);

// What tells the open file from others. Errors, not applied: FailedPrecondition if its mount was
// taken away meanwhile.
Result<StorageObject> ObjectOfFile(int file, const KernelFeatures& features,
                                   const std::string& what);

}  // namespace volumed
