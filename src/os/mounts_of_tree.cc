#include "os/mounts_of_tree.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <optional>
#include <vector>

#include "os/mount_index.h"
#include "os/mount_table.h"
#include "os/safe_open.h"
#include "os/statmount.h"

namespace volumed {

Status CheckNothingIsMounted(int directory, const KernelFeatures& features,
                             const std::string& what) {
  const auto refused = [&what](const std::string& why) {
    return Error::NotApplied(Code::kFailedPrecondition, what + ": " + why);
  };
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlink(ProcFdPath(directory).c_str(), text.data(), text.size());
  ASSIGN_OR_RETURN(const std::optional<MountEntry> mount, FindMountEntryOf(directory, features));
  if (length <= 0 || !mount) return refused("its mount was taken away meanwhile");
  const std::string path(text.data(), static_cast<size_t>(length));
  if (!IsAtOrBelow(path, mount->mount_point)) return refused("it was moved meanwhile");
  // As it lies in its filesystem, and as every mount of a part of that shows it.
  const std::string below =
      mount->mount_point == "/" ? path : path.substr(mount->mount_point.size());
  const std::string inside = (mount->root == "/" ? "" : mount->root) + below;
  ASSIGN_OR_RETURN(const std::vector<MountEntry> mounts, ReadMountTable());
  for (const MountEntry& other : mounts) {
    const bool is_same =
        other.device_major == mount->device_major && other.device_minor == mount->device_minor;
    const bool shows = is_same && IsAtOrBelow(other.root, inside);
    if (!shows && !IsAtOrBelow(other.mount_point, path)) continue;
    return refused("something of it, or in it, is mounted at " + other.mount_point);
  }
  return OkStatus();
}

}  // namespace volumed
