#include "mounter/volume_places.h"

#include <cerrno>
#include <optional>

#include "mounter/mount_refs.h"

namespace volumed {
namespace {

constexpr uint32_t kDirectoryMode = 0750;

}  // namespace

Result<bool> IsMountPoint(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  ASSIGN_OR_RETURN(const FileInfo info,
                   kernel.Call(Stat{.path = place, .only_mount_point = true}, call));
  return info.is_mount_point;
}

Status MakePlace(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  RETURN_IF_ERROR(kernel.Call(
      MakeDirectory{.path = place, .mode = kDirectoryMode, .parent_mode = kDirectoryMode}, call));
  return OkStatus();
}

Status OrNothing(Kernel& kernel, const SafePath& place, const Status& done,
                 const CallOptions& call) {
  if (done.ok() || done.error().maybe_applied()) return done;
  if (kernel.Call(RemoveDirectory{place}, call).ok()) return done;
  return done.error().AsMaybeApplied();
}

Status UnmountAndRemove(Kernel& kernel, const SafePath& place, const CallOptions& call) {
  RETURN_IF_ERROR(kernel.Call(Unmount{.target = place}, call));
  Result<Changed> removed = kernel.Call(RemoveDirectory{place}, call);
  // Whoever may write beside a place of a CO may have put a link there.
  const bool may_be_link = !removed.ok() && removed.error().sys_errno() == ENOTDIR;
  if (may_be_link && kernel.Call(ReadLink{place}, call).ok()) {
    removed = kernel.Call(RemoveFile{place}, call);
  }
  // It is unmounted.
  return removed.ok() ? OkStatus() : Status(removed.error().AsMaybeApplied());
}

Result<std::vector<std::string>> FindDeviceMountRefs(Kernel& kernel, const SafePath& place,
                                                     const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount,
                   FindMountAt(kernel, place.Display(), call));
  // Where nothing is mounted, what shows elsewhere is the agent's own disk.
  if (!mount) return std::vector<std::string>();
  return FindMountRefs(kernel, place.Display(), call);
}

}  // namespace volumed
