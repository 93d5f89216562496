#include "os/mounts.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "os/block_device.h"
#include "os/device_duplicates.h"
#include "os/device_probe.h"
#include "os/mount_helper.h"
#include "os/mount_options.h"
#include "os/mount_places.h"
#include "os/safe_open.h"
#include "os/statmount.h"
#include "os/storage_identity.h"

namespace volumed {
namespace {

Error NotApplied(const std::string& what) {
  return Error::FromErrno(errno, what, Outcome::kNotApplied);
}

// What the kernel says about a mount that it refused: lines "e tmpfs: Unknown parameter 'x'".
// Source: fsopen(2).
std::string ContextMessages(int context) {
  std::string messages;
  char line[512];
  const int saved = errno;
  while (true) {
    const ssize_t size = ::read(context, line, sizeof(line));
    if (size <= 0) break;
    if (size < 2 || line[0] == 'i') continue;
    if (!messages.empty()) messages += "; ";
    messages.append(line + 2, static_cast<size_t>(size) - 2);
    while (!messages.empty() && messages.back() == '\n') messages.pop_back();
  }
  errno = saved;
  return messages;
}

Error ContextError(int context, const std::string& what) {
  const int saved = errno;
  const std::string messages = ContextMessages(context);
  return Error::FromErrno(saved, messages.empty() ? what : what + " (" + messages + ")",
                          Outcome::kNotApplied);
}

// Values are never named in errors: an option may be a password.
Status SetParameters(int context, const std::vector<SuperParameter>& parameters,
                     const std::string& what) {
  for (const SuperParameter& parameter : parameters) {
    const int rc = parameter.is_flag
                       ? ::fsconfig(context, FSCONFIG_SET_FLAG, parameter.key.c_str(), nullptr, 0)
                       : ::fsconfig(context, FSCONFIG_SET_STRING, parameter.key.c_str(),
                                    parameter.value.c_str(), 0);
    if (rc != 0) return ContextError(context, what + ", option " + parameter.key);
  }
  return OkStatus();
}

Status CheckNoswap(const Mount& request, const MountOptions& options,
                   const KernelFeatures& features) {
  if (request.fs_type != "tmpfs" || features.tmpfs_noswap) return OkStatus();
  for (const SuperParameter& parameter : options.parameters) {
    if (parameter.key == "noswap") {
      return Error::NotApplied(Code::kUnimplemented, "mount tmpfs on " + request.target.Display() +
                                                         ": this kernel has no tmpfs-noswap");
    }
  }
  return OkStatus();
}

Result<Descriptor> MakeFilesystem(const Mount& request, const MountOptions& options,
                                  const std::string& what) {
  const Descriptor context(::fsopen(request.fs_type.c_str(), FSOPEN_CLOEXEC));
  if (!context.valid()) return NotApplied(what);
  if (!request.source.empty() &&
      ::fsconfig(context.get(), FSCONFIG_SET_STRING, "source", request.source.c_str(), 0) != 0) {
    return ContextError(context.get(), what + ", source");
  }
  // As mount(8) does, "ro" makes superblock and mount read-only.
  if ((options.attributes & MOUNT_ATTR_RDONLY) != 0 &&
      ::fsconfig(context.get(), FSCONFIG_SET_FLAG, "ro", nullptr, 0) != 0) {
    return ContextError(context.get(), what + ", option ro");
  }
  RETURN_IF_ERROR(SetParameters(context.get(), options.parameters, what));
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return ContextError(context.get(), what);
  }
  Descriptor mount(
      ::fsmount(context.get(), FSMOUNT_CLOEXEC, static_cast<unsigned>(options.attributes)));
  if (!mount.valid()) return ContextError(context.get(), what);
  return mount;
}

// Whether the filesystem that was just made is of the expected device. btrfs has device numbers of
// its own; there the kernel's list of the filesystem's devices is asked.
Status CheckMountedDevice(int mount, const Mount& request, const std::string& what) {
  const DeviceIdentity& expected = *request.expected_device;
  struct stat root = {};
  if (::fstat(mount, &root) != 0) return NotApplied(what);
  const bool same = request.fs_type == "btrfs"
                        ? IsInMountedBtrfs(expected)
                        : root.st_dev == makedev(expected.device_major, expected.device_minor);
  if (same) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           what + ": the kernel took another device than the one that was probed");
}

Status Attach(int tree, int target, const std::string& what) {
  if (::move_mount(tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return NotApplied(what);
  }
  return OkStatus();
}

// ---- bind ---------------------------------------------------------------------------------------

Status SetReadOnly(int tree, bool recursive, const std::string& what) {
  mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  const unsigned flags = AT_EMPTY_PATH | (recursive ? static_cast<unsigned>(AT_RECURSIVE) : 0u);
  if (::mount_setattr(tree, "", flags, &attributes, sizeof(attributes)) != 0) {
    return NotApplied(what + ", read-only");
  }
  return OkStatus();
}

// A clone keeps the per-mount flags of what is cloned.
Status BindByTree(const BindMount& request, int source, int target, const std::string& what) {
  unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
  if (request.recursive) flags |= AT_RECURSIVE;
  const Descriptor tree(::open_tree(source, "", flags));
  if (!tree.valid()) return NotApplied(what);
  if (request.read_only || request.recursive_read_only) {
    RETURN_IF_ERROR(SetReadOnly(tree.get(), request.recursive_read_only, what));
  }
  return Attach(tree.get(), target, what);
}

// Two steps, so the bind is writable for a moment. A failed second step takes the first back.
Status BindByMount(const BindMount& request, int source, int target, const std::string& what) {
  struct statfs source_info = {};
  if (::fstatfs(source, &source_info) != 0) return NotApplied(what + ", flags of the source");
  const unsigned long recursive = request.recursive ? MS_REC : 0;
  if (::mount(ProcFdPath(source).c_str(), ProcFdPath(target).c_str(), nullptr, MS_BIND | recursive,
              nullptr) != 0) {
    return NotApplied(what);
  }
  if (!request.read_only) return OkStatus();
  // `target` is the directory below the new mount; the name now leads to the mount itself.
  const Result<ParentAndName> parent = OpenParent(request.target);
  if (!parent.ok()) return parent.error().AsMaybeApplied();
  const std::string path = ProcFdPath(parent->parent.get()) + "/" + parent->name;
  const unsigned long flags = AttributesToMountFlags(
      AttributesFromStatfsFlags(static_cast<uint64_t>(source_info.f_flags)) | MOUNT_ATTR_RDONLY);
  if (::mount(nullptr, path.c_str(), nullptr, MS_REMOUNT | MS_BIND | flags, nullptr) == 0) {
    return OkStatus();
  }
  const Error error = NotApplied(what + ", read-only");
  const bool undone = ::umount2(path.c_str(), UMOUNT_NOFOLLOW) == 0;
  return undone ? error : error.AsMaybeApplied();
}

// ---- remount ------------------------------------------------------------------------------------

Status ReconfigureSuperblock(int target, const std::vector<SuperParameter>& parameters,
                             const std::string& what) {
  const Descriptor context(::fspick(target, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH));
  if (!context.valid()) return NotApplied(what);
  RETURN_IF_ERROR(SetParameters(context.get(), parameters, what));
  if (::fsconfig(context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0) {
    return ContextError(context.get(), what);
  }
  return OkStatus();
}

Status ChangeAttributes(int target, const MountOptions& options, const KernelFeatures& features,
                        const std::string& what) {
  if (features.mount_setattr) {
    mount_attr attributes = {};
    attributes.attr_set = options.attributes;
    attributes.attr_clr = options.clear_attributes;
    if (options.sets_atime) attributes.attr_clr |= MOUNT_ATTR__ATIME;
    if (::mount_setattr(target, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0) {
      return NotApplied(what);
    }
    return OkStatus();
  }
  struct statfs info = {};
  if (::fstatfs(target, &info) != 0) return NotApplied(what + ", present flags");
  uint64_t now = AttributesFromStatfsFlags(static_cast<uint64_t>(info.f_flags));
  if (options.sets_atime) now &= ~static_cast<uint64_t>(MOUNT_ATTR__ATIME);
  now = (now & ~options.clear_attributes) | options.attributes;
  if (::mount(nullptr, ProcFdPath(target).c_str(), nullptr,
              MS_REMOUNT | MS_BIND | AttributesToMountFlags(now), nullptr) != 0) {
    return NotApplied(what);
  }
  return OkStatus();
}

// ---- unmount ------------------------------------------------------------------------------------

// A forced unmount of a FUSE filesystem with a stuck caller gives EBUSY, but frees the caller; the
// next one then succeeds. Source: measured on 6.18; Linux fs/fuse/inode.c (fuse_umount_begin).
constexpr int kForcedAttempts = 5;
constexpr std::chrono::milliseconds kForcedPause(10);

int UnmountByName(const std::string& path, bool force) {
  const int flags = UMOUNT_NOFOLLOW | (force ? MNT_FORCE : 0);
  for (int attempt = 1;; ++attempt) {
    if (::umount2(path.c_str(), flags) == 0) return 0;
    if (!force || errno != EBUSY || attempt == kForcedAttempts) return -1;
    std::this_thread::sleep_for(kForcedPause);
  }
}

// ---- shared -------------------------------------------------------------------------------------

Result<bool> IsShared(int mount_root, const KernelFeatures& features) {
  ASSIGN_OR_RETURN(const std::optional<MountOfFile> mount, FindMountOf(mount_root, features));
  return mount && mount->shared;
}

// Whether the last component of `path` is a mount point. "/" always is.
Result<bool> IsMountPoint(const SafePath& path) {
  if (path.root == "/" && path.relative.empty()) return true;
  ASSIGN_OR_RETURN(const ParentAndName parent, OpenParent(path));
  Result<bool> answer = IsMountPointAt(parent.parent.get(), parent.name);
  if (!answer.ok())
    return Error::FromErrno(answer.error().sys_errno(), "open " + path.Display(),
                            Outcome::kNotApplied);
  return answer;
}

}  // namespace

Result<Done> DoMount(const Mount& request, const KernelFeatures& features,
                     const CallOptions& call) {
  const std::string what = "mount " + request.fs_type + " on " + request.target.Display();
  if (request.fs_type.empty()) {
    return Error::NotApplied(Code::kInvalidArgument, what + ": no filesystem type is given");
  }
  ASSIGN_OR_RETURN(const MountOptions options, ParseMountOptions(request.options));
  RETURN_IF_ERROR(CheckNoswap(request, options, features));
  ASSIGN_OR_RETURN(const Descriptor target, OpenSafePath(request.target, O_PATH));
  Mount checked = request;
  PinnedDevice pinned;
  if (request.expected_device) {
    ASSIGN_OR_RETURN(pinned, PinDevice(request.source, *request.expected_device, request.fs_type)
                                 .With("mount " + request.fs_type));
    checked.source = pinned.source;
  }
  if (HasMountHelper(request.fs_type)) {
    RETURN_IF_ERROR(MountWithHelper(checked, call));
    return Done{};
  }
  ASSIGN_OR_RETURN(const Descriptor mount, MakeFilesystem(checked, options, what));
  if (request.expected_device) {
    RETURN_IF_ERROR(CheckMountedDevice(mount.get(), checked, what));
  }
  RETURN_IF_ERROR(Attach(mount.get(), target.get(), what));
  return Done{};
}

namespace {

// What was opened is of the mount that shows this part.
Status CheckShows(int source, const FilesystemPart& part, const KernelFeatures& features,
                  const std::string& what) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountEntryOf(source, features));
  if (mount && PlaceOf(*mount).part == part) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           what + ": what is to be bound is not mounted there any more");
}

}  // namespace

Result<Done> DoBindMount(const BindMount& request, const KernelFeatures& features,
                         BindAnchor& anchor) {
  const std::string what = "bind " + request.source.Display() + " on " + request.target.Display();
  if (request.recursive_read_only && !features.mount_setattr) {
    return Error::NotApplied(Code::kUnimplemented,
                             what + ": recursive read-only needs mount-setattr (Linux 5.12)");
  }
  ASSIGN_OR_RETURN(const Descriptor source, OpenSafePath(request.source, O_PATH));
  ASSIGN_OR_RETURN(const Descriptor target, OpenSafePath(request.target, O_PATH));
  if (request.expected_device) {
    // Whoever wants the device to stay this one until the bind is used holds it.
    RETURN_IF_ERROR(
        OpenExpectedDevice(source.get(), request.source.Display(), *request.expected_device)
            .With("bind on " + request.target.Display()));
  }
  if (request.expected.inode != 0) {
    RETURN_IF_ERROR(CheckIsExpected(source.get(), request.expected, features).With(what));
  }
  if (request.expected_part) {
    RETURN_IF_ERROR(CheckShows(source.get(), *request.expected_part, features, what));
  }
  if (!features.mount_setattr) {
    RETURN_IF_ERROR(BindByMount(request, source.get(), target.get(), what));
    return Done{};
  }
  Descriptor anchored;
  if (!request.recursive) anchored = anchor.Find(request.source, source);
  RETURN_IF_ERROR(
      BindByTree(request, anchored.valid() ? anchored.get() : source.get(), target.get(), what));
  return Done{};
}

Result<Done> DoRemount(const Remount& request, const KernelFeatures& features) {
  const std::string what = "remount " + request.target.Display();
  ASSIGN_OR_RETURN(const MountOptions options, ParseMountOptions(request.options));
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(request.target));
  if (!mounted) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": not a mount point");
  }
  ASSIGN_OR_RETURN(const Descriptor target, OpenSafePath(request.target, O_PATH));
  if (!options.parameters.empty()) {
    RETURN_IF_ERROR(ReconfigureSuperblock(target.get(), options.parameters, what));
  }
  if (options.attributes != 0 || options.clear_attributes != 0 || options.sets_atime) {
    const Status changed = ChangeAttributes(target.get(), options, features, what);
    if (!changed.ok()) {
      return options.parameters.empty() ? changed.error() : changed.error().AsMaybeApplied();
    }
  }
  return Done{};
}

Result<Changed> DoUnmount(const Unmount& request) {
  const Result<ParentAndName> parent = OpenParent(request.target);
  if (!parent.ok()) {
    if (parent.error().sys_errno() == ENOENT) return Changed{false};
    return parent.error();
  }
  const std::string path = ProcFdPath(parent->parent.get()) + "/" + parent->name;
  if (UnmountByName(path, request.force) == 0) return Changed{true};
  const int failure = errno;
  if (failure == ENOENT) return Changed{false};
  if (failure == EINVAL) {
    // EINVAL means "no mount point", and a few other things.
    const Result<bool> mounted = IsMountPointAt(parent->parent.get(), parent->name);
    if (mounted.ok() && !*mounted) return Changed{false};
  }
  // A forced unmount that fails has still cut off those who used the filesystem.
  return Error::FromErrno(failure, "unmount " + request.target.Display(),
                          request.force ? Outcome::kMaybeApplied : Outcome::kNotApplied);
}

Result<Changed> DoMakeShared(const MakeShared& request, const KernelFeatures& features) {
  const std::string what = "make shared " + request.target.Display();
  ASSIGN_OR_RETURN(const bool mounted, IsMountPoint(request.target));
  ASSIGN_OR_RETURN(const Descriptor target, OpenSafePath(request.target, O_PATH));
  // Also where the target only lies on a shared mount: a bind onto itself would join that mount's
  // peers, and everything mounted below would then be there twice.
  ASSIGN_OR_RETURN(const bool shared, IsShared(target.get(), features));
  if (shared) return Changed{false};
  const std::string path = ProcFdPath(target.get());
  if (!mounted && ::mount(path.c_str(), path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    return NotApplied(what);
  }
  const Outcome outcome = mounted ? Outcome::kNotApplied : Outcome::kMaybeApplied;
  // Opened again: the name now leads to the new mount.
  const Result<Descriptor> mount_root = OpenSafePath(request.target, O_PATH);
  if (!mount_root.ok()) return mounted ? mount_root.error() : mount_root.error().AsMaybeApplied();
  if (::mount(nullptr, ProcFdPath(mount_root->get()).c_str(), nullptr, MS_SHARED | MS_REC,
              nullptr) != 0) {
    return Error::FromErrno(errno, what, outcome);
  }
  return Changed{true};
}

}  // namespace volumed
