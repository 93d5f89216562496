#include "mounter/nfs_mount.h"

#include <optional>

#include "mounter/host_directory.h"
#include "mounter/mount_refs.h"
#include "volume/nfs_export.h"

namespace volumed {
namespace {

constexpr char kNfsType[] = "nfs";
constexpr char kNfsHelper[] = "/sbin/mount.nfs";
// What is forced must not wait behind what hangs: a lane of its own, which is bounded as well.
constexpr char kForceLane[] = " force";
// What mount.nfs says of ENODEV. Source: nfs-utils utils/mount/error.c (mount_error).
constexpr char kNoClientText[] = "No such device";

// Another place that shows the same filesystem; "" if there is none. It looks at all of the table:
// an export and a directory of it may be one filesystem to the kernel.
Result<std::string> OtherPlaceOf(Kernel& kernel, const MountEntry& mount, const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing all, kernel.Call(ListMounts{}, call));
  for (const MountEntry& other : all.mounts) {
    if (other.device_major == mount.device_major && other.device_minor == mount.device_minor &&
        other.mount_point != mount.mount_point) {
      return other.mount_point;
    }
  }
  return std::string();
}

Status ForceUnmountNfs(Kernel& kernel, const Clock& clock, const SafePath& dir, Duration timeout,
                       const Error& why, const CallOptions& call) {
  CallOptions forced = call;
  forced.domain += kForceLane;
  // The worker that hangs may still hold the volume's key: this is what sets it free.
  forced.key.clear();
  forced.deadline = Deadline::After(clock, timeout);
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(kernel, dir.Display(), forced));
  // It is out of the way already; what is left is the server's end of it.
  if (!mount) return OkStatus();
  ASSIGN_OR_RETURN(const std::string other, OtherPlaceOf(kernel, *mount, forced));
  if (!other.empty()) {
    return why.With("not forced, as its requests are those of " + other + ", too");
  }
  RETURN_IF_ERROR(kernel.Call(Unmount{.target = dir, .force = true}, forced));
  return OkStatus();
}

}  // namespace

Status CheckNfsHelper(Kernel& kernel, const CallOptions& call) {
  CallOptions own = call;
  own.domain.clear();  // it is on the agent's own filesystem
  ASSIGN_OR_RETURN(const FileInfo helper,
                   kernel.Call(Stat{.path = HostPath(kNfsHelper), .follow = true}, own));
  if (helper.type == FileType::kRegular) return OkStatus();
  return Error::NotApplied(Code::kNotFound,
                           std::string(kNfsHelper) + " is missing: install the package nfs-common");
}

Result<bool> IsNfsMountedAt(Kernel& kernel, const SafePath& dir, const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountAt(kernel, dir.Display(), call));
  if (!mount) return false;
  if (IsNfsType(mount->fs_type)) return true;
  return Error::NotApplied(Code::kFailedPrecondition, "something else than NFS is mounted at " +
                                                          dir.Display() + ": " + mount->fs_type +
                                                          " of " + mount->source);
}

Status MountNfs(Kernel& kernel, const std::string& exported, const SafePath& dir,
                const std::vector<std::string>& options, const CallOptions& call) {
  const Result<Done> done = kernel.Call(
      Mount{.fs_type = kNfsType, .source = exported, .target = dir, .options = options}, call);
  if (!done.ok() && done.error().message().find(kNoClientText) != std::string::npos) {
    return done.error().With("the kernel has no NFS client: load its module nfs, or nfsv4");
  }
  if (!done.ok()) return done.error();
  // With the option "bg", mount.nfs says that all is well and goes on trying: a pod would write
  // into the directory below.
  const Result<bool> mounted = IsNfsMountedAt(kernel, dir, call);
  if (!mounted.ok()) return mounted.error().AsMaybeApplied();
  if (*mounted) return OkStatus();
  return Error::MaybeApplied(Code::kUnavailable,
                             "mount.nfs has ended well, and " + exported +
                                 " is not mounted (the option bg is of no use to a pod)");
}

Status UnmountNfs(Kernel& kernel, const Clock& clock, const SafePath& dir,
                  const NfsUnmountTimes& times, const CallOptions& call) {
  CallOptions plain = call;
  plain.deadline = Deadline::After(clock, times.unmount());
  const Result<Changed> unmounted = kernel.Call(Unmount{.target = dir}, plain);
  if (unmounted.ok()) return OkStatus();
  const Error& error = unmounted.error();
  // Only one that was tried and hung is forced; one that waited for a worker was not tried.
  if (error.code() != Code::kDeadlineExceeded || !error.maybe_applied()) return error;
  return ForceUnmountNfs(kernel, clock, dir, times.force, error, call);
}

}  // namespace volumed
