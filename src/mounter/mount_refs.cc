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

// Asked about all mounts of a filesystem, the table that is kept learns where each is now.
Status TellKeptTable(Kernel& kernel, const MountEntry& mount, const CallOptions& call) {
  const FilesystemPart filesystem{mount.device_major, mount.device_minor, ""};
  RETURN_IF_ERROR(kernel.Call(ListMounts{.showing = filesystem}, call));
  return OkStatus();
}

bool IsPartOf(const FilesystemPart& tree, const FilesystemPart& part) {
  return part.device_major == tree.device_major && part.device_minor == tree.device_minor &&
         IsAtOrBelow(part.root, tree.root);
}

// By the place on the filesystem, whatever the names of the mounts that lead there are.
bool IsMountedIn(const FilesystemPart& tree, const MountSnapshot& whole, const MountEntry& mount) {
  const MountEntry* const below = whole.FindById(mount.parent_id);
  if (below == nullptr || below->mount_id == mount.mount_id) return false;
  const bool is_of_it = below->device_major == tree.device_major &&
                        below->device_minor == tree.device_minor &&
                        IsAtOrBelow(mount.mount_point, below->mount_point);
  if (!is_of_it) return false;
  return IsPartOf(tree, PartAt(*below, mount.mount_point));
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

Result<std::optional<MountEntry>> FindMountAtAnew(Kernel& kernel, const std::string& path,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot whole, WholeTable(kernel, call));
  const MountEntry* const top = whole.FindTop(path);
  if (top == nullptr) return std::optional<MountEntry>();
  RETURN_IF_ERROR(TellKeptTable(kernel, *top, call));
  return std::optional<MountEntry>(*top);
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
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountSnapshot whole, WholeTable(kernel, call));
  std::vector<std::string> places;
  const MountEntry* const covering = whole.FindCovering(path);
  if (covering == nullptr) return places;
  const FilesystemPart tree = PartAt(*covering, path);
  for (const MountEntry& mount : whole.entries()) {
    const bool shows = IsPartOf(tree, {mount.device_major, mount.device_minor, mount.root});
    if (shows || IsMountedIn(tree, whole, mount)) places.push_back(mount.mount_point);
  }
  return places;
}

Result<bool> ShowsWhatIsAt(Kernel& kernel, const MountEntry& mount, const std::string& path,
                           const CallOptions& call) {
  const FilesystemPart shown{mount.device_major, mount.device_minor, mount.root};
  ASSIGN_OR_RETURN(const std::optional<MountEntry> covering, FindMountAround(kernel, path, call));
  if (covering && PartAt(*covering, path) == shown) return true;
  ASSIGN_OR_RETURN(const MountSnapshot whole, WholeTable(kernel, call));
  const MountEntry* const now = whole.FindCovering(path);
  if (now == nullptr || PartAt(*now, path) != shown) return false;
  RETURN_IF_ERROR(TellKeptTable(kernel, *now, call));
  return true;
}

bool TakesNoWrites(const MountEntry& mount) {
  const std::vector<std::string>& words = mount.super_options;
  return mount.read_only() || std::find(words.begin(), words.end(), "ro") != words.end();
}

}  // namespace volumed
