#include "mounter/hidden_mount.h"

#include <cstdint>
#include <map>
#include <set>

namespace volumed {

Result<std::optional<MountEntry>> FindMountHiding(Kernel& kernel, const MountEntry& mount,
                                                  const CallOptions& call) {
  ASSIGN_OR_RETURN(const MountListing around,
                   kernel.Call(ListMounts{.around = mount.mount_point}, call));
  std::map<uint64_t, uint64_t> parents;
  for (const MountEntry& entry : around.mounts) parents[entry.mount_id] = entry.parent_id;
  // What it lies on, one on another, up to the root.
  std::set<uint64_t> below;
  for (uint64_t id = mount.parent_id; parents.contains(id) && below.insert(id).second;) {
    id = parents.at(id);
  }
  for (const MountEntry& entry : around.mounts) {
    // Look-ups begin below whatever is mounted over "/".
    const bool is_on_the_way = entry.mount_point != mount.mount_point && entry.mount_point != "/";
    if (is_on_the_way && !below.contains(entry.mount_id)) return {entry};
  }
  return std::optional<MountEntry>();
}

}  // namespace volumed
