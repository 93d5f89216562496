#include "volumemanager/actual_state_of_world.h"

#include <utility>

namespace volumed {

ActualPod& ActualStateOfWorld::AddPod(const PodUid& pod, const PodIdentity& identity) {
  auto [at, added] = pods_.try_emplace(pod);
  if (added) {
    at->second.identity = identity;
    at->second.since_unix_ms = clock_.WallUnixMillis();
  }
  return at->second;
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

void ActualStateOfWorld::Apply(ActualVolume& volume, VolumeEvent event) {
  const std::optional<Transition> row = Next(volume.state, event);
  if (!row) {
    volume.uncertain = true;
    return;
  }
  if (row->to != volume.state) volume.since_unix_ms = clock_.WallUnixMillis();
  volume.state = row->to;
  volume.uncertain = row->uncertain;
}

void ActualStateOfWorld::AddReconstructed(const PodVolumeKey& key, const std::string& plugin_name,
                                          VolumeState recorded, bool same_boot) {
  ActualVolume& volume = pods_.at(key.pod).volumes[key.spec];
  volume.plugin_name = plugin_name;
  volume.state = recorded;
  volume.since_unix_ms = clock_.WallUnixMillis();
  if (!same_boot) Apply(volume, VolumeEvent::kReboot);
  if (volume.state == VolumeState::kNotSetUp) Apply(volume, VolumeEvent::kFound);
  volume.uncertain = true;
  volume.reconstructed = true;
}

bool ActualStateOfWorld::MountStarted(const PodVolumeKey& key, const std::string& plugin_name,
                                      uint64_t generation) {
  auto [at, added] = pods_.at(key.pod).volumes.try_emplace(key.spec);
  ActualVolume& volume = at->second;
  if (added) volume.since_unix_ms = clock_.WallUnixMillis();
  const bool is_remount = volume.state == VolumeState::kSetUp;
  volume.plugin_name = plugin_name;
  volume.in_flight = true;
  volume.uncertain_before = volume.uncertain;
  volume.call_generation = generation;
  Apply(volume, is_remount ? VolumeEvent::kRemount : VolumeEvent::kSetUp);
  return is_remount;
}

void ActualStateOfWorld::MountDone(const PodVolumeKey& key,
                                   const OperationOutcome<MountedVolume>& outcome) {
  ActualVolume& volume = VolumeAt(key);
  volume.in_flight = false;
  if (!outcome.value) {
    Failed(volume, outcome.failure);
    return;
  }
  Apply(volume, VolumeEvent::kDone);
  volume.reconstructed = false;
  volume.applied_generation = volume.call_generation;
  volume.mounted = outcome.value;
  volume.failure.reset();
}

void ActualStateOfWorld::UnmountStarted(const PodVolumeKey& key) {
  ActualVolume& volume = VolumeAt(key);
  volume.in_flight = true;
  volume.uncertain_before = volume.uncertain;
  volume.applied_generation = 0;
  Apply(volume, VolumeEvent::kTearDown);
}

void ActualStateOfWorld::UnmountDone(const PodVolumeKey& key,
                                     const OperationOutcome<Unit>& outcome) {
  if (outcome.value) {
    EraseVolume(key);
    return;
  }
  ActualVolume& volume = VolumeAt(key);
  volume.in_flight = false;
  Failed(volume, outcome.failure);
}

void ActualStateOfWorld::Failed(ActualVolume& volume,
                                const std::optional<OperationFailure>& failure) {
  const bool maybe_applied = !failure || failure->error.maybe_applied();
  Apply(volume, AnswerEvent(maybe_applied ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied,
                            volume.uncertain_before));
  if (failure) NoteFailure(volume.failure, *failure);
}

void ActualStateOfWorld::EraseVolume(const PodVolumeKey& key) {
  pods_.at(key.pod).volumes.erase(key.spec);
}

void ActualStateOfWorld::NoteFailure(std::optional<FailureHistory>& history,
                                     const OperationFailure& failure) const {
  if (!history || history->last.operation != failure.operation) {
    history = FailureHistory{failure, clock_.WallUnixMillis(), 0};
  }
  history->last = failure;
  ++history->attempts;
}

bool IsSetUp(const ActualVolume& volume) {
  return volume.state == VolumeState::kSetUp && !volume.reconstructed;
}

bool MayBePresent(const ActualVolume& volume) {
  return volume.state != VolumeState::kNotSetUp || volume.uncertain;
}

}  // namespace volumed
