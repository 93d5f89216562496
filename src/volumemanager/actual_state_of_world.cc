#include "volumemanager/actual_state_of_world.h"

#include <utility>

#include "volumemanager/actual_transitions.h"

namespace volumed {

ActualPod& ActualStateOfWorld::AddPod(const PodUid& pod, const PodIdentity& identity) {
  auto [at, added] = pods_.try_emplace(pod);
  if (added) {
    SetIdentity(pod, identity);
    at->second.since_unix_ms = clock_.WallUnixMillis();
    at->second.created_unix_ms = at->second.since_unix_ms;
  }
  return at->second;
}

void ActualStateOfWorld::SetIdentity(const PodUid& pod, const PodIdentity& identity) {
  PodIdentity& known = pods_.at(pod).identity;
  ForgetName(pod, known);
  known = identity;
  by_name_[{known.name_space, known.name}].insert(pod);
}

void ActualStateOfWorld::TakeOver(ActualStateOfWorld& found) {
  pods_.swap(found.pods_);
  by_name_.swap(found.by_name_);
  by_unique_name_.swap(found.by_unique_name_);
  devices_.TakeOver(found.devices_);
}

void ActualStateOfWorld::DoubtFoundVolumes() {
  for (auto& [uid, pod] : pods_) {
    for (auto& [spec, volume] : pod.volumes) volume.found_as.reset();
  }
}

ActualPod ActualStateOfWorld::TakePod(const PodUid& pod) {
  const ActualPod& taken = pods_.at(pod);
  ForgetName(pod, taken.identity);
  for (const auto& [spec, volume] : taken.volumes) {
    ForgetUniqueName({pod, spec}, volume.unique_name);
  }
  return std::move(pods_.extract(pod).mapped());
}

void ActualStateOfWorld::ForgetName(const PodUid& pod, const PodIdentity& identity) {
  const auto named = by_name_.find({identity.name_space, identity.name});
  if (named == by_name_.end()) return;
  named->second.erase(pod);
  if (named->second.empty()) by_name_.erase(named);
}

void ActualStateOfWorld::SetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name) {
  UniqueVolumeName& known = VolumeAt(key).unique_name;
  if (known == name) return;
  ForgetUniqueName(key, known);
  known = name;
  if (!name.empty()) by_unique_name_[name].insert(key);
}

void ActualStateOfWorld::ForgetUniqueName(const PodVolumeKey& key, const UniqueVolumeName& name) {
  const auto named = by_unique_name_.find(name);
  if (named == by_unique_name_.end()) return;
  named->second.erase(key);
  if (named->second.empty()) by_unique_name_.erase(named);
}

const std::set<PodUid>& ActualStateOfWorld::PodsNamed(const std::string& name_space,
                                                      const std::string& name) const {
  static const std::set<PodUid> kNone;
  const auto named = by_name_.find({name_space, name});
  return named == by_name_.end() ? kNone : named->second;
}

ActualPod* ActualStateOfWorld::FindPod(const PodUid& pod) {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? nullptr : &found->second;
}

const ActualPod* ActualStateOfWorld::FindPod(const PodUid& pod) const {
  const auto found = pods_.find(pod);
  return found == pods_.end() ? nullptr : &found->second;
}

const ActualVolume* ActualStateOfWorld::FindVolume(const PodVolumeKey& key) const {
  const ActualPod* pod = FindPod(key.pod);
  if (pod == nullptr) return nullptr;
  const auto found = pod->volumes.find(key.spec);
  return found == pod->volumes.end() ? nullptr : &found->second;
}

ActualVolume& ActualStateOfWorld::VolumeAt(const PodVolumeKey& key) {
  return pods_.at(key.pod).volumes.at(key.spec);
}

ActualVolume& ActualStateOfWorld::AddReconstructed(const PodVolumeKey& key,
                                                   const std::string& plugin_name,
                                                   VolumeState recorded, bool same_boot,
                                                   bool is_block) {
  ActualVolume& volume = pods_.at(key.pod).volumes[key.spec];
  volume.plugin_name = plugin_name;
  volume.is_block = is_block;
  volume.state = recorded;
  volume.since_unix_ms = clock_.WallUnixMillis();
  if (!same_boot) ApplyEvent(volume, VolumeEvent::kReboot, clock_);
  if (volume.state == VolumeState::kNotSetUp) {
    ApplyEvent(volume, is_block ? VolumeEvent::kFoundMapped : VolumeEvent::kFound, clock_);
  }
  volume.uncertain = true;
  volume.reconstructed = true;
  return volume;
}

bool ActualStateOfWorld::MountStarted(const PodVolumeKey& key, const MountIntent& intent) {
  auto [at, added] = pods_.at(key.pod).volumes.try_emplace(key.spec);
  ActualVolume& volume = at->second;
  if (added) volume.since_unix_ms = clock_.WallUnixMillis();
  const bool is_remount = volume.state == VolumeState::kSetUp;
  volume.plugin_name = intent.plugin_name;
  SetUniqueName(key, intent.unique_name);
  volume.has_device = intent.has_device;
  volume.is_block = intent.is_block;
  volume.driver_domain = intent.driver_domain;
  volume.call_generation = intent.generation;
  const VolumeEvent set_up = is_remount ? VolumeEvent::kRemount : VolumeEvent::kSetUp;
  StartCall(volume, intent.is_block ? VolumeEvent::kMapVolume : set_up, clock_);
  return is_remount;
}

void ActualStateOfWorld::MountDone(const PodVolumeKey& key,
                                   const OperationOutcome<MountedVolume>& outcome) {
  ActualVolume& volume = VolumeAt(key);
  if (!outcome.value) {
    CallFailed(volume, outcome.failure, clock_);
    return;
  }
  volume.in_flight = false;
  ApplyEvent(volume, VolumeEvent::kDone, clock_);
  volume.reconstructed = false;
  volume.found_as.reset();
  volume.applied_generation = outcome.value->content_unknown ? 0 : volume.call_generation;
  volume.mounted = outcome.value;
  volume.failure.reset();
  if (const auto& mapped = volume.mounted->mapped) {
    devices_.Pinned(volume.unique_name, mapped->device_path);
  }
}

void ActualStateOfWorld::UnmountStarted(const PodVolumeKey& key) {
  ActualVolume& volume = VolumeAt(key);
  volume.applied_generation = 0;
  volume.found_as.reset();
  StartCall(volume, volume.is_block ? VolumeEvent::kUnmapVolume : VolumeEvent::kTearDown, clock_);
}

void ActualStateOfWorld::UnmountDone(const PodVolumeKey& key,
                                     const OperationOutcome<Unit>& outcome) {
  if (outcome.value) {
    EraseVolume(key);
    return;
  }
  CallFailed(VolumeAt(key), outcome.failure, clock_);
}

void ActualStateOfWorld::EraseVolume(const PodVolumeKey& key) {
  std::map<SpecName, ActualVolume>& volumes = pods_.at(key.pod).volumes;
  const auto erased = volumes.find(key.spec);
  if (erased == volumes.end()) return;
  ForgetUniqueName(key, erased->second.unique_name);
  volumes.erase(erased);
}

std::vector<PodVolumeKey> ActualStateOfWorld::UsersOf(const UniqueVolumeName& volume) const {
  std::vector<PodVolumeKey> users;
  const auto named = by_unique_name_.find(volume);
  if (named == by_unique_name_.end()) return users;
  for (const PodVolumeKey& key : named->second) {
    work_.Add();
    const ActualVolume& actual = *FindVolume(key);
    if (actual.in_flight || MayBePresent(actual)) users.push_back(key);
  }
  return users;
}

bool IsSetUp(const ActualVolume& volume) {
  const bool there = volume.state == VolumeState::kSetUp || volume.state == VolumeState::kMapped;
  return there && !volume.reconstructed;
}

bool MayBePresent(const ActualVolume& volume) {
  return volume.state != VolumeState::kNotSetUp || volume.uncertain;
}

}  // namespace volumed
