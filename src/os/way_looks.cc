#include "os/way_looks.h"

namespace volumed {
namespace {

constexpr size_t kMostWays = 4096;  // of paths; far more than operations under way have

FilesystemPart PartOf(const MountEntry& mount) {
  return {mount.device_major, mount.device_minor, mount.root};
}

}  // namespace

bool WayLooks::IsKnown(const std::string& path, const MountEntry& mount, TimePoint now) const {
  const MutexLock lock(mu_);
  const auto found = looks_.find(path);
  if (found == looks_.end()) return false;
  const Look& look = found->second;
  return look.mount_id == mount.mount_id && look.part == PartOf(mount) &&
         now - look.began <= kHolds;
}

void WayLooks::Note(const std::string& path, const MountEntry& mount, TimePoint began) {
  const MutexLock lock(mu_);
  if (looks_.size() >= kMostWays) {
    std::erase_if(looks_, [began](const auto& old) { return began - old.second.began > kHolds; });
    if (looks_.size() >= kMostWays) looks_.clear();
  }
  looks_[path] = {mount.mount_id, PartOf(mount), began};
}

}  // namespace volumed
