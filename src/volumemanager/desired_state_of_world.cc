#include "volumemanager/desired_state_of_world.h"

#include <utility>

#include "volumemanager/volume_inputs.h"

namespace volumed {
namespace {

// A persistent volume does not change under its pods, so only its identity is compared.
bool SameVolume(const VolumeSpec& a, const VolumeSpec& b) {
  if (a.volume() != nullptr && b.volume() != nullptr) return *a.volume() == *b.volume();
  return a.volume() == b.volume() && a.name() == b.name() && a.read_only() == b.read_only();
}

bool SameInputs(const WantedVolume& a, const WantedVolume& b) {
  return a.plugin_name == b.plugin_name && SameVolume(a.spec, b.spec) &&
         a.sub_paths == b.sub_paths && a.nested_mount_points == b.nested_mount_points;
}

}  // namespace

DesiredStateOfWorld::DesiredStateOfWorld(const ObjectCatalog& catalog,
                                         const VolumePluginMgr& plugins, const HostNode& node,
                                         ClaimResolver& claims)
    : builder_(catalog, plugins, node, claims) {}

void DesiredStateOfWorld::AssignGenerations(WantedPod& now, const WantedPod* before) {
  const bool same_pod = before != nullptr && *before->pod == *now.pod;
  const bool same_ownership = before != nullptr && SameOwnership(*before->pod, *now.pod);
  for (auto& [spec, volume] : now.volumes) {
    const WantedVolume* old = nullptr;
    if (before != nullptr && before->volumes.contains(spec)) old = &before->volumes.at(spec);
    const bool same_fields = same_pod || !DownwardUseOf(volume.spec).any;
    const bool same = old != nullptr && same_ownership && same_fields && SameInputs(*old, volume);
    volume.generation = same ? old->generation : ++last_generation_;
  }
}

void DesiredStateOfWorld::SetPod(PodPtr pod) {
  const PodUid uid = pod->uid();
  const WantedPod* before = Find(uid);
  WantedPod now = builder_.Build(std::move(pod), before);
  AssignGenerations(now, before);
  if (before != nullptr) Unindex(uid, *before);
  Index(uid, pods_.insert_or_assign(uid, std::move(now)).first->second);
}

bool DesiredStateOfWorld::RemovePod(const PodUid& pod) {
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return false;
  Unindex(pod, found->second);
  pods_.erase(found);
  return true;
}

std::set<PodUid> DesiredStateOfWorld::ObjectChanged(const ObjectKey& key) {
  const auto found = referrers_.find(key);
  if (found == referrers_.end()) return {};
  std::set<PodUid> pods = found->second;
  for (const PodUid& uid : pods) {
    const PodPtr pod = pods_.at(uid).pod;
    SetPod(pod);  // sub-paths may now expand, or expand differently
    for (auto& [spec, volume] : pods_.at(uid).volumes) {
      // Only content counts here: a sub-path keeps its path, whatever its variables say now.
      if (ContentObjects(*pod, volume.spec).contains(key) ||
          (key.kind == ObjectKind::kNode && volume.objects.contains(key))) {
        volume.generation = ++last_generation_;
      }
    }
  }
  return pods;
}

void DesiredStateOfWorld::Index(const PodUid& pod, const WantedPod& wanted) {
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) {
      std::set<PodUid>& referrers = referrers_[key];
      if (referrers.empty() && object_named_) object_named_(key, true);
      referrers.insert(pod);
    }
    for (const std::string& path : volume.device_paths) by_device_path_[path].insert(pod);
    if (volume.mountable() && !volume.unique_name.empty()) users_[volume.unique_name].insert(pod);
  }
}

void DesiredStateOfWorld::Unindex(const PodUid& pod, const WantedPod& wanted) {
  const auto erase = [&pod](auto& index, const auto& key) {
    const auto found = index.find(key);
    if (found == index.end()) return;
    found->second.erase(pod);
    if (found->second.empty()) index.erase(found);
  };
  for (const auto& [spec, volume] : wanted.volumes) {
    for (const ObjectKey& key : volume.objects) {
      erase(referrers_, key);
      if (object_named_ && !referrers_.contains(key)) object_named_(key, false);
    }
    for (const std::string& path : volume.device_paths) erase(by_device_path_, path);
    erase(users_, volume.unique_name);
  }
}

const WantedVolume* WritingUse(const DesiredStateOfWorld& desired, const std::vector<PodUid>& pods,
                               const UniqueVolumeName& volume) {
  const WantedVolume* use = desired.FindUse(pods.front(), volume);
  for (const PodUid& pod : pods) {
    const WantedVolume* other = desired.FindUse(pod, volume);
    if (use->spec.read_only() && !other->spec.read_only()) use = other;
  }
  return use;
}

const std::set<PodUid>& DesiredStateOfWorld::UsersOf(const UniqueVolumeName& volume) const {
  static const std::set<PodUid> kNobody;
  const auto found = users_.find(volume);
  return found == users_.end() ? kNobody : found->second;
}

std::set<PodUid> DesiredStateOfWorld::PodsWithDevicePathBelow(const std::string& path) const {
  std::set<PodUid> pods = PodsWithDevicePath(path);
  const std::string below = path == "/" ? path : path + "/";
  for (auto at = by_device_path_.lower_bound(below);
       at != by_device_path_.end() && at->first.starts_with(below); ++at) {
    pods.insert(at->second.begin(), at->second.end());
  }
  return pods;
}

const std::set<PodUid>& DesiredStateOfWorld::PodsWithDevicePath(const std::string& path) const {
  static const std::set<PodUid> kNobody;
  const auto found = by_device_path_.find(path);
  return found == by_device_path_.end() ? kNobody : found->second;
}

const WantedVolume* DesiredStateOfWorld::FindUse(const PodUid& pod,
                                                 const UniqueVolumeName& volume) const {
  const WantedPod* wanted = Find(pod);
  if (wanted == nullptr) return nullptr;
  for (const auto& [spec, use] : wanted->volumes) {
    if (use.unique_name == volume) return &use;
  }
  return nullptr;
}

const WantedPod* DesiredStateOfWorld::Find(const PodUid& pod) const {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? nullptr : &found->second;
}

const WantedVolume* DesiredStateOfWorld::Find(const PodVolumeKey& key) const {
  const WantedPod* pod = Find(key.pod);
  if (pod == nullptr) return nullptr;
  const auto found = pod->volumes.find(key.spec);
  return found == pod->volumes.end() ? nullptr : &found->second;
}

}  // namespace volumed
