#include "os/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "os/directory_reader.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"
#include "os/subvolume.h"

namespace volumed {
namespace {

// Descriptors kept open along the path down; those further up are closed and found again by "..".
constexpr size_t kOpenFrames = 64;

// A directory on the way down.
struct Frame {
  std::string name;
  Descriptor directory;
  dev_t device = 0;
  ino_t inode = 0;
  std::vector<std::string> pending;       // directories of the last block, to go down into
  std::unordered_set<std::string> stays;  // what could not be removed
  bool removed_any = false;               // since its last rewind
  bool at_end = false;
};

// Whether the name leads to the directory that was emptied; one that is missing cannot be mistaken.
bool IsStill(int parent, const std::string& name, const Frame& directory) {
  struct stat stat = {};
  if (::fstatat(parent, name.c_str(), &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
  return stat.st_dev == directory.device && stat.st_ino == directory.inode;
}

class TreeRemover {
 public:
  TreeRemover(int parent, std::string display, WorkMeter& meter)
      : parent_(parent),
        display_(std::move(display)),
        meter_(meter),
        block_(kDirectoryBlockBytes) {}

  Result<Changed> Run(const std::string& name);
  // The same of a directory that is open already, whatever `name` leads to by now.
  Result<Changed> RunOpen(const std::string& name, Descriptor directory, bool content_alone);

 private:
  enum class Entered { kYes, kNotADirectory, kLeft };

  int DirectoryAbove() const { return frames_.empty() ? parent_ : frames_.back().directory.get(); }
  std::string PathOf(const std::string& name) const;
  void Keep(const std::string& name, int sys_errno);
  void KeepMount(const std::string& name);
  void MarkStays(const std::string& name);
  Entered Enter(const std::string& name);
  Entered GoDown(const std::string& name, Descriptor directory);
  Result<Changed> Work();
  void Unlink(const std::string& name, bool is_directory);
  bool ReadBlock();
  bool Leave();
  bool Reopen(Frame& frame, const Frame& child);
  Result<Changed> Answer(bool cancelled) const;

  const int parent_;
  const std::string display_;
  WorkMeter& meter_;
  std::vector<char> block_;
  std::vector<Frame> frames_;
  bool content_alone_ = false;
  bool changed_ = false;
  std::string mount_point_;       // the first one that was in the way
  std::optional<Error> failure_;  // the first other failure
};

std::string TreeRemover::PathOf(const std::string& name) const {
  if (frames_.empty()) return display_;
  std::string path = display_;
  for (size_t i = 1; i < frames_.size(); ++i) path += "/" + frames_[i].name;
  return path + "/" + name;
}

void TreeRemover::MarkStays(const std::string& name) {
  if (!frames_.empty()) frames_.back().stays.insert(name);
}

void TreeRemover::Keep(const std::string& name, int sys_errno) {
  if (!failure_) {
    failure_ = Error::FromErrno(sys_errno, "remove " + PathOf(name), Outcome::kNotApplied);
    // Root is refused so what is immutable or append-only, or lies in such a directory.
    if (sys_errno == EPERM) {
      failure_ = Error::FromParts(failure_->code(), failure_->outcome(), sys_errno,
                                  failure_->message() + ": `chattr -R -i -a " + display_ + "`");
    }
  }
  MarkStays(name);
}

void TreeRemover::KeepMount(const std::string& name) {
  if (mount_point_.empty()) mount_point_ = PathOf(name);
  MarkStays(name);
}

void TreeRemover::Unlink(const std::string& name, bool is_directory) {
  if (::unlinkat(DirectoryAbove(), name.c_str(), is_directory ? AT_REMOVEDIR : 0) == 0) {
    changed_ = true;
    if (!frames_.empty()) frames_.back().removed_any = true;
    return;
  }
  const int failure = errno;
  if (failure == ENOENT) return;
  if (failure == EBUSY) {
    const Result<bool> mounted = IsMountPointAt(DirectoryAbove(), name);
    if (mounted.ok() && *mounted) return KeepMount(name);
  }
  // A directory that cannot go because of what stays in it is not a failure of its own.
  if ((failure == ENOTEMPTY || failure == EEXIST) && (failure_ || !mount_point_.empty())) {
    return MarkStays(name);
  }
  Keep(name, failure);
}

// Opens `name` and puts it on the way down.
TreeRemover::Entered TreeRemover::Enter(const std::string& name) {
  Descriptor directory(
      OpenChild(DirectoryAbove(), name.c_str(), O_RDONLY | O_DIRECTORY, RESOLVE_NO_XDEV));
  if (!directory.valid()) {
    if (errno == ENOTDIR || errno == ELOOP) return Entered::kNotADirectory;
    if (errno == EXDEV) {
      KeepMount(name);
    } else if (errno != ENOENT) {
      Keep(name, errno);
    }
    return Entered::kLeft;
  }
  return GoDown(name, std::move(directory));
}

TreeRemover::Entered TreeRemover::GoDown(const std::string& name, Descriptor directory) {
  struct stat stat = {};
  if (::fstat(directory.get(), &stat) != 0) {
    Keep(name, errno);
    return Entered::kLeft;
  }
  // On a btrfs whoever may write in a tree can make subvolumes in it, and nothing can be removed
  // from one that is read-only. If it stays so, what cannot be removed from it says why.
  const bool is_other = !frames_.empty() && stat.st_dev != frames_.back().device;
  if (is_other && IsSubvolumeRoot(directory.get())) MakeSubvolumeWritable(directory.get());
  Frame frame;
  frame.name = name;
  frame.directory = std::move(directory);
  frame.device = stat.st_dev;
  frame.inode = stat.st_ino;
  frames_.push_back(std::move(frame));
  if (frames_.size() > kOpenFrames) frames_[frames_.size() - kOpenFrames - 1].directory.Reset();
  return Entered::kYes;
}

// Removes the files of the next block and notes its directories. False when nothing is left that
// can be removed here.
bool TreeRemover::ReadBlock() {
  Frame& frame = frames_.back();
  if (frame.at_end) {
    // Removing while reading may skip entries: read again until a pass removes nothing.
    if (!frame.removed_any || ::lseek(frame.directory.get(), 0, SEEK_SET) != 0) return false;
    frame.at_end = false;
    frame.removed_any = false;
  }
  DirectoryReader reader(frame.directory.get(), block_);
  RawEntry entry = {};
  frame.at_end = true;
  std::vector<std::pair<std::string, unsigned char>> entries;
  while (reader.Next(entry)) {
    entries.emplace_back(entry.name, entry.type);
    if (reader.BlockEnds()) {
      frame.at_end = false;
      break;
    }
  }
  if (reader.sys_errno() != 0) {
    if (!failure_) {
      failure_ = Error::FromErrno(reader.sys_errno(), "list " + PathOf("."), Outcome::kNotApplied);
    }
    return false;
  }
  for (auto& [name, type] : entries) {
    if (frame.stays.count(name) != 0) continue;
    if (type == DT_DIR || type == DT_UNKNOWN) {
      frame.pending.push_back(std::move(name));
    } else {
      Unlink(name, false);
    }
  }
  return true;
}

bool TreeRemover::Reopen(Frame& frame, const Frame& child) {
  if (frame.directory.valid()) return true;
  Descriptor directory(::openat(child.directory.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat stat = {};
  if (!directory.valid() || ::fstat(directory.get(), &stat) != 0) {
    failure_ = Error::FromErrno(errno, "find the parent of " + child.name, Outcome::kNotApplied);
    return false;
  }
  // Somebody moved the directory in which we are: its parent is not ours to remove from.
  if (stat.st_dev != frame.device || stat.st_ino != frame.inode) {
    failure_ = Error::NotApplied(Code::kAborted, display_ + ": moved while it was removed");
    return false;
  }
  frame.directory = std::move(directory);
  frame.at_end = false;
  return true;
}

// Goes one directory up and removes the one that was left. False when the way up is lost.
bool TreeRemover::Leave() {
  if (content_alone_ && frames_.size() == 1) return false;
  Frame child = std::move(frames_.back());
  frames_.pop_back();
  if (!frames_.empty() && !Reopen(frames_.back(), child)) return false;
  child.directory.Reset();
  if (frames_.empty() && !IsStill(parent_, child.name, child)) {
    failure_ = Error::NotApplied(Code::kAborted, display_ + ": moved while it was removed");
    return false;
  }
  if (child.stays.empty()) {
    Unlink(child.name, true);
  } else {
    MarkStays(child.name);
  }
  return true;
}

Result<Changed> TreeRemover::Answer(bool cancelled) const {
  const Outcome outcome = changed_ ? Outcome::kMaybeApplied : Outcome::kNotApplied;
  if (cancelled) return WorkMeter::CancelledError(outcome).With("remove " + display_);
  if (!mount_point_.empty()) {
    return Error::FromParts(Code::kFailedPrecondition, outcome, EBUSY,
                            "remove " + display_ + ": " + mount_point_ + " is a mount point");
  }
  if (failure_) return changed_ ? failure_->AsMaybeApplied() : *failure_;
  return Changed{changed_};
}

Result<Changed> TreeRemover::Run(const std::string& name) {
  const Entered entered = Enter(name);
  if (entered == Entered::kNotADirectory) Unlink(name, false);
  if (entered != Entered::kYes) return Answer(false);
  return Work();
}

Result<Changed> TreeRemover::RunOpen(const std::string& name, Descriptor directory,
                                     bool content_alone) {
  content_alone_ = content_alone;
  if (GoDown(name, std::move(directory)) != Entered::kYes) return Answer(false);
  return Work();
}

Result<Changed> TreeRemover::Work() {
  while (!frames_.empty()) {
    if (!meter_.Step(1)) return Answer(true);
    if (!frames_.back().pending.empty()) {
      const std::string next = std::move(frames_.back().pending.back());
      frames_.back().pending.pop_back();
      if (Enter(next) == Entered::kNotADirectory) Unlink(next, false);
    } else if (!ReadBlock() && !Leave()) {
      break;
    }
  }
  return Answer(false);
}

}  // namespace

Result<Changed> RemoveTreeAt(int parent, const std::string& name, const std::string& display,
                             WorkMeter& meter) {
  return TreeRemover(parent, display, meter).Run(name);
}

namespace {

Error Refused(const RemoveTree& request, Outcome outcome, const std::string& why) {
  return Error::FromParts(Code::kFailedPrecondition, outcome, 0,
                          "remove " + request.path.Display() + ": " + why);
}

// One that the walk closes on its way down, of the same open directory.
Result<Descriptor> Another(const Descriptor& directory) {
  Descriptor copy(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  return Error::FromErrno(errno, "copy a descriptor", Outcome::kNotApplied);
}

Status CheckEmpty(const RemoveTree& request, const Descriptor& directory) {
  std::vector<char> block(kDirectoryBlockBytes);
  const std::string what = "list " + request.path.Display();
  if (::lseek(directory.get(), 0, SEEK_SET) != 0) {
    return Error::FromErrno(errno, what, Outcome::kMaybeApplied);
  }
  DirectoryReader reader(directory.get(), block);
  RawEntry entry = {};
  if (reader.Next(entry)) {
    return Refused(request, Outcome::kMaybeApplied,
                   "it is not empty afterwards: " + std::string(entry.name) +
                       " is there; it may still be in use");
  }
  if (reader.sys_errno() == 0) return OkStatus();
  return Error::FromErrno(reader.sys_errno(), what, Outcome::kMaybeApplied);
}

Result<Changed> RemoveContent(const RemoveTree& request, const KernelFeatures& features,
                              WorkMeter& meter) {
  ASSIGN_OR_RETURN(const Descriptor directory, OpenSafePath(request.path, O_RDONLY | O_DIRECTORY));
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(CheckIsExpected(directory.get(), request.expected, features)
                        .With("empty " + request.path.Display()));
  }
  ASSIGN_OR_RETURN(Descriptor walked, Another(directory));
  ASSIGN_OR_RETURN(const Changed changed,
                   TreeRemover(-1, request.path.Display(), meter)
                       .RunOpen(request.path.relative, std::move(walked), true));
  RETURN_IF_ERROR(CheckEmpty(request, directory));
  return changed;
}

// One that is missing may lie on a disk that was unmounted: that is no removal.
Result<Changed> RemoveExpected(const RemoveTree& request, const KernelFeatures& features,
                               WorkMeter& meter) {
  const std::string what = "remove " + request.path.Display();
  const auto refused = [&](const std::string& why) {
    return Refused(request, Outcome::kNotApplied, why);
  };
  const Result<ParentAndName> parent = OpenParent(request.path);
  if (!parent.ok() && parent.error().sys_errno() == ENOENT) {
    return refused("it is not there any more");
  }
  if (!parent.ok()) return parent.error();
  const Descriptor directory(OpenChild(parent->parent.get(), parent->name.c_str(),
                                       O_RDONLY | O_DIRECTORY, RESOLVE_NO_XDEV));
  if (!directory.valid()) {
    if (errno == ENOENT) return refused("it is not there any more");
    if (errno == ENOTDIR || errno == ELOOP) return refused("it is no directory any more");
    if (errno == EXDEV) return refused("it is a mount point");
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  RETURN_IF_ERROR(CheckIsExpected(directory.get(), request.expected, features).With(what));
  ASSIGN_OR_RETURN(Descriptor walked, Another(directory));
  ASSIGN_OR_RETURN(const Changed changed,
                   TreeRemover(parent->parent.get(), request.path.Display(), meter)
                       .RunOpen(parent->name, std::move(walked), false));
  struct stat stat = {};
  if (::fstat(directory.get(), &stat) != 0 || stat.st_nlink == 0) return changed;
  return Refused(request, Outcome::kMaybeApplied, "it was moved while it was removed");
}

}  // namespace

Result<Changed> DoRemoveTree(const RemoveTree& request, const KernelFeatures& features,
                             const CallOptions& options) {
  WorkMeter meter(options);
  if (request.content_alone) return RemoveContent(request, features, meter);
  if (request.expected.inode != 0) return RemoveExpected(request, features, meter);
  const Result<ParentAndName> parent = OpenParent(request.path);
  if (!parent.ok()) {
    if (parent.error().sys_errno() == ENOENT) return Changed{false};
    return parent.error();
  }
  return RemoveTreeAt(parent->parent.get(), parent->name, request.path.Display(), meter);
}

}  // namespace volumed
