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

Result<MountSnapshot> WholeTable(Kernel& kernel, const CallOptions& call) {
  ASSIGN_OR_RETURN(MountListing listing, kernel.Call(ListMounts{}, call));
  return MountSnapshot(std::move(listing.mounts));
}

}  // namespace

FilesystemPart PartAt(const MountEntry& mount, const std::string& path) {
  std::string below = mount.mount_point == "/" ? path : path.substr(mount.mount_point.size());
  if (below == "/") below.clear();
  std::string root = mount.root == "/" ? below : mount.root + below;
  if (root.empty()) root = "/";
  return {mount.device_major, mount.device_minor, std::move(root)};
}

Result<std::optional<MountEntry>> FindMountAt(Kernel& kernel, const std::string& path,
                                              const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot around, MountsAround(kernel, path, call));
  const MountEntry* top = around.FindTop(path);
  return top == nullptr ? std::nullopt : std::optional<MountEntry>(*top);
}

Result<std::optional<MountEntry>> FindMountAround(Kernel& kernel, const std::string& path,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot around, MountsAround(kernel, path, call));
  const MountEntry* covering = around.FindCovering(path);
  return covering == nullptr ? std::nullopt : std::optional<MountEntry>(*covering);
}

Result<std::vector<std::string>> FindMountRefs(Kernel& kernel, const std::string& path,
                                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> covering, FindMountAround(kernel, path, call));
  std::vector<std::string> refs;
  if (!covering) return refs;
  ASSIGN_OR_RETURN(const MountListing shown,
                   kernel.Call(ListMounts{.showing = PartAt(*covering, path)}, call));
  for (const MountEntry& mount : shown.mounts) {
    if (mount.mount_point != path) refs.push_back(mount.mount_point);
  }
  return refs;
}

Result<std::vector<std::string>> FindMountsOfTree(Kernel& kernel, const std::string& path,
                                                  MountTableRead read, const CallOptions& call) {
  const bool is_whole = read == MountTableRead::kWhole;
  ASSIGN_OR_RETURN(const MountSnapshot around,
                   is_whole ? WholeTable(kernel, call) : MountsAround(kernel, path, call));
  std::vector<std::string> places;
  const MountEntry* const covering = around.FindCovering(path);
  if (covering == nullptr) return places;
  const FilesystemPart tree = PartAt(*covering, path);
  const ListMounts same_filesystem{.showing =
                                       FilesystemPart{tree.device_major, tree.device_minor, ""}};
  MountListing shown{.mounts = around.Find(same_filesystem)};
  if (!is_whole) {
    ASSIGN_OR_RETURN(shown, kernel.Call(same_filesystem, call));
  }
  for (const MountEntry& mount : shown.mounts) {
    const bool shows = IsAtOrBelow(mount.root, tree.root);
    if (shows && mount.mount_point != path) places.push_back(mount.mount_point);
  }
  return places;
}

Result<bool> ShowsWhatIsAt(Kernel& kernel, const MountEntry& mount, const std::string& path,
                           const CallOptions& call) {
  ASSIGN_OR_RETURN(const std::optional<MountEntry> covering, FindMountAround(kernel, path, call));
  if (!covering) return false;
  return PartAt(*covering, path) ==
         FilesystemPart{mount.device_major, mount.device_minor, mount.root};
}

bool TakesNoWrites(const MountEntry& mount) {
  const std::vector<std::string>& words = mount.super_options;
  return mount.read_only() || std::find(words.begin(), words.end(), "ro") != words.end();
}

}  // namespace volumed
