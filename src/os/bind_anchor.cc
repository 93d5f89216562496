#include "os/bind_anchor.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "os/safe_open.h"
#include "os/statmount.h"

namespace volumed {
namespace {

constexpr char kAttachedName[] = ".bind-anchor";

struct FileId {
  uint64_t mount_id = 0;
  uint64_t inode = 0;
  uint32_t major = 0;
  uint32_t minor = 0;

  bool SameFile(const FileId& other) const {
    return inode == other.inode && major == other.major && minor == other.minor;
  }
};

// What the kernel has in memory; asks no filesystem (AT_STATX_DONT_SYNC).
std::optional<FileId> Identify(int fd) {
  struct statx info = {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID | STATX_INO, &info) != 0 ||
      (info.stx_mask & STATX_MNT_ID) == 0) {
    return std::nullopt;
  }
  return FileId{info.stx_mnt_id, info.stx_ino, info.stx_dev_major, info.stx_dev_minor};
}

Error FromErrno(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

Status MakePrivate(int fd) {
  mount_attr attributes = {};
  attributes.propagation = MS_PRIVATE;
  if (::mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0) {
    return FromErrno("make the bind anchor private");
  }
  return OkStatus();
}

std::optional<std::string> Below(const std::string& path, const std::string& mount_point) {
  if (path == mount_point) return "";
  const std::string prefix = mount_point == "/" ? "/" : mount_point + "/";
  if (path.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
  return path.substr(prefix.size());
}

}  // namespace

BindAnchor::BindAnchor(const KernelFeatures& features, std::string agent_root)
    : features_(features), agent_root_(std::move(agent_root)) {
  MutexLock lock(mu_);
  if (agent_root_.empty()) disabled_reason_ = "no agent root is set";
  if (!features.mount_setattr) disabled_reason_ = "the kernel has no mount_setattr";
  made_ = !disabled_reason_.empty();
}

std::string BindAnchor::disabled_reason() const {
  MutexLock lock(mu_);
  return disabled_reason_;
}

Descriptor BindAnchor::Find(const SafePath& source_path, const Descriptor& source) {
  MutexLock lock(mu_);
  const std::optional<FileId> wanted = Identify(source.get());
  if (!wanted) return Descriptor();
  if (!made_) Make();
  if (!anchor_.valid()) return Descriptor();
  if (wanted->mount_id != mount_id_) {
    // The root may have become a mount point of its own since (MakeShared).
    const Descriptor root(::open(agent_root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const std::optional<FileId> now = root.valid() ? Identify(root.get()) : std::nullopt;
    if (!now || now->mount_id == mount_id_ || now->mount_id != wanted->mount_id) {
      return Descriptor();
    }
    Make();
    if (!anchor_.valid() || wanted->mount_id != mount_id_) return Descriptor();
  }
  const std::optional<std::string> name = Below(source_path.Display(), mount_point_);
  if (!name) return Descriptor();
  Descriptor found(
      OpenChild(anchor_.get(), name->empty() ? "." : name->c_str(), O_PATH, RESOLVE_NO_XDEV));
  if (!found.valid()) return Descriptor();
  // The path is for finding only; what counts is that it is the very file that was checked.
  const std::optional<FileId> same = Identify(found.get());
  if (!same || !same->SameFile(*wanted)) return Descriptor();
  return found;
}

void BindAnchor::Make() {
  made_ = true;
  anchor_.Reset();
  const Descriptor root(::open(agent_root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Status made = root.valid() ? MakeFrom(root) : Status(FromErrno("open " + agent_root_));
  disabled_reason_ = made.ok() ? "" : made.error().message();
  if (!made.ok()) anchor_.Reset();
}

Status BindAnchor::MakeFrom(const Descriptor& root) {
  const std::optional<FileId> id = Identify(root.get());
  if (!id) return FromErrno("statx " + agent_root_);
  ASSIGN_OR_RETURN(const std::optional<MountOfFile> mount, FindMountOf(root.get(), features_));
  if (!mount) {
    return Error::NotApplied(Code::kNotFound, "the mount of " + agent_root_ + " is not listed");
  }
  mount_id_ = id->mount_id;
  mount_point_ = mount->mount_point;
  // Only the root of a mount may be cloned whole: the names in the clone are then the same.
  const Descriptor top(::open(mount_point_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::optional<FileId> top_id = top.valid() ? Identify(top.get()) : std::nullopt;
  if (!top_id || top_id->mount_id != mount_id_) {
    return Error::NotApplied(Code::kFailedPrecondition, mount_point_ + " is mounted over");
  }
  Descriptor clone(::open_tree(top.get(), "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!clone.valid()) return FromErrno("clone the mount at " + mount_point_);
  RETURN_IF_ERROR(MakePrivate(clone.get()));
  if (!features_.open_tree_detached_clone) return Attach(std::move(clone));
  anchor_ = std::move(clone);
  return OkStatus();
}

// All workers share the one attached anchor; the lock keeps two from attaching at once.
Status BindAnchor::Attach(Descriptor clone) {
  const Descriptor root(::open(agent_root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid() || ::flock(root.get(), LOCK_EX) != 0) return FromErrno("lock " + agent_root_);
  if (::mkdirat(root.get(), kAttachedName, 0700) != 0 && errno != EEXIST) {
    return FromErrno("make directory " + agent_root_ + "/" + kAttachedName);
  }
  ASSIGN_OR_RETURN(const bool attached, IsMountPointAt(root.get(), kAttachedName));
  if (!attached &&
      ::move_mount(clone.get(), "", root.get(), kAttachedName, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return FromErrno("attach the bind anchor");
  }
  Descriptor anchor(OpenChild(root.get(), kAttachedName, O_PATH | O_DIRECTORY));
  if (!anchor.valid()) return FromErrno("open the bind anchor");
  // Attached below a shared mount it has become shared again.
  RETURN_IF_ERROR(MakePrivate(anchor.get()));
  const std::optional<FileId> there = Identify(anchor.get());
  const std::optional<FileId> ours = Identify(clone.get());
  if (!there || !ours || !there->SameFile(*ours)) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             agent_root_ + "/" + kAttachedName + " is another mount");
  }
  anchor_ = std::move(anchor);
  return OkStatus();
}

}  // namespace volumed
