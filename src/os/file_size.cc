#include "os/file_size.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "os/file_effects.h"
#include "os/regular_file.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

class FileSizer {
 public:
  FileSizer(const SetFileSize& request, const KernelFeatures& features)
      : request_(request),
        features_(features),
        what_("set the size of " + request.path.Display()) {}

  Result<FileExtent> Run() {
    if (request_.bytes <= 0) return Refused(Code::kInvalidArgument, "it has to be above zero");
    if (request_.make && request_.expected.inode != 0) {
      return Refused(Code::kInvalidArgument, "a file that is expected is not made");
    }
    RETURN_IF_ERROR(request_.make ? OpenOrMake() : Open());
    ASSIGN_OR_RETURN(const struct stat before, Look());
    RETURN_IF_ERROR(CheckSize(before));
    RETURN_IF_ERROR(SetMode(before));
    RETURN_IF_ERROR(Grow(before));
    RETURN_IF_ERROR(Sync());
    return Answer(before);
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  Error Failed(const std::string& step, Outcome outcome) const {
    return Error::FromErrno(errno, what_ + ", " + step, outcome);
  }

  Status Open() {
    ASSIGN_OR_RETURN(file_, OpenRegularFile(request_.path, O_RDWR | O_NONBLOCK | O_NOCTTY,
                                            request_.expected, features_, what_));
    return OkStatus();
  }

  Status OpenOrMake() {
    ASSIGN_OR_RETURN(place_, OpenParent(request_.path));
    const int parent = place_->parent.get();
    const char* name = place_->name.c_str();
    file_ = Descriptor(
        ::openat(parent, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    made_ = file_.valid();
    if (made_) return OkStatus();
    if (errno != EEXIST) return Failed("make it", Outcome::kNotApplied);
    const Descriptor there(OpenChild(parent, name, O_PATH | O_NOFOLLOW));
    struct stat info = {};
    const bool is_file = there.valid() && ::fstat(there.get(), &info) == 0 && S_ISREG(info.st_mode);
    errno = EEXIST;
    if (!is_file) return Failed("make it", Outcome::kNotApplied);
    ASSIGN_OR_RETURN(file_, ReopenRegularFile(there.get(), O_RDWR | O_NONBLOCK | O_NOCTTY, what_));
    return OkStatus();
  }

  Result<struct stat> Look() const {
    struct stat info = {};
    if (::fstat(file_.get(), &info) == 0) return info;
    return Failed("look at it", made_ ? Outcome::kMaybeApplied : Outcome::kNotApplied);
  }

  Status CheckSize(const struct stat& before) const {
    const std::string size = std::to_string(before.st_size) + " bytes";
    if (request_.make && before.st_size != 0 && before.st_size != request_.bytes) {
      return Refused(Code::kAlreadyExists, "there is a file of " + size);
    }
    if (before.st_size <= request_.bytes) return OkStatus();
    return Refused(Code::kFailedPrecondition, "it has " + size + ", and is never made smaller");
  }

  Status SetMode(const struct stat& before) {
    const mode_t mode = request_.mode & kPermissions;
    if (!request_.make || (before.st_mode & kPermissions) == mode) return OkStatus();
    if (::fchmod(file_.get(), mode) != 0) return Undo(before, Failed("set its mode", kMaybe));
    changed_ = true;
    return OkStatus();
  }

  // The size comes first: a file that was cut off while it got its blocks has the size already, and
  // the next call goes on with it.
  Status Grow(const struct stat& before) {
    if (before.st_size < request_.bytes && ::ftruncate(file_.get(), request_.bytes) != 0) {
      return Undo(before, Failed("grow", kMaybe));
    }
    if (!request_.allocate) return OkStatus();
    int allocated = -1;
    do {
      allocated = ::fallocate(file_.get(), 0, 0, request_.bytes);
    } while (allocated != 0 && errno == EINTR);
    if (allocated != 0) return Undo(before, Failed("allocate", kMaybe));
    return OkStatus();
  }

  // `error` is what had to be taken back; it is not applied if that works.
  Error Undo(const struct stat& before, const Error& error) const {
    const bool undone = made_ ? ::unlinkat(place_->parent.get(), place_->name.c_str(), 0) == 0
                              : !changed_ && ::ftruncate(file_.get(), before.st_size) == 0;
    return undone ? Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(),
                                     error.message())
                  : error;
  }

  Status Sync() const {
    if (::fsync(file_.get()) != 0) return Failed("sync", kMaybe);
    if (!request_.make) return OkStatus();
    const Descriptor directory(OpenChild(place_->parent.get(), ".", O_RDONLY | O_DIRECTORY));
    if (directory.valid() && ::fsync(directory.get()) == 0) return OkStatus();
    return Failed("sync its directory", kMaybe);
  }

  Result<FileExtent> Answer(const struct stat& before) const {
    struct stat after = {};
    if (::fstat(file_.get(), &after) != 0) return Failed("look at it", kMaybe);
    FileExtent extent;
    Result<StorageObject> object = ObjectOfFile(file_.get(), features_, what_);
    if (!object.ok()) return object.error().AsMaybeApplied();
    extent.object = *std::move(object);
    extent.size_bytes = after.st_size;
    extent.allocated_bytes = after.st_blocks * kStatBlock;
    // Blocks also come and go by themselves, as the filesystem writes back.
    const bool got_blocks = request_.allocate && after.st_blocks > before.st_blocks;
    extent.changed = made_ || changed_ || got_blocks || after.st_size != before.st_size;
    return extent;
  }

  static constexpr Outcome kMaybe = Outcome::kMaybeApplied;
  static constexpr mode_t kPermissions = 07777;

  const SetFileSize& request_;
  const KernelFeatures& features_;
  const std::string what_;
  std::optional<ParentAndName> place_;  // with `make`
  Descriptor file_;
  bool made_ = false;
  bool changed_ = false;  // its mode
};

}  // namespace

Result<FileExtent> DoSetFileSize(const SetFileSize& request, const KernelFeatures& features) {
  return FileSizer(request, features).Run();
}

}  // namespace volumed
