#include "mounter/hidden_mount.h"

#include <utility>

#include "os/mount_table.h"

namespace volumed {

Result<std::optional<MountEntry>> FindMountHiding(Kernel& kernel, const MountEntry& mount,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(MountListing around, kernel.Call(ListMounts{.around = mount.mount_point}, call));
  const MountSnapshot mounts(std::move(around.mounts));
  // Not every mount on the way hides: one that is hidden itself, as by a disk that was mounted over
  // the directory above later, is passed by no look-up.
  const MountEntry* const found = mounts.FindCovering(mount.mount_point);
  const bool is_hidden = found != nullptr && found->mount_point != mount.mount_point;
  return is_hidden ? std::optional<MountEntry>(*found) : std::nullopt;
}

}  // namespace volumed
