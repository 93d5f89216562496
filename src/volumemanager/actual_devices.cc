#include "volumemanager/actual_devices.h"

#include <utility>

#include "volumemanager/actual_transitions.h"

namespace volumed {

void ActualDevices::TakeOver(ActualDevices& found) {
  devices_.swap(found.devices_);
  by_limit_.swap(found.by_limit_);
  by_only_pod_.swap(found.by_only_pod_);
}

void ActualDevices::Start(ActualDevice& device, VolumeEvent call) {
  ++device.operations;
  StartCall(device, call, clock_);
}

const ActualDevice* ActualDevices::Find(const UniqueVolumeName& device) const {
  const auto found = devices_.find(device);
  return found == devices_.end() ? nullptr : &found->second;
}

void ActualDevices::AddReconstructed(const UniqueVolumeName& name, ActualDevice device) {
  device.since_unix_ms = clock_.WallUnixMillis();
  if (!device.attachable && device.state == VolumeState::kAttached) {
    ApplyEvent(device, VolumeEvent::kFound, clock_);
  }
  device.uncertain = device.uncertain || device.state != VolumeState::kAttached;
  device.reconstructed = true;
  SetLimitKey(name, devices_[name], device.limit_key);
  if (!device.only_pod.empty()) by_only_pod_[device.only_pod].insert(name);
  devices_.insert_or_assign(name, std::move(device));
}

void ActualDevices::Erase(const UniqueVolumeName& name) {
  const auto device = devices_.find(name);
  if (device == devices_.end()) return;
  SetLimitKey(name, device->second, "");
  ReleaseOnlyPod(name, device->second.only_pod);
  devices_.erase(device);
}

void ActualDevices::ReleaseOnlyPod(const UniqueVolumeName& name, const PodUid& pod) {
  const auto has = by_only_pod_.find(pod);
  if (has == by_only_pod_.end() || has->second.erase(name) == 0) return;
  if (has->second.empty()) by_only_pod_.erase(has);
  devices_.at(name).only_pod = PodUid();
}

std::set<UniqueVolumeName> ActualDevices::ReleaseOnlyPods(const PodUid& pod) {
  const auto has = by_only_pod_.extract(pod);
  if (has.empty()) return {};
  for (const UniqueVolumeName& name : has.mapped()) devices_.at(name).only_pod = PodUid();
  return has.mapped();
}

void ActualDevices::Pinned(const UniqueVolumeName& name, const std::string& device_path) {
  const auto device = devices_.find(name);
  if (device == devices_.end()) return;
  device->second.lacks_pin = false;
  device->second.pinned_path = device_path;
}

const std::set<UniqueVolumeName>& ActualDevices::OfLimit(const std::string& limit_key) const {
  static const std::set<UniqueVolumeName> none;
  const auto devices = by_limit_.find(limit_key);
  return devices == by_limit_.end() ? none : devices->second;
}

void ActualDevices::SetLimitKey(const UniqueVolumeName& name, ActualDevice& device,
                                const std::string& limit_key) {
  if (const auto before = by_limit_.find(device.limit_key); before != by_limit_.end()) {
    before->second.erase(name);
    if (before->second.empty()) by_limit_.erase(before);
  }
  if (!limit_key.empty()) by_limit_[limit_key].insert(name);
  device.limit_key = limit_key;
}

void ActualDevices::MountStarted(const UniqueVolumeName& name, const std::string& plugin_name,
                                 const SpecName& spec, bool is_block) {
  auto [at, added] = devices_.try_emplace(name);
  ActualDevice& device = at->second;
  if (added) device.since_unix_ms = clock_.WallUnixMillis();
  BeginAs(device, false);
  device.plugin_name = plugin_name;
  device.spec = spec;
  device.is_block = is_block;
  Start(device, VolumeEvent::kMountDevice);
}

void ActualDevices::MountDone(const UniqueVolumeName& name,
                              const OperationOutcome<MountedDevice>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    CallFailed(device, outcome.failure, clock_);
    return;
  }
  device.in_flight = false;
  ApplyEvent(device, VolumeEvent::kDone, clock_);
  device.reconstructed = false;
  device.unrecorded = false;
  device.rest_of_mount = false;
  device.device_mount_path = outcome.value->device_mount_path;
  if (device.attachable) device.device_path = outcome.value->device_path;
  device.failure.reset();
}

void ActualDevices::UnmountStarted(const UniqueVolumeName& name) {
  ActualDevice& device = devices_.at(name);
  // After a reboot a rest of the device's mount may be left, also once it was to be attached anew.
  const bool is_attached = device.state == VolumeState::kAttached;
  const bool in_doubt =
      device.state == VolumeState::kAttaching || (is_attached && device.uncertain);
  device.attach_in_doubt = device.attachable && (device.attach_in_doubt || in_doubt);
  if ((is_attached && device.uncertain) ||
      (device.rest_of_mount && (is_attached || device.state == VolumeState::kAttaching))) {
    ApplyEvent(device, VolumeEvent::kFound, clock_);
  }
  Start(device, VolumeEvent::kUnmountDevice);
}

void ActualDevices::UnmountDone(const UniqueVolumeName& name,
                                const OperationOutcome<Unit>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    CallFailed(device, outcome.failure, clock_);
    return;
  }
  if (!device.attachable) {
    Erase(name);
    return;
  }
  device.lacks_pin = false;
  device.pinned_path.clear();
  device.in_flight = false;
  ApplyEvent(device, VolumeEvent::kDone, clock_);
  // A device that has to be attached again may turn out to be attached.
  const bool was_attached_anew = device.attachment == Attachment::kAttached;
  device.uncertain = device.uncertain || device.attachment == Attachment::kMissing ||
                     device.attach_in_doubt || (device.rest_of_mount && !was_attached_anew);
  device.rest_of_mount = false;
  device.attach_in_doubt = false;
  device.failure.reset();
}

// If nothing of the device is on the node, or it is not known how the device came there, it becomes
// a device of this kind.
void ActualDevices::BeginAs(ActualDevice& device, bool attachable) {
  if (MayBePresent(device) && (!device.unrecorded || device.attachable == attachable)) return;
  device.attachable = attachable;
  device.state = RestingState(attachable);
}

void ActualDevices::AttachStarted(const UniqueVolumeName& name, const AttachIntent& intent) {
  auto [at, added] = devices_.try_emplace(name);
  ActualDevice& device = at->second;
  if (added) device.since_unix_ms = clock_.WallUnixMillis();
  BeginAs(device, true);
  // Its mount is there, whatever becomes of the attach.
  device.rest_of_mount = device.rest_of_mount || device.unrecorded;
  device.plugin_name = intent.plugin_name;
  device.spec = intent.spec;
  SetLimitKey(name, device, intent.limit_key);
  Start(device, VolumeEvent::kAttach);
}

void ActualDevices::AttachDone(const UniqueVolumeName& name,
                               const OperationOutcome<AttachedVolume>& outcome) {
  ActualDevice& device = devices_.at(name);
  if (!outcome.value) {
    CallFailed(device, outcome.failure, clock_);
    // Nothing was begun: the device is still what it was found as.
    if (device.unrecorded && outcome.failure && !outcome.failure->error.maybe_applied()) {
      BeginAs(device, false);
      device.rest_of_mount = false;
      ApplyEvent(device, VolumeEvent::kFound, clock_);
    }
    return;
  }
  device.in_flight = false;
  ApplyEvent(device, VolumeEvent::kDone, clock_);
  // The device had been mounted before it was attached.
  if (std::exchange(device.unrecorded, false)) ApplyEvent(device, VolumeEvent::kFound, clock_);
  device.reconstructed = false;
  device.attachment = Attachment::kAttached;
  device.device_path = outcome.value->device_path;
  device.failure.reset();
}

void ActualDevices::DetachStarted(const UniqueVolumeName& name) {
  ActualDevice& device = devices_.at(name);
  Start(device, VolumeEvent::kDetach);
}

void ActualDevices::DetachDone(const UniqueVolumeName& name,
                               const OperationOutcome<Unit>& outcome) {
  if (outcome.value) {
    Erase(name);
    return;
  }
  ActualDevice& device = devices_.at(name);
  CallFailed(device, outcome.failure, clock_);
}

bool ActualDevices::AttachmentVerified(const UniqueVolumeName& name, bool attached) {
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

void ActualDevices::ExpandStarted(const UniqueVolumeName& name) {
  const auto device = devices_.find(name);
  if (device != devices_.end()) Start(device->second, VolumeEvent::kExpand);
}

void ActualDevices::ExpandDone(const UniqueVolumeName& name,
                               const OperationOutcome<ExpandedVolume>& outcome) {
  const auto found = devices_.find(name);
  if (found == devices_.end()) return;
  ActualDevice& device = found->second;
  device.in_flight = false;
  if (outcome.value) {
    ApplyEvent(device, VolumeEvent::kDone, clock_);
    return;
  }
  const bool maybe_applied = !outcome.failure || outcome.failure->error.maybe_applied();
  ApplyEvent(device,
             AnswerEvent(maybe_applied ? CallAnswer::kMaybeApplied : CallAnswer::kNotApplied,
                         device.uncertain_before),
             clock_);
}

void ActualDevices::Quarantine(const UniqueVolumeName& name, const std::string& reason) {
  devices_[name].quarantine_reason = reason;
}

void ActualDevices::LacksPin(const UniqueVolumeName& name, const std::string& plugin_name,
                             const std::string& pod_node) {
  ActualDevice& device = devices_[name];
  device.plugin_name = plugin_name;
  device.pod_node = pod_node;
  device.lacks_pin = true;
}

bool IsMounted(const ActualDevice& device) {
  return device.state == VolumeState::kDeviceMounted && !device.uncertain &&
         !device.reconstructed && device.quarantine_reason.empty() &&
         (!device.attachable || device.attachment == Attachment::kAttached);
}

bool MayBeAtItsPlace(const ActualDevice& device) {
  return MayBeAtPlace(device.state) || device.rest_of_mount;
}

bool MayBePresent(const ActualDevice& device) {
  return device.state != RestingState(device.attachable) || device.uncertain;
}

}  // namespace volumed
