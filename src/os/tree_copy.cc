#include "os/tree_copy.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "os/copy_attributes.h"
#include "os/copy_steps.h"
#include "os/directory_reader.h"
#include "os/file_effects.h"
#include "os/safe_open.h"
#include "os/storage_identity.h"
#include "os/subvolume.h"

namespace volumed {
namespace {

// Levels above the one that is copied whose directories stay open. The others are found again from
// below.
constexpr size_t kOpenLevels = 64;
constexpr size_t kMostNameBytesKept = size_t{64} << 20;
constexpr size_t kMostLinked = size_t{1} << 20;
constexpr int kCopyDirectory = O_RDONLY | O_DIRECTORY;
constexpr mode_t kUnfinishedDirectory = 0700;
constexpr mode_t kUnfinishedFile = 0600;
constexpr mode_t kStandIn = 0755;
constexpr size_t kMostShownPath = 1024;  // bytes of a path in an error
constexpr int kNamesUncounted = 64;      // by which a directory may have grown

bool IsSameInode(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

class TreeCopier {
 public:
  TreeCopier(const CopyTree& request, const KernelFeatures& features, const CallOptions& options)
      : request_(request),
        features_(features),
        what_("copy " + request.from.Display() + " to " + request.to.Display()),
        pace_(options, request.bytes_per_second),
        block_(kDirectoryBlockBytes) {}

  Result<TreeCopied> Run() {
    RETURN_IF_ERROR(Begin());
    const Status copied = Work();
    if (copied.ok()) return TreeCopied{allocated_, has_shared_};
    const Error& error = copied.error();
    const Outcome outcome = made_any_ ? Outcome::kMaybeApplied : Outcome::kNotApplied;
    return Error::FromParts(error.code(), outcome, error.sys_errno(), error.message());
  }

 private:
  // A directory that is being copied.
  struct Level {
    std::string name;
    Descriptor from;
    Descriptor to;
    struct stat stat = {};  // of `from`, as it was entered
    struct stat made = {};  // of `to`
    int64_t counted = 0;    // of the blocks of `to`
    bool was_read = false;
    std::vector<std::string> directories = {};  // in it, that are still to be copied
  };
  // A file of which not all names were met yet.
  struct Linked {
    std::string handle;  // of its copy
    nlink_t left = 0;
  };

  Error Refused(Code code, const std::string& why) const {
    return Error::NotApplied(code, what_ + ": " + why);
  }
  // Of an entry of the directory that is being copied; null: of that itself. Uses `failure`.
  Error Failed(const char* name, const std::string& step, int failure) const {
    std::string path;
    for (const Level& level : levels_) path += level.name.empty() ? "" : level.name + "/";
    if (path.size() > kMostShownPath) path.replace(0, path.size() - kMostShownPath, "...");
    return Error::FromErrno(failure, what_ + ", " + step + " " + path + (name ? name : ""),
                            Outcome::kMaybeApplied);
  }

  Status Begin() {
    if (request_.bytes_per_second < 0) return Refused(Code::kInvalidArgument, "no such rate");
    if (request_.most_bytes < 0) return Refused(Code::kInvalidArgument, "no such bound");
    Level top;
    ASSIGN_OR_RETURN(top.from, OpenSafePath(request_.from, kCopyDirectory).With(what_));
    if (request_.expected.inode != 0) {
      RETURN_IF_ERROR(CheckIsExpected(top.from.get(), request_.expected, features_).With(what_));
    }
    ASSIGN_OR_RETURN(top.to, OpenSafePath(request_.to, kCopyDirectory).With(what_));
    if (::fstat(top.from.get(), &top.stat) != 0 || ::fstat(top.to.get(), &top.made) != 0) {
      return Error::FromErrno(errno, what_, Outcome::kNotApplied);
    }
    DirectoryReader reader(top.to.get(), block_);
    RawEntry entry = {};
    if (reader.Next(entry)) {
      return Refused(Code::kFailedPrecondition, "it has \"" + std::string(entry.name) + "\" in it");
    }
    if (reader.sys_errno() != 0) {
      return Error::FromErrno(reader.sys_errno(), what_, Outcome::kNotApplied);
    }
    if (IsSameInode(top.stat, top.made)) {
      return Refused(Code::kInvalidArgument, "it is to be a copy of itself");
    }
    ASSIGN_OR_RETURN(root_, top.to.Duplicate());
    root_stat_ = top.made;
    levels_.push_back(std::move(top));
    return OkStatus();
  }

  Status Work() {
    RETURN_IF_ERROR(CountDirectory());
    while (!levels_.empty()) {
      RETURN_IF_ERROR(pace_.Wait(written_, copied_).With(what_));
      Level& level = levels_.back();
      if (!level.was_read) {
        level.was_read = true;
        RETURN_IF_ERROR(ReadEntries());
      } else if (!level.directories.empty()) {
        const std::string name = std::move(level.directories.back());
        level.directories.pop_back();
        kept_bytes_ -= CostOf(name);
        RETURN_IF_ERROR(Enter(name));
      } else {
        RETURN_IF_ERROR(Leave());
      }
    }
    if (::syncfs(root_.get()) == 0) return OkStatus();
    return Error::FromErrno(errno, what_ + ", sync", Outcome::kMaybeApplied);
  }

  // ---- what the copy has ------------------------------------------------------------------------

  // Whether that and `more` is within the bound.
  Status Admit(int64_t more) const {
    if (request_.most_bytes == 0 || more <= request_.most_bytes - allocated_) return OkStatus();
    return Error::FromParts(
        Code::kResourceExhausted, Outcome::kMaybeApplied, EDQUOT,
        what_ + ": it would have more than " + std::to_string(request_.most_bytes) + " bytes");
  }

  // What the filesystem has given to a file or directory of the copy, of which `counted` is counted
  // already: by its blocks, as its length says nothing of these.
  Status Count(int made, int64_t& counted, const char* name) {
    struct stat now = {};
    if (::fstat(made, &now) != 0) return Failed(name, "look at the copy of", errno);
    const int64_t bytes = int64_t{now.st_blocks} * kStatBlock;
    allocated_ += bytes - std::exchange(counted, bytes);
    return Admit(0);
  }

  // One grows with the names in it.
  Status CountDirectory() {
    names_uncounted_ = 0;
    return Count(levels_.back().to.get(), levels_.back().counted, nullptr);
  }
  Status CountName() {
    return ++names_uncounted_ < kNamesUncounted ? OkStatus() : CountDirectory();
  }

  // ---- directories ------------------------------------------------------------------------------

  // All that is no directory is copied at once.
  Status ReadEntries() {
    DirectoryReader reader(levels_.back().from.get(), block_);
    RawEntry entry = {};
    while (reader.Next(entry)) {
      if (entry.type == DT_DIR) {
        RETURN_IF_ERROR(KeepForLater(entry.name));
      } else {
        RETURN_IF_ERROR(CopyEntry(entry.name));
      }
    }
    return reader.sys_errno() == 0 ? OkStatus()
                                   : Status(Failed(nullptr, "list", reader.sys_errno()));
  }

  static size_t CostOf(const std::string& name) { return sizeof(std::string) + name.size(); }

  Status KeepForLater(const char* name) {
    levels_.back().directories.emplace_back(name);
    return Keep(CostOf(levels_.back().directories.back()));
  }
  Status Keep(size_t bytes) {
    kept_bytes_ += bytes;
    if (kept_bytes_ <= kMostNameBytesKept) return OkStatus();
    return Error::MaybeApplied(Code::kResourceExhausted,
                               what_ + ": too many directories are in it, or in each other");
  }

  // An empty directory in its place would be taken for what somebody has there.
  Error WhyNoSubvolume(const std::string& name) const {
    const Error where = Failed(name.c_str(), "copy", EXDEV);
    return Error::FromParts(Code::kFailedPrecondition, Outcome::kMaybeApplied, EXDEV,
                            where.message() +
                                ": it is a subvolume, which is no part of the directory and would "
                                "be missing: delete it, or make it a directory");
  }

  // Of another filesystem, which is asked nothing.
  Status MakeStandIn(const char* name) {
    made_any_ = true;
    const int to = levels_.back().to.get();
    if (::mkdirat(to, name, kStandIn) == 0 || errno == EEXIST) return OkStatus();
    return Failed(name, "make", errno);
  }

  Status Enter(const std::string& name) {
    const Level& above = levels_.back();
    Level level;
    level.name = name;
    level.from =
        Descriptor(OpenChild(above.from.get(), name.c_str(), kCopyDirectory, RESOLVE_NO_XDEV));
    if (!level.from.valid()) {
      // Removed, or exchanged for something else, since its name was read.
      if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return OkStatus();
      return errno == EXDEV ? MakeStandIn(name.c_str()) : Failed(name.c_str(), "open", errno);
    }
    if (::fstat(level.from.get(), &level.stat) != 0) return Failed(name.c_str(), "look at", errno);
    if (level.stat.st_dev != levels_.front().stat.st_dev) {
      if (IsSubvolumeRoot(level.from.get())) return WhyNoSubvolume(name);
      return MakeStandIn(name.c_str());
    }
    if (IsSameInode(level.stat, root_stat_)) {
      return Error::MaybeApplied(Code::kFailedPrecondition, what_ + ": the one is in the other");
    }
    made_any_ = true;
    if (::mkdirat(above.to.get(), name.c_str(), kUnfinishedDirectory) != 0) {
      // It was moved while its directory was read, and met twice.
      return errno == EEXIST ? OkStatus() : Status(Failed(name.c_str(), "make", errno));
    }
    level.to = Descriptor(OpenChild(above.to.get(), name.c_str(), kCopyDirectory, RESOLVE_NO_XDEV));
    if (!level.to.valid() || ::fstat(level.to.get(), &level.made) != 0) {
      return Failed(name.c_str(), "open the copy of", errno);
    }
    RETURN_IF_ERROR(Keep(sizeof(Level) + name.size()));
    RETURN_IF_ERROR(CountDirectory());
    levels_.push_back(std::move(level));
    RETURN_IF_ERROR(CountDirectory());
    if (levels_.size() > kOpenLevels) {
      Level& far = levels_[levels_.size() - kOpenLevels - 1];
      far.from.Reset();
      far.to.Reset();
    }
    return OkStatus();
  }

  // What makes a directory's mode and times what they are comes after all that is in it.
  Status Leave() {
    const Level& level = levels_.back();
    made_any_ = true;
    if (const int failure = CopyAttributes(level.from.get(), level.stat, level.to.get())) {
      return Failed(nullptr, "give its attributes to", failure);
    }
    RETURN_IF_ERROR(CountDirectory());
    const Level child = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty()) return OkStatus();
    kept_bytes_ -= sizeof(Level) + child.name.size();
    Level& above = levels_.back();
    RETURN_IF_ERROR(FindAgain(above.from, child.from.get(), above.stat));
    return FindAgain(above.to, child.to.get(), above.made);
  }

  // The directory above, if it is still the one that was left.
  Status FindAgain(Descriptor& directory, int child, const struct stat& was) const {
    if (directory.valid()) return OkStatus();
    Descriptor found(::openat(child, "..", kCopyDirectory | O_CLOEXEC));
    struct stat now = {};
    if (!found.valid() || ::fstat(found.get(), &now) != 0 || !IsSameInode(now, was)) {
      return Error::MaybeApplied(Code::kAborted,
                                 what_ + ": a directory in it was moved or removed meanwhile");
    }
    directory = std::move(found);
    return OkStatus();
  }

  // ---- files ------------------------------------------------------------------------------------

  // Whatever has the name is opened once, and all that is read of it is read from that.
  Status CopyEntry(const char* name) {
    RETURN_IF_ERROR(pace_.Wait(written_, copied_).With(what_));
    const Descriptor from(OpenChild(levels_.back().from.get(), name, O_PATH, RESOLVE_NO_XDEV));
    if (!from.valid()) {
      // Removed meanwhile, or hidden by a mount.
      if (errno == ENOENT || errno == EXDEV) return OkStatus();
      return Failed(name, "open", errno);
    }
    struct stat stat = {};
    if (::fstat(from.get(), &stat) != 0) return Failed(name, "look at", errno);
    if (S_ISDIR(stat.st_mode)) return KeepForLater(name);
    made_any_ = true;
    RETURN_IF_ERROR(CountName());
    if (stat.st_nlink == 1) return CopyFileOf(name, from.get(), stat);
    const std::string handle = FileHandleOf(from.get());
    const auto linked = linked_.find(handle);
    if (linked != linked_.end()) return LinkAgain(name, linked);
    RETURN_IF_ERROR(CopyFileOf(name, from.get(), stat));
    return Remember(name, handle, stat);
  }

  Status CopyFileOf(const char* name, int from, const struct stat& stat) {
    const int directory = levels_.back().to.get();
    Descriptor to;
    if (S_ISREG(stat.st_mode)) {
      to = Descriptor(::openat(directory, name,
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
                               kUnfinishedFile));
    } else if (MakeSpecial(directory, name, from, stat) == 0) {
      to = Descriptor(OpenChild(directory, name, O_PATH));
    }
    if (!to.valid()) {
      // It was moved while its directory was read, and met twice.
      return errno == EEXIST ? OkStatus() : Status(Failed(name, "make", errno));
    }
    if (S_ISREG(stat.st_mode)) RETURN_IF_ERROR(CopyContent(name, from, to.get(), stat));
    if (const int failure = CopyAttributes(from, stat, to.get())) {
      return Failed(name, "give its attributes to", failure);
    }
    int64_t counted = 0;
    return Count(to.get(), counted, name);
  }

  // 0, or -1 with errno.
  static int MakeSpecial(int directory, const char* name, int from, const struct stat& stat) {
    if (!S_ISLNK(stat.st_mode)) {
      const mode_t type = stat.st_mode & S_IFMT;
      return ::mknodat(directory, name, type | kUnfinishedFile, stat.st_rdev);
    }
    std::array<char, PATH_MAX> target;
    const ssize_t size = ::readlinkat(from, "", target.data(), target.size());
    if (size < 0) return -1;
    return ::symlinkat(std::string(target.data(), static_cast<size_t>(size)).c_str(), directory,
                       name);
  }

  Status CopyContent(const char* name, int path, int to, const struct stat& stat) {
    const int64_t size = stat.st_size;
    const Descriptor from(OpenForReading(path));
    if (!from.valid()) return Failed(name, "open", errno);
    // Those that are shared come at once. What the file needs to find them may be more than what
    // the copy does.
    const int64_t has_blocks = std::min(size, int64_t{stat.st_blocks} * kStatBlock);
    if (shares_) RETURN_IF_ERROR(Admit(has_blocks - has_blocks / 64));
    const bool is_shared = shares_ && ::ioctl(to, FICLONE, from.get()) == 0;
    // Any other failure is that of this file, or comes again.
    if (!is_shared && (errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV)) shares_ = false;
    // A copy in the kernel may share them just as well.
    has_shared_ = has_shared_ || (shares_ && size > 0);
    if (is_shared) {
      copied_ += size;
      return OkStatus();
    }
    // What lies in no data stays a hole. What somebody adds meanwhile is not waited for.
    if (::ftruncate(to, size) != 0) return Failed(name, "give its size to", errno);
    int64_t has = 0;
    const auto step = [&](int64_t at, int64_t bytes) -> Result<int64_t> {
      RETURN_IF_ERROR(pace_.Wait(written_, copied_).With(what_));
      RETURN_IF_ERROR(Admit(has + bytes));
      ASSIGN_OR_RETURN(const int64_t got, CopySome(from.get(), to, at, bytes));
      has += got;
      written_ += got;
      copied_ += got;
      return got;
    };
    return CopyData(from.get(), 0, size, what_ + ", " + name, step);
  }

  // Whoever counts on the times of its last reading is not told of this one.
  static int OpenForReading(int path) {
    const std::string file = ProcFdPath(path);
    constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    const int open = ::open(file.c_str(), kFlags | O_NOATIME);
    return open >= 0 || errno != EPERM ? open : ::open(file.c_str(), kFlags);
  }

  // In the kernel, if that can.
  Result<int64_t> CopySome(int from, int to, int64_t at, int64_t bytes) {
    if (copies_in_kernel_) {
      off64_t in = at;
      off64_t out = at;
      const ssize_t got = ::copy_file_range(from, &in, to, &out, static_cast<size_t>(bytes), 0);
      if (got > 0) return static_cast<int64_t>(got);
      // Some filesystems answer 0 for what they cannot do. Source: copy_file_range(2), BUGS.
      if (got < 0 && errno != EOPNOTSUPP && errno != EXDEV && errno != EINVAL && errno != ENOSYS) {
        return Error::FromErrno(errno, what_ + ", copy", Outcome::kMaybeApplied);
      }
      if (got < 0) copies_in_kernel_ = false;
    }
    return CopyBytes(from, to, at, bytes, buffer_, what_);
  }

  // ---- files with several names -----------------------------------------------------------------

  // By the handle, which tells a file from another one that gets its inode meanwhile.
  Status Remember(const char* name, const std::string& handle, const struct stat& stat) {
    if (linked_.size() >= kMostLinked) {
      return Error::MaybeApplied(Code::kResourceExhausted,
                                 what_ + ": too many files in it have several names");
    }
    const Descriptor to(OpenChild(levels_.back().to.get(), name, O_PATH));
    if (!to.valid()) return Failed(name, "open the copy of", errno);
    std::string copy = FileHandleOf(to.get());
    if (handle.empty() || copy.empty()) {
      return Error::MaybeApplied(Code::kUnimplemented,
                                 what_ +
                                     ": its filesystem has no file handles, by which a file with "
                                     "several names is found again");
    }
    // Of one that was removed while it was open there is no name left.
    if (stat.st_nlink > 1)
      linked_.insert_or_assign(handle, Linked{std::move(copy), stat.st_nlink - 1});
    return OkStatus();
  }

  using LinkedFiles = std::unordered_map<std::string, Linked>;

  Status LinkAgain(const char* name, LinkedFiles::iterator linked) {
    const Result<Descriptor> copy = OpenByHandle(root_.get(), linked->second.handle);
    if (!copy.ok()) return copy.error().With(what_ + ", " + name).AsMaybeApplied();
    if (::linkat(AT_FDCWD, ProcFdPath(copy->get()).c_str(), levels_.back().to.get(), name,
                 AT_SYMLINK_FOLLOW) != 0 &&
        errno != EEXIST) {
      return Failed(name, "link", errno);
    }
    if (--linked->second.left == 0) linked_.erase(linked);
    return OkStatus();
  }

  const CopyTree& request_;
  const KernelFeatures& features_;
  const std::string what_;
  CopyPace pace_;
  std::vector<char> block_;   // of a directory's entries
  std::vector<char> buffer_;  // of a file's bytes
  std::vector<Level> levels_;
  Descriptor root_;  // of the copy
  struct stat root_stat_ = {};
  LinkedFiles linked_;     // by their handles
  size_t kept_bytes_ = 0;  // of names and levels
  int64_t written_ = 0;    // bytes that were written
  int64_t copied_ = 0;     // and those that are shared besides
  int64_t allocated_ = 0;  // by what is counted of the copy
  int names_uncounted_ = 0;
  bool shares_ = true;  // the filesystem may
  bool has_shared_ = false;
  bool copies_in_kernel_ = true;
  bool made_any_ = false;
};

}  // namespace

Result<TreeCopied> DoCopyTree(const CopyTree& request, const KernelFeatures& features,
                              const CallOptions& options) {
  return TreeCopier(request, features, options).Run();
}

}  // namespace volumed
