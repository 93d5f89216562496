#include "os/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "os/file_effects.h"
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

bool MadeFile::Unmake() const {
  return made && ::unlinkat(place.parent.get(), place.name.c_str(), 0) == 0;
}

Status MadeFile::Sync(const std::string& what) const {
  if (::fsync(file.get()) != 0) {
    return Error::FromErrno(errno, what + ", sync", Outcome::kMaybeApplied);
  }
  const Descriptor directory(OpenChild(place.parent.get(), ".", O_RDONLY | O_DIRECTORY));
  if (directory.valid() && ::fsync(directory.get()) == 0) return OkStatus();
  return Error::FromErrno(errno, what + ", sync its directory", Outcome::kMaybeApplied);
}

Result<MadeFile> MakeRegularFile(const SafePath& path, const std::string& what) {
  MadeFile file;
  ASSIGN_OR_RETURN(file.place, OpenParent(path));
  const int parent = file.place.parent.get();
  const char* name = file.place.name.c_str();
  const auto failed = [&what](int error) {
    return Error::FromErrno(error, what + ", make it", Outcome::kNotApplied);
  };
  file.file =
      Descriptor(::openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  file.made = file.file.valid();
  if (file.made) return file;
  if (errno != EEXIST) return failed(errno);
  const Descriptor there(OpenChild(parent, name, O_PATH | O_NOFOLLOW));
  struct stat info = {};
  const bool is_file = there.valid() && ::fstat(there.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (!is_file) return failed(EEXIST);
  ASSIGN_OR_RETURN(file.file, ReopenRegularFile(there.get(), O_RDWR | O_NONBLOCK | O_NOCTTY, what));
  return file;
}

Result<FileExtent> ExtentOfFile(int file, const KernelFeatures& features, const std::string& what) {
  struct stat info = {};
  if (::fstat(file, &info) != 0) {
    return Error::FromErrno(errno, what + ", look at it", Outcome::kMaybeApplied);
  }
  Result<StorageObject> object = ObjectOfFile(file, features, what);
  if (!object.ok()) return object.error().AsMaybeApplied();
  FileExtent extent;
  extent.object = *std::move(object);
  extent.size_bytes = info.st_size;
  extent.allocated_bytes = info.st_blocks * kStatBlock;
  return extent;
}

}  // namespace volumed
