#include "os/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>

#include "os/safe_open.h"
#include "os/statmount.h"
#include "os/storage_identity.h"

namespace volumed {

Result<StorageObject> ObjectOfFile(int file, const KernelFeatures& features,
                                   const std::string& what) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountEntryOf(file, features));
  if (mount) return ReadStorageObject(file, mount->fs_type);
  return Error::NotApplied(Code::kFailedPrecondition,
                           what + ": its mount was taken away meanwhile");
}

Result<Descriptor> ReopenRegularFile(int file, int flags, const std::string& what) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  if (!S_ISREG(info.st_mode)) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a regular file");
  }
  return DescriptorFrom(::open(ProcFdPath(file).c_str(), flags | O_CLOEXEC), what);
}

Result<Descriptor> OpenRegularFile(const SafePath& path, int flags, const StorageObject& expected,
                                   const KernelFeatures& features, const std::string& what) {
  ASSIGN_OR_RETURN(const Descriptor there, OpenSafePath(path, O_PATH).With(what));
  struct stat info = {};
  if (::fstat(there.get(), &info) == 0 && S_ISREG(info.st_mode) && expected.inode != 0) {
    ASSIGN_OR_RETURN(const StorageObject now, ObjectOfFile(there.get(), features, what));
    const std::string difference = StorageDifference(expected, now);
    if (!difference.empty()) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               what + ": it is another file: " + difference);
    }
  }
  return ReopenRegularFile(there.get(), flags, what);
}

}  // namespace volumed
