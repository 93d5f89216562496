#include "volumemanager/devices/device_reconciler.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "operation/device_operations.h"
#include "operation/pin_operations.h"
#include "volumemanager/devices/other_volume.h"

namespace volumed {

DeviceReconciler::DeviceReconciler(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      queue_(parts.scheduler,
             [this](const UniqueVolumeName& name, Wake& wake) { Reconcile(name, wake); }),
      limits_(parts.scheduler.clock(), parts.plugins, parts.desired, parts.actual),
      verifier_({parts.scheduler, parts.plugins, parts.desired, parts.actual, parts.operations},
                {[this](const UniqueVolumeName& name) { Verified(name); },
                 [this](const UniqueVolumeName& name) { TellUsers(name); }}) {}

void DeviceReconciler::MarkAllDirty() {
  for (const auto& [name, device] : parts_.actual.devices().all()) MarkDirty(name);
}

void DeviceReconciler::ClaimsAreDecided() {
  for (const UniqueVolumeName& name : std::exchange(await_claims_, {})) MarkDirty(name);
}

void DeviceReconciler::TellUsers(const UniqueVolumeName& volume) const {
  for (const PodUid& pod : parts_.desired.UsersOf(volume)) hooks_.changed(pod);
}

std::vector<PodUid> DeviceReconciler::PodsThatMayHave(const UniqueVolumeName& name) const {
  std::vector<PodUid> pods;
  for (const PodUid& uid : parts_.desired.UsersOf(name)) {
    const ActualPod* pod = parts_.actual.FindPod(uid);
    if (pod == nullptr || !pod->record_durable || pod->removing) continue;
    if (pod->quarantine_reason.empty()) pods.push_back(uid);
  }
  return pods;
}

bool DeviceReconciler::IsWantedNow(const UniqueVolumeName& name) const {
  return !parts_.desired.UsersOf(name).empty() &&
         !HasToLeaveFirst(parts_.desired, parts_.actual, name);
}

bool DeviceReconciler::MayLeave(const UniqueVolumeName& name, const ActualDevice& device) {
  if (!parts_.readiness.Ready()) return false;
  if (!hooks_.may_be_wanted || !hooks_.may_be_wanted(device.spec)) return true;
  await_claims_.insert(name);
  return false;
}

bool DeviceReconciler::PutFirstWhoMayJoin(const UniqueVolumeName& name,
                                          std::vector<PodUid>& pods) const {
  std::set<std::pair<bool, SpecName>> had;
  for (const PodVolumeKey& user : parts_.actual.UsersOf(name)) {
    const bool is_block = parts_.actual.FindVolume(user)->is_block;
    had.emplace(is_block, is_block ? user.spec : SpecName());
  }
  const ActualDevice* device = parts_.actual.devices().Find(name);
  const bool was_refused =
      device != nullptr && device->failure && device->failure->last.step == kCheckPlaceStep;
  const auto joins = [&](const PodUid& pod) {
    const WantedVolume& use = *parts_.desired.FindUse(pod, name);
    if (had.empty()) return !was_refused || use.spec.name() != device->spec;
    return had.contains({use.is_block, use.is_block ? use.spec.name() : SpecName()});
  };
  const auto others = std::stable_partition(pods.begin(), pods.end(), joins);
  return !had.empty() && others != pods.begin();
}

std::vector<PodUid> DeviceReconciler::PodsOfOneKind(const UniqueVolumeName& name,
                                                    std::vector<PodUid> pods) const {
  const ActualDevice* device = parts_.actual.devices().Find(name);
  const bool is_there = device != nullptr && MayBeAtItsPlace(*device);
  const bool joins = !is_there && PutFirstWhoMayJoin(name, pods);
  const WantedVolume& first = *parts_.desired.FindUse(pods.front(), name);
  const bool is_block = is_there ? device->is_block : first.is_block;
  const SpecName spec = is_there ? device->spec : first.spec.name();
  std::erase_if(pods, [&](const PodUid& pod) {
    return parts_.desired.FindUse(pod, name)->is_block != is_block;
  });
  if (!is_block || !(is_there || joins)) return pods;
  std::vector<PodUid> of_its_name = pods;
  std::erase_if(of_its_name, [&](const PodUid& pod) {
    return parts_.desired.FindUse(pod, name)->spec.name() != spec;
  });
  return of_its_name.empty() ? pods : of_its_name;
}

void DeviceReconciler::Reconcile(const UniqueVolumeName& name, Wake& wake) {
  if (parts_.desired.UsersOf(name).empty()) WaitsNoMore(name);
  const ActualDevice* device = parts_.actual.devices().Find(name);
  const bool wanted = IsWantedNow(name);
  if (device != nullptr && device->in_flight) {
    // An operation that waits for a filesystem which hangs would keep the device for as long.
    if (!wanted) parts_.operations.GiveUpWaiting(OperationKey(name));
    return;
  }
  if (device != nullptr && device->lacks_pin) FollowPin(name, *device, wake);
  if (device != nullptr && !device->quarantine_reason.empty()) return;
  if (IsAttachable(name, device)) {
    ReconcileAttachable(name, device, wake);
    return;
  }
  if (wanted) {
    const bool mounted = device != nullptr && IsMounted(*device);
    if (!mounted && !PodsThatMayHave(name).empty()) StartMount(name, wake);
    return;
  }
  if (device == nullptr || !parts_.actual.UsersOf(name).empty() || !MayLeave(name, *device)) return;
  if (MayBePresent(*device)) {
    StartUnmount(name, *device, wake);
  } else {
    const SpecName spec = device->spec;
    parts_.actual.devices().Erase(name);
    hooks_.gone(name, spec);
  }
}

// The last pod's teardown does not wait for an open that waits for a filesystem which hangs.
void DeviceReconciler::FollowPin(const UniqueVolumeName& name, const ActualDevice& device,
                                 Wake& wake) {
  const std::vector<PodVolumeKey> users = parts_.actual.UsersOf(name);
  if (users.empty()) return parts_.operations.GiveUpWaiting(OperationKey(name));
  const bool all_are_mapped_again = std::all_of(
      users.begin(), users.end(),
      [&](const PodVolumeKey& user) { return parts_.desired.FindUse(user.pod, name) != nullptr; });
  // Of a device whose record cannot be read nothing is mapped.
  if (all_are_mapped_again && device.quarantine_reason.empty()) return;
  const StartResult result = parts_.operations.Start(
      PinDevice(name, device.plugin_name, device.pod_node),
      alive_.Guarded([this, name](const OperationOutcome<PinnedDevice>& outcome) {
        if (outcome.value) parts_.actual.devices().Pinned(name, outcome.value->device_path);
        MarkDirty(name);
        TellUsers(name);
      }));
  wake.AfterRefusal(result, parts_.operations, OperationKey(name));
}

void DeviceReconciler::MarkUnpinnedDirty() {
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    if (device.lacks_pin) MarkDirty(name);
  }
}

void DeviceReconciler::StartMount(const UniqueVolumeName& name, Wake& wake) {
  const std::vector<PodUid> pods = PodsOfOneKind(name, PodsThatMayHave(name));
  if (pods.empty()) return;  // those that want it as it is there have no record yet
  const WantedPod& first = *parts_.desired.Find(pods.front());
  const WantedVolume& wanted = *WritingUse(parts_.desired, pods, name);
  const bool some_only_read = std::any_of(pods.begin(), pods.end(), [&](const PodUid& pod) {
    return parts_.desired.FindUse(pod, name)->spec.read_only();
  });
  MountDeviceRequest request{.device = name,
                             .spec = wanted.spec,
                             .pods = pods,
                             .fs_group = first.pod->spec.security_context.fs_group,
                             .some_pods_only_read = some_only_read,
                             .first_pod = first.pod};
  request.selinux_label = wanted.selinux_label;
  if (hooks_.set_sizes) hooks_.set_sizes(wanted, request);
  if (const ActualDevice* device = parts_.actual.devices().Find(name)) {
    request.attachable = device->attachable && MayBePresent(*device);
    request.reconstructed = device->reconstructed;
  }
  const StartResult result = parts_.operations.Start(
      MountDevice(std::move(request)),
      alive_.Guarded([this, name](const OperationOutcome<MountedDevice>& outcome) {
        parts_.actual.devices().MountDone(name, outcome);
        if (outcome.value && hooks_.mounted) hooks_.mounted(name);
        MarkDirty(name);
        TellUsers(name);
      }));
  if (result == StartResult::kStarted) {
    parts_.actual.devices().MountStarted(name, wanted.plugin_name, wanted.spec.name(),
                                         wanted.is_block);
    TellUsers(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

void DeviceReconciler::StartUnmount(const UniqueVolumeName& name, const ActualDevice& device,
                                    Wake& wake) {
  const UnmountDeviceRequest request{name, device.plugin_name, device.spec,
                                     device.device_mount_path, device.is_block};
  const StartResult result = parts_.operations.Start(
      UnmountDevice(request),
      alive_.Guarded([this, name, spec = device.spec](const OperationOutcome<Unit>& outcome) {
        parts_.actual.devices().UnmountDone(name, outcome);
        if (outcome.value && parts_.actual.devices().Find(name) == nullptr) hooks_.gone(name, spec);
        if (outcome.failure && hooks_.stays) hooks_.stays(name);
        MarkDirty(name);
        TellUsers(name);
      }));
  if (result == StartResult::kStarted) {
    parts_.actual.devices().UnmountStarted(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

}  // namespace volumed
