#include "operation/unrecorded_mounts.h"

#include <optional>
#include <string_view>

#include "base/strings.h"

namespace volumed {
namespace {

// In a map, what a pod has is called by the pod's uid, and a driver may have mounted more in it.
PodUid PodAt(const UnrecordedMount& entry, const std::string& place,
             const std::string& mount_point) {
  if (!entry.is_map) return entry.pod;
  const std::optional<std::string_view> below = StripPrefix(mount_point, place + "/");
  return below ? PodUid(std::string(below->substr(0, below->find('/')))) : PodUid();
}

}  // namespace

void UnrecordedMounts::Set(std::vector<UnrecordedMount> found) {
  const MutexLock lock(mu_);
  by_volume_.clear();
  of_unknown_volumes_.clear();
  of_pods_alone_.clear();
  for (UnrecordedMount& mount : found) {
    auto& entries = mount.is_pods_own      ? of_pods_alone_[mount.pod]
                    : mount.volume.empty() ? of_unknown_volumes_[{mount.plugin, mount.spec.str()}]
                                           : by_volume_[mount.volume];
    entries.push_back(std::move(mount));
  }
}

std::vector<UnrecordedMount> UnrecordedMounts::Of(const Volume& volume) const {
  std::vector<UnrecordedMount> entries;
  const MutexLock lock(mu_);
  if (const auto known = by_volume_.find(volume.name); known != by_volume_.end()) {
    entries = known->second;
  }
  const std::string spec = EscapeQualifiedName(volume.spec.str());
  for (const PlaceName& place : {PlaceName(volume.plugin, spec), PlaceName("", spec)}) {
    const auto unknown = of_unknown_volumes_.find(place);
    if (unknown == of_unknown_volumes_.end()) continue;
    entries.insert(entries.end(), unknown->second.begin(), unknown->second.end());
    if (volume.plugin.empty()) break;  // both are one
  }
  return entries;
}

void UnrecordedMounts::Forget(const UnrecordedMount& gone) {
  const auto erase_from = [&gone](auto& entries, const auto& key) {
    const auto found = entries.find(key);
    if (found == entries.end()) return;
    std::erase_if(found->second,
                  [&gone](const UnrecordedMount& entry) { return entry.places == gone.places; });
    if (found->second.empty()) entries.erase(found);
  };
  const MutexLock lock(mu_);
  if (gone.is_pods_own) {
    erase_from(of_pods_alone_, gone.pod);
  } else if (gone.volume.empty()) {
    erase_from(of_unknown_volumes_, PlaceName(gone.plugin, gone.spec.str()));
  } else {
    erase_from(by_volume_, gone.volume);
  }
}

Result<std::vector<UnrecordedMounts::Mounted>> UnrecordedMounts::Find(const Volume& volume,
                                                                      Kernel& kernel,
                                                                      const CallOptions& call) {
  std::vector<Mounted> mounted;
  for (const UnrecordedMount& entry : Of(volume)) {
    RETURN_IF_ERROR(AddMounted(entry, kernel, call, mounted));
  }
  return mounted;
}

Result<std::vector<UnrecordedMounts::Mounted>> UnrecordedMounts::FindWhere(
    const std::function<bool(const UnrecordedMount&)>& counts, Kernel& kernel,
    const CallOptions& call) {
  std::vector<Mounted> mounted;
  for (const UnrecordedMount& entry : All()) {
    if (counts(entry)) RETURN_IF_ERROR(AddMounted(entry, kernel, call, mounted));
  }
  return mounted;
}

std::vector<UnrecordedMount> UnrecordedMounts::All() const {
  std::vector<UnrecordedMount> all;
  const auto add = [&all](const auto& lists) {
    for (const auto& [key, entries] : lists) all.insert(all.end(), entries.begin(), entries.end());
  };
  const MutexLock lock(mu_);
  add(by_volume_);
  add(of_unknown_volumes_);
  add(of_pods_alone_);
  return all;
}

Status UnrecordedMounts::AddMounted(const UnrecordedMount& entry, Kernel& kernel,
                                    const CallOptions& call, std::vector<Mounted>& mounted) {
  bool is_gone = true;
  for (const std::string& place : entry.places) {
    ASSIGN_OR_RETURN(const MountListing there, kernel.Call(ListMounts{.below = place}, call));
    for (const MountEntry& mount : there.mounts) {
      is_gone = false;
      mounted.push_back({PodAt(entry, place, mount.mount_point), entry.spec, place,
                         mount.mount_point, entry.volume, entry.is_block, entry.device_place});
    }
  }
  if (is_gone) Forget(entry);
  return OkStatus();
}

Status UnrecordedMounts::CheckNone(const Volume& volume, Kernel& kernel, const CallOptions& call,
                                   const std::function<bool(const Mounted&)>& counts) {
  ASSIGN_OR_RETURN(const std::vector<Mounted> mounted, Find(volume, kernel, call));
  for (const Mounted& mount : mounted) {
    if (!counts(mount)) continue;
    return Error::NotApplied(Code::kFailedPrecondition, DescribeFor(volume.spec, mount))
        .About(kAboutUnrecordedMount);
  }
  return OkStatus();
}

std::string UnrecordedMounts::Describe(const SpecName& volume, const Mounted& mounted) {
  const std::string where = mounted.pod.empty() ? "on this node" : "in pod " + mounted.pod.str();
  return "volume " + volume.str() + " is mounted " + where +
         ", of which no record tells: " + mounted.mount_point +
         "; an administrator has to look at it, and to unmount it";
}

std::string UnrecordedMounts::DescribeFor(const SpecName& waiting, const Mounted& mounted) {
  const bool is_its_name = mounted.spec.empty() || mounted.spec == waiting ||
                           mounted.spec.str() == EscapeQualifiedName(waiting.str());
  if (is_its_name) return Describe(waiting, mounted);
  return "volume " + waiting.str() + " has the storage of volume " + mounted.spec.str() + ": " +
         Describe(mounted);
}

std::string UnrecordedMounts::Describe(const Mounted& mounted) {
  const bool has_spec = !mounted.spec.empty();
  return Describe(has_spec ? mounted.spec : SpecName(mounted.volume.str()), mounted);
}

}  // namespace volumed
