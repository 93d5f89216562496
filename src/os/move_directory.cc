#include "os/move_directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "os/mounts_of_tree.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"
#include "os/subvolume.h"

namespace volumed {
namespace {

class DirectoryMover {
 public:
  DirectoryMover(const MoveDirectory& request, const KernelFeatures& features)
      : request_(request),
        features_(features),
        what_("move " + request.from.Display() + " to " + request.to.Display()) {}

  Result<Changed> Run() {
    if (request_.expected.inode == 0) {
      return Refused(Code::kInvalidArgument, "it is not said which directory that is");
    }
    ASSIGN_OR_RETURN(to_, OpenParent(request_.to).With(what_));
    const Descriptor there(OpenChild(to_.parent.get(), to_.name.c_str(), O_PATH));
    if (there.valid()) return FindMoved(there.get());
    if (errno != ENOENT) return Failed("look where it is to go", Outcome::kNotApplied);
    ASSIGN_OR_RETURN(from_, OpenParent(request_.from).With(what_));
    RETURN_IF_ERROR(OpenAndCheck());
    RETURN_IF_ERROR(Rename());
    RETURN_IF_ERROR(CheckIsMoved());
    RETURN_IF_ERROR(Sync(to_.parent.get()));
    RETURN_IF_ERROR(Sync(from_.parent.get()));
    return Changed{true};
  }

 private:
  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  Error Failed(const std::string& step, Outcome outcome) const {
    return Error::FromErrno(errno, what_ + ", " + step, outcome);
  }

  // What an earlier call has moved may not be on the disk yet.
  Result<Changed> FindMoved(int there) {
    const Status expected = CheckIsExpected(there, request_.expected, features_);
    if (!expected.ok()) {
      return Refused(Code::kAlreadyExists,
                     "something else is there: " + expected.error().message());
    }
    RETURN_IF_ERROR(Sync(to_.parent.get()));
    const Result<ParentAndName> from = OpenParent(request_.from);
    if (from.ok()) RETURN_IF_ERROR(Sync(from->parent.get()));
    return Changed{false};
  }

  Status OpenAndCheck() {
    directory_ = Descriptor(
        OpenChild(from_.parent.get(), from_.name.c_str(), O_PATH | O_DIRECTORY, RESOLVE_NO_XDEV));
    if (!directory_.valid()) {
      if (errno == EXDEV) return Refused(Code::kFailedPrecondition, "something is mounted on it");
      return Failed("open it", Outcome::kNotApplied);
    }
    RETURN_IF_ERROR(CheckIsExpected(directory_.get(), request_.expected, features_).With(what_));
    if (IsSubvolumeRoot(directory_.get())) {
      return Refused(Code::kFailedPrecondition, "it is the root of a subvolume");
    }
    return CheckNothingIsMounted(directory_.get(), features_, what_);
  }

  static bool MoveName(const ParentAndName& from, const ParentAndName& to) {
    return ::renameat2(from.parent.get(), from.name.c_str(), to.parent.get(), to.name.c_str(),
                       RENAME_NOREPLACE) == 0;
  }

  Status Rename() const {
    if (MoveName(from_, to_)) return OkStatus();
    if (errno != EXDEV) return Failed("rename it", Outcome::kNotApplied);
    return Error::FromParts(Code::kFailedPrecondition, Outcome::kNotApplied, EXDEV,
                            what_ +
                                ": it lies on another filesystem or in another subvolume, or "
                                "would be of another project: it could only be copied");
  }

  // The name may have become that of another one since it was opened.
  Status CheckIsMoved() const {
    const Descriptor there(OpenChild(to_.parent.get(), to_.name.c_str(), O_PATH));
    struct stat moved = {};
    struct stat wanted = {};
    if (there.valid() && ::fstat(there.get(), &moved) == 0 &&
        ::fstat(directory_.get(), &wanted) == 0 && moved.st_dev == wanted.st_dev &&
        moved.st_ino == wanted.st_ino) {
      return OkStatus();
    }
    const std::string back = MoveName(to_, from_) ? "it has its name again" : "it is left there";
    return Error::MaybeApplied(Code::kAborted,
                               what_ + ": another one was put there meanwhile, and " + back);
  }

  Status Sync(int parent) const {
    const Descriptor open(
        ::open(ProcFdPath(parent).c_str(), O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
    if (open.valid() && ::fsync(open.get()) == 0) return OkStatus();
    return Failed("sync", Outcome::kMaybeApplied);
  }

  const MoveDirectory& request_;
  const KernelFeatures& features_;
  const std::string what_;
  ParentAndName to_;
  ParentAndName from_;
  Descriptor directory_;
};

}  // namespace

Result<Changed> DoMoveDirectory(const MoveDirectory& request, const KernelFeatures& features) {
  return DirectoryMover(request, features).Run();
}

}  // namespace volumed
