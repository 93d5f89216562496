#include "os/storage_relation.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/descriptor.h"
#include "os/tree_walk.h"

namespace volumed {
namespace {

Error Failed(const char* what) { return Error::FromErrno(errno, what, Outcome::kNotApplied); }

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether `wanted` is the open directory or one above it, on its mount. What lies outside of a bind
// mount ends there.
Result<bool> LiesAtOrBelow(int directory, const struct stat& wanted) {
  Descriptor at(::openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat before = {};
  if (!at.valid() || ::fstat(at.get(), &before) != 0) return Failed("look at a directory");
  while (!IsSameFile(before, wanted)) {
    struct open_how how = {};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_XDEV;
    Descriptor above(static_cast<int>(::syscall(SYS_openat2, at.get(), "..", &how, sizeof(how))));
    if (!above.valid() && errno == EINTR) continue;
    if (!above.valid() && (errno == ENOENT || errno == EXDEV)) return false;
    struct stat info = {};
    if (!above.valid() || ::fstat(above.get(), &info) != 0) return Failed("look above a directory");
    if (IsSameFile(info, before)) return false;  // the root of the filesystem
    before = info;
    at = std::move(above);
  }
  return true;
}

// Looks for one inode. The subvolumes of a btrfs number theirs alike.
class InodeVisitor final : public TreeVisitor {
 public:
  explicit InodeVisitor(const struct stat& wanted) : wanted_(wanted) {}
  int Visit(int, const WalkEntry& entry) override {
    const bool is_it =
        entry.stat.stx_ino == wanted_.st_ino &&
        makedev(entry.stat.stx_dev_major, entry.stat.stx_dev_minor) == wanted_.st_dev;
    if (is_it) found_.store(true, std::memory_order_relaxed);
    return 0;
  }
  bool found() const { return found_.load(std::memory_order_relaxed); }

 private:
  const struct stat wanted_;
  std::atomic<bool> found_{false};
};

Result<bool> HoldsInode(int directory, const struct stat& wanted) {
  Descriptor root(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return Failed("open a directory");
  InodeVisitor visitor(wanted);
  const CallOptions none;
  WorkMeter meter(none);
  TreeWalk walk(visitor, meter, "a directory");
  RETURN_IF_ERROR(walk.Run(std::move(root)));
  return visitor.found();
}

}  // namespace

Result<StorageRelation> RelationOf(int found, int directory) {
  struct stat its = {};
  struct stat top = {};
  if (::fstat(found, &its) != 0 || ::fstat(directory, &top) != 0) return Failed("look at a file");
  if (IsSameFile(its, top)) return StorageRelation::kInside;
  if (!S_ISDIR(top.st_mode)) return StorageRelation::kElsewhere;
  const bool is_directory = S_ISDIR(its.st_mode);
  ASSIGN_OR_RETURN(const bool inside,
                   is_directory ? LiesAtOrBelow(found, top) : HoldsInode(directory, its));
  if (inside) return StorageRelation::kInside;
  if (!is_directory) return StorageRelation::kElsewhere;
  ASSIGN_OR_RETURN(const bool around, LiesAtOrBelow(directory, its));
  return around ? StorageRelation::kAround : StorageRelation::kElsewhere;
}

}  // namespace volumed
