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
    ASSIGN_OR_RETURN(made_, MakeRegularFile(request_.path, what_));
    return OkStatus();
  }

  Result<struct stat> Look() const {
    struct stat info = {};
    if (::fstat(file(), &info) == 0) return info;
    return Failed("look at it", is_new() ? Outcome::kMaybeApplied : Outcome::kNotApplied);
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
    if (::fchmod(file(), mode) != 0) return Undo(before, Failed("set its mode", kMaybe));
    changed_ = true;
    return OkStatus();
  }

  // The size comes first: a file that was cut off while it got its blocks has the size already, and
  // the next call goes on with it.
  Status Grow(const struct stat& before) {
    if (before.st_size < request_.bytes && ::ftruncate(file(), request_.bytes) != 0) {
      return Undo(before, Failed("grow", kMaybe));
    }
    if (!request_.allocate) return OkStatus();
    int allocated = -1;
    do {
      allocated = ::fallocate(file(), 0, 0, request_.bytes);
    } while (allocated != 0 && errno == EINTR);
    if (allocated != 0) return Undo(before, Failed("allocate", kMaybe));
    return OkStatus();
  }

  // `error` is what had to be taken back; it is not applied if that works.
  Error Undo(const struct stat& before, const Error& error) const {
    const bool undone = is_new() ? made_->Unmake() : HasBack(before);
    return undone ? Error::FromParts(error.code(), Outcome::kNotApplied, error.sys_errno(),
                                     error.message())
                  : error;
  }

  // Gives a file that was there its size and its mode back; both are tried.
  bool HasBack(const struct stat& before) const {
    const bool size = ::ftruncate(file(), before.st_size) == 0;
    return (!changed_ || ::fchmod(file(), before.st_mode & kPermissions) == 0) && size;
  }

  Status Sync() const {
    if (made_) return made_->Sync(what_);
    return ::fsync(file()) == 0 ? OkStatus() : Status(Failed("sync", kMaybe));
  }

  Result<FileExtent> Answer(const struct stat& before) const {
    struct stat after = {};
    if (::fstat(file(), &after) != 0) return Failed("look at it", kMaybe);
    ASSIGN_OR_RETURN(FileExtent extent, ExtentOfFile(file(), features_, what_));
    // Blocks also come and go by themselves, as the filesystem writes back.
    const bool got_blocks = request_.allocate && after.st_blocks > before.st_blocks;
    extent.changed = is_new() || changed_ || got_blocks || after.st_size != before.st_size;
    return extent;
  }

  int file() const { return made_ ? made_->file.get() : file_.get(); }
  bool is_new() const { return made_ && made_->made; }

  static constexpr Outcome kMaybe = Outcome::kMaybeApplied;
  static constexpr mode_t kPermissions = 07777;

  const SetFileSize& request_;
  const KernelFeatures& features_;
  const std::string what_;
  std::optional<MadeFile> made_;  // with `make`
  Descriptor file_;               // without
  bool changed_ = false;          // its mode
};

}  // namespace

Result<FileExtent> DoSetFileSize(const SetFileSize& request, const KernelFeatures& features) {
  return FileSizer(request, features).Run();
}

}  // namespace volumed
