// The file that CloneFile, CopyFile and CutFrozen make of another one. Threads: any; one file's at
// a time. Blocks: as the filesystem does.
#pragma once

#include <string>

#include "base/descriptor.h"
#include "base/result.h"
#include "os/kernel_requests.h"
#include "os/regular_file.h"

namespace volumed {

// What a copy is made of.
struct CopySource {
  Descriptor file;  // read-only
  StorageObject object{};
  // When it was changed last, as text. Whoever writes to it changes this.
  std::string changed{};
};
// Errors, not applied: those of OpenRegularFile.
Result<CopySource> OpenCopySource(const SafePath& from, const StorageObject& expected,
                                  const KernelFeatures& features, const std::string& what);

// Makes the file, with the mark that says of what it is a copy, or opens the one that an earlier
// call has made of the same source; it is empty then. Errors, not applied: as CloneFile's; maybe
// applied once an earlier one was emptied.
Result<MadeFile> MakeCopyTarget(const SafePath& to, const CopySource& source,
                                const std::string& what);
// Opens one that an earlier call has made of the same source, as it is. Errors, not applied:
// FailedPrecondition without the mark, and if the source was changed since.
Result<MadeFile> ReopenCopyTarget(const SafePath& to, const CopySource& source,
                                  const std::string& what);

// Errors, maybe applied: FailedPrecondition if the source was changed since it was opened: what was
// copied of it is of two moments.
Status CheckSourceUnchanged(const CopySource& source, const std::string& what);

// `error`, which is not applied if `target` was made by this call and can be taken back.
Error TakenBack(const MadeFile& target, const Error& error);

}  // namespace volumed
