#include "mounter/mount_refs.h"

#include <algorithm>
#include <utility>

#include "os/mount_table.h"

namespace volumed {
namespace {

// Returns the mounts that `path` may lie on.
Result<MountSnapshot> MountsAround(Kernel& kernel, const std::string& path,
                                   const CallOptions& call) {
  ASSIGN_OR_RETURN(MountListing listing, kernel.Call(ListMounts{.around = path}, call));
  return MountSnapshot(std::move(listing.mounts));
}

// Returns the part of the filesystem that is at `path`, which lies on the mount `covering`.
FilesystemPart PartAt(const MountEntry& covering, const std::string& path) {
  const std::string below =
      covering.mount_point == "/" ? path : path.substr(covering.mount_point.size());
  std::string root = covering.root == "/" ? below : covering.root + below;
  if (root.empty()) root = "/";
  return {covering.device_major, covering.device_minor, std::move(root)};
}

}  // namespace

Result<std::optional<MountEntry>> FindMountAt(Kernel& kernel, const std::string& path,
                                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot around, MountsAround(kernel, path, call));
  const MountEntry* top = around.FindTop(path);
  return top == nullptr ? std::nullopt : std::optional<MountEntry>(*top);
}

Result<std::vector<std::string>> FindMountRefs(Kernel& kernel, const std::string& path,
                                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot around, MountsAround(kernel, path, call));
  const MountEntry* covering = around.FindCovering(path);
  std::vector<std::string> refs;
  if (covering == nullptr) return refs;
  ASSIGN_OR_RETURN(const MountListing shown,
                   kernel.Call(ListMounts{.showing = PartAt(*covering, path)}, call));
  for (const MountEntry& mount : shown.mounts) {
    if (mount.mount_point != path) refs.push_back(mount.mount_point);
  }
  return refs;
}

bool TakesNoWrites(const MountEntry& mount) {
  const std::vector<std::string>& words = mount.super_options;
  return mount.read_only() || std::find(words.begin(), words.end(), "ro") != words.end();
}

}  // namespace volumed
