#include "os/file_clone.h"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace volumed {

Status ShareBlocks(const CopySource& source, const MadeFile& target, const std::string& what) {
  if (::ioctl(target.file.get(), FICLONE, source.file.get()) == 0) return OkStatus();
  return Error::FromErrno(errno, what + ", FICLONE", Outcome::kMaybeApplied);
}

Result<FileExtent> DoCloneFile(const CloneFile& request, const KernelFeatures& features) {
  const std::string what = "clone " + request.from.Display() + " as " + request.to.Display();
  ASSIGN_OR_RETURN(const CopySource source,
                   OpenCopySource(request.from, request.expected, features, what));
  ASSIGN_OR_RETURN(const MadeFile target, MakeCopyTarget(request.to, source, what));
  if (const Status shared = ShareBlocks(source, target, what); !shared.ok()) {
    return TakenBack(target, shared.error());
  }
  RETURN_IF_ERROR(target.Sync(what));
  ASSIGN_OR_RETURN(FileExtent extent, ExtentOfFile(target.file.get(), features, what));
  extent.changed = true;
  return extent;
}

}  // namespace volumed
