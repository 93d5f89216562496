#include "os/mount_places.h"

#include <algorithm>
#include <utility>

#include "os/safe_open.h"

namespace volumed {
namespace {

std::string KeyOf(const FilesystemPart& part) {
  return std::to_string(part.device_major) + ":" + std::to_string(part.device_minor) +
         (part.root.empty() ? "" : "/" + part.root);
}

// The path and every directory above it.
std::vector<std::string> PathsUp(const std::string& path) {
  std::vector<std::string> paths;
  for (std::string prefix = path; !prefix.empty() && prefix != "/";
       prefix.resize(prefix.rfind('/'))) {
    paths.push_back(prefix);
  }
  paths.emplace_back("/");
  return paths;
}

}  // namespace

Status CheckMountQuestion(const ListMounts& question) {
  const int asked = static_cast<int>(!question.below.empty()) +
                    static_cast<int>(!question.around.empty()) +
                    static_cast<int>(question.showing.has_value());
  if (asked > 1) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "list mounts: below, around and showing exclude each other");
  }
  if (!question.below.empty()) return ValidateSafePath({question.below, ""});
  if (!question.around.empty()) return ValidateSafePath({question.around, ""});
  return OkStatus();
}

bool Concerns(const MountEntry& mount, const ListMounts& question) {
  if (!question.below.empty()) return IsAtOrBelow(mount.mount_point, question.below);
  if (!question.around.empty()) return IsAtOrBelow(question.around, mount.mount_point);
  if (!question.showing) return true;
  const FilesystemPart& part = *question.showing;
  return mount.device_major == part.device_major && mount.device_minor == part.device_minor &&
         (part.root.empty() || mount.root == part.root);
}

std::vector<MountEntry> SelectMounts(std::vector<MountEntry> mounts, const ListMounts& question) {
  std::erase_if(mounts, [&](const MountEntry& mount) { return !Concerns(mount, question); });
  return mounts;
}

MountPlace PlaceOf(const MountEntry& mount) {
  return {mount.mount_point, {mount.device_major, mount.device_minor, mount.root}};
}

void MountPlaces::Put(uint64_t id, MountPlace place) {
  by_point_.Put(id, place.mount_point);
  by_part_.Put(id, KeyOf(place.part));
  places_.insert_or_assign(id, std::move(place));
}

bool MountPlaces::Erase(uint64_t id) {
  by_point_.Erase(id);
  by_part_.Erase(id);
  return places_.erase(id) > 0;
}

const MountPlace* MountPlaces::Get(uint64_t id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? nullptr : &found->second;
}

std::vector<uint64_t> MountPlaces::Find(const ListMounts& question) const {
  if (!question.below.empty()) return by_point_.Below(question.below);
  if (question.showing) {
    const std::string key = KeyOf(*question.showing);
    return question.showing->root.empty() ? by_part_.Below(key) : by_part_.At(key);
  }
  if (question.around.empty()) return by_point_.Ids();
  std::vector<uint64_t> ids;
  for (const std::string& path : PathsUp(question.around)) {
    const std::vector<uint64_t> at = by_point_.At(path);
    ids.insert(ids.end(), at.begin(), at.end());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace volumed
