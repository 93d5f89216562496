#include "volumemanager/actual_state_of_world.h"

#include <type_traits>
#include <utility>

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
  devices_.swap(found.devices_);
  by_limit_.swap(found.by_limit_);
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

template <typename Thing>
void ActualStateOfWorld::Apply(Thing& thing, VolumeEvent event) {
  const std::optional<Transition> row = Next(thing.state, event);
  if (!row) {
    thing.uncertain = true;
    return;
  }
  if (row->to != thing.state) thing.since_unix_ms = clock_.WallUnixMillis();
  thing.state = row->to;
  thing.uncertain = row->uncertain;
}

template <typename Thing>
void ActualStateOfWorld::Start(Thing& thing, VolumeEvent call) {
  thing.in_flight = true;
  if constexpr (std::is_same_v<Thing, ActualDevice>) ++thing.operations;
  thing.uncertain_before = thing.uncertain;
  Apply(thing, call);
}

template <typename Thing>
void ActualStateOfWorld::Failed(Thing& thing, const std::optional<OperationFailure>& failure) {
  thing.in_flight = false;
  const bool maybe_applied = !failure || failure->error.maybe_applied();
  Apply(thing, AnswerEvent(maybe_applied ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied,
                           thing.uncertain_before));
  if (failure) NoteFailure(thing.failure, *failure);
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
  if (!same_boot) Apply(volume, VolumeEvent::kReboot);
  if (volume.state == VolumeState::kNotSetUp) {
    Apply(volume, is_block ? VolumeEvent::kFoundMapped : VolumeEvent::kFound);
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
  volume.call_generation = intent.generation;
  const VolumeEvent set_up = is_remount ? VolumeEvent::kRemount : VolumeEvent::kSetUp;
  Start(volume, intent.is_block ? VolumeEvent::kMapVolume : set_up);
  return is_remount;
}

void ActualStateOfWorld::MountDone(const PodVolumeKey& key,
                                   const OperationOutcome<MountedVolume>& outcome) {
  ActualVolume& volume = VolumeAt(key);
  if (!outcome.value) {
    Failed(volume, outcome.failure);
    return;
  }
  volume.in_flight = false;
  Apply(volume, VolumeEvent::kDone);
  volume.reconstructed = false;
  volume.found_as.reset();
  volume.applied_generation = outcome.value->content_unknown ? 0 : volume.call_generation;
  volume.mounted = outcome.value;
  volume.failure.reset();
}

void ActualStateOfWorld::UnmountStarted(const PodVolumeKey& key) {
  ActualVolume& volume = VolumeAt(key);
  volume.applied_generation = 0;
  volume.found_as.reset();
  Start(volume, volume.is_block ? VolumeEvent::kUnmapVolume : VolumeEvent::kTearDown);
}

void ActualStateOfWorld::UnmountDone(const PodVolumeKey& key,
                                     const OperationOutcome<Unit>& outcome) {
  if (outcome.value) {
    EraseVolume(key);
    return;
  }
  Failed(VolumeAt(key), outcome.failure);
}

void ActualStateOfWorld::EraseVolume(const PodVolumeKey& key) {
  std::map<SpecName, ActualVolume>& volumes = pods_.at(key.pod).volumes;
  const auto erased = volumes.find(key.spec);
  if (erased == volumes.end()) return;
  ForgetUniqueName(key, erased->second.unique_name);
  volumes.erase(erased);
}

// ---- devices ------------------------------------------------------------------------------------

const ActualDevice* ActualStateOfWorld::FindDevice(const UniqueVolumeName& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
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

void ActualStateOfWorld::AddReconstructedDevice(const UniqueVolumeName& name, ActualDevice device) {
  device.since_unix_ms = clock_.WallUnixMillis();
  if (!device.attachable && device.state == VolumeState::kAttached) {
    Apply(device, VolumeEvent::kFound);
  }
  device.uncertain = device.uncertain || device.state != VolumeState::kAttached;
  device.reconstructed = true;
  SetLimitKey(name, devices_[name], device.limit_key);
  devices_.insert_or_assign(name, std::move(device));
}

void ActualStateOfWorld::EraseDevice(const UniqueVolumeName& name) {
  const auto device = devices_.find(name);
  if (device == devices_.end()) return;
  SetLimitKey(name, device->second, "");
  devices_.erase(device);
}

const std::set<UniqueVolumeName>& ActualStateOfWorld::DevicesOfLimit(
    const std::string& limit_key) const {
  static const std::set<UniqueVolumeName> none;
  const auto devices = by_limit_.find(limit_key);
  return devices == by_limit_.end() ? none : devices->second;
}

void ActualStateOfWorld::SetLimitKey(const UniqueVolumeName& name, ActualDevice& device,
                                     const std::string& limit_key) {
  if (const auto before = by_limit_.find(device.limit_key); before != by_limit_.end()) {
    before->second.erase(name);
    if (before->second.empty()) by_limit_.erase(before);
  }
  if (!limit_key.empty()) by_limit_[limit_key].insert(name);
  device.limit_key = limit_key;
}

void ActualStateOfWorld::MountDeviceStarted(const UniqueVolumeName& name,
                                            const std::string& plugin_name, const SpecName& spec,
                                            bool is_block) {
  auto [at, added] = devices_.try_emplace(name);
  ActualDevice& device = at->second;
  if (added) device.since_unix_ms = clock_.WallUnixMillis();
  BeginAs(device, false);
  device.plugin_name = plugin_name;
  device.spec = spec;
  device.is_block = is_block;
  Start(device, VolumeEvent::kMountDevice);
}

void ActualStateOfWorld::MountDeviceDone(const UniqueVolumeName& name,
                                         const OperationOutcome<MountedDevice>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    Failed(device, outcome.failure);
    return;
  }
  device.in_flight = false;
  Apply(device, VolumeEvent::kDone);
  device.reconstructed = false;
  device.unrecorded = false;
  device.device_mount_path = outcome.value->device_mount_path;
  if (device.attachable) device.device_path = outcome.value->device_path;
  device.failure.reset();
}

void ActualStateOfWorld::UnmountDeviceStarted(const UniqueVolumeName& name) {
  ActualDevice& device = devices_.at(name);
  // After a reboot a rest of the device's mount may be left.
  if (device.state == VolumeState::kAttached && device.uncertain) {
    Apply(device, VolumeEvent::kFound);
  }
  Start(device, VolumeEvent::kUnmountDevice);
}

void ActualStateOfWorld::UnmountDeviceDone(const UniqueVolumeName& name,
                                           const OperationOutcome<Unit>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    Failed(device, outcome.failure);
    return;
  }
  if (!device.attachable) {
    EraseDevice(name);
    return;
  }
  device.in_flight = false;
  Apply(device, VolumeEvent::kDone);
  // A device that has to be attached again may turn out to be attached.
  device.uncertain = device.uncertain || device.attachment == Attachment::kMissing;
  device.failure.reset();
}

// If nothing of the device is on the node, or it is not known how the device came there, it becomes
// a device of this kind.
void ActualStateOfWorld::BeginAs(ActualDevice& device, bool attachable) {
  if (MayBePresent(device) && (!device.unrecorded || device.attachable == attachable)) return;
  device.attachable = attachable;
  device.state = RestingState(attachable);
}

void ActualStateOfWorld::AttachStarted(const UniqueVolumeName& name, const AttachIntent& intent) {
  auto [at, added] = devices_.try_emplace(name);
  ActualDevice& device = at->second;
  if (added) device.since_unix_ms = clock_.WallUnixMillis();
  BeginAs(device, true);
  device.plugin_name = intent.plugin_name;
  device.spec = intent.spec;
  SetLimitKey(name, device, intent.limit_key);
  Start(device, VolumeEvent::kAttach);
}

void ActualStateOfWorld::AttachDone(const UniqueVolumeName& name,
                                    const OperationOutcome<AttachedVolume>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    Failed(device, outcome.failure);
    // Nothing was begun: the device is still what it was found as.
    if (device.unrecorded && outcome.failure && !outcome.failure->error.maybe_applied()) {
      BeginAs(device, false);
      Apply(device, VolumeEvent::kFound);
    }
    return;
  }
  device.in_flight = false;
  Apply(device, VolumeEvent::kDone);
  // The device had been mounted before it was attached.
  if (std::exchange(device.unrecorded, false)) Apply(device, VolumeEvent::kFound);
  device.reconstructed = false;
  device.attachment = Attachment::kAttached;
  device.device_path = outcome.value->device_path;
  device.failure.reset();
}

void ActualStateOfWorld::DetachStarted(const UniqueVolumeName& name) {
  ActualDevice& device = devices_.at(name);
  Start(device, VolumeEvent::kDetach);
}

void ActualStateOfWorld::DetachDone(const UniqueVolumeName& name,
                                    const OperationOutcome<Unit>& outcome) {
  if (outcome.value) {
    EraseDevice(name);
    return;
  }
  ActualDevice& device = devices_.at(name);
  Failed(device, outcome.failure);
}

bool ActualStateOfWorld::AttachmentVerified(const UniqueVolumeName& name, bool attached) {
  ActualDevice& device = devices_.at(name);
  const Attachment now = attached ? Attachment::kAttached : Attachment::kMissing;
  if (device.attachment == now) return false;
  device.attachment = now;
  if (!attached) {
    device.missing_since_unix_ms = clock_.WallUnixMillis();
    device.uncertain = true;
  }
  return true;
}

void ActualStateOfWorld::ExpandDeviceStarted(const UniqueVolumeName& name) {
  const auto device = devices_.find(name);
  if (device != devices_.end()) Start(device->second, VolumeEvent::kExpand);
}

void ActualStateOfWorld::ExpandDeviceDone(const UniqueVolumeName& name,
                                          const OperationOutcome<ExpandedVolume>& outcome) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return;
  ActualDevice& device = found->second;
  device.in_flight = false;
  if (outcome.value) {
    Apply(device, VolumeEvent::kDone);
    return;
  }
  const bool maybe_applied = !outcome.failure || outcome.failure->error.maybe_applied();
  Apply(device, AnswerEvent(maybe_applied ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied,
                            device.uncertain_before));
}

void ActualStateOfWorld::QuarantineDevice(const UniqueVolumeName& name, const std::string& reason) {
  devices_[name].quarantine_reason = reason;
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
  const bool there = volume.state == VolumeState::kSetUp || volume.state == VolumeState::kMapped;
  return there && !volume.reconstructed;
}

bool MayBePresent(const ActualVolume& volume) {
  return volume.state != VolumeState::kNotSetUp || volume.uncertain;
}

bool IsMounted(const ActualDevice& device) {
  return device.state == VolumeState::kDeviceMounted && !device.uncertain &&
         !device.reconstructed && device.quarantine_reason.empty() &&
         (!device.attachable || device.attachment == Attachment::kAttached);
}

bool MayBePresent(const ActualDevice& device) {
  return device.state != RestingState(device.attachable) || device.uncertain;
}

}  // namespace volumed
