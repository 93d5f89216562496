#include "volumemanager/device_reconciler.h"

#include <utility>
#include <vector>

namespace volumed {

DeviceReconciler::DeviceReconciler(Parts parts, Hooks hooks)
    : parts_(parts),
      hooks_(std::move(hooks)),
      queue_(parts.scheduler,
             [this](const UniqueVolumeName& name, Wake& wake) { Reconcile(name, wake); }) {}

void DeviceReconciler::MarkAllDirty() {
  for (const auto& [name, device] : parts_.actual.devices()) MarkDirty(name);
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

void DeviceReconciler::Reconcile(const UniqueVolumeName& name, Wake& wake) {
  const ActualDevice* device = parts_.actual.FindDevice(name);
  if (device != nullptr && (device->in_flight || !device->quarantine_reason.empty())) return;
  if (!parts_.desired.UsersOf(name).empty()) {
    const bool mounted = device != nullptr && IsMounted(*device);
    if (!mounted && !PodsThatMayHave(name).empty()) StartMount(name, wake);
    return;
  }
  if (device == nullptr || !hooks_.ready() || !parts_.actual.UsersOf(name).empty()) return;
  if (MayBePresent(*device)) {
    StartUnmount(name, *device, wake);
  } else {
    const SpecName spec = device->spec;
    parts_.actual.EraseDevice(name);
    hooks_.gone(name, spec);
  }
}

void DeviceReconciler::StartMount(const UniqueVolumeName& name, Wake& wake) {
  const std::vector<PodUid> pods = PodsThatMayHave(name);
  const WantedPod& first = *parts_.desired.Find(pods.front());
  // One that writes decides for all: a read-only claim has a read-only bind.
  const WantedVolume* use = parts_.desired.FindUse(pods.front(), name);
  for (const PodUid& pod : pods) {
    const WantedVolume* other = parts_.desired.FindUse(pod, name);
    if (use->spec.read_only() && !other->spec.read_only()) use = other;
  }
  const WantedVolume& wanted = *use;
  MountDeviceRequest request{name, wanted.spec, pods, first.pod->spec.security_context.fs_group,
                             first.pod};
  const StartResult result = parts_.operations.MountDevice(
      std::move(request), [this, name, alive = std::weak_ptr<bool>(alive_)](
                              const OperationOutcome<MountedDevice>& outcome) {
        if (alive.expired()) return;
        parts_.actual.MountDeviceDone(name, outcome);
        MarkDirty(name);
        TellUsers(name);
      });
  if (result == StartResult::kStarted) {
    parts_.actual.MountDeviceStarted(name, wanted.plugin_name, wanted.spec.name(), wanted.is_block);
    TellUsers(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

void DeviceReconciler::StartUnmount(const UniqueVolumeName& name, const ActualDevice& device,
                                    Wake& wake) {
  const UnmountDeviceRequest request{name, device.plugin_name, device.spec,
                                     device.device_mount_path, device.is_block};
  const StartResult result = parts_.operations.UnmountDevice(
      request, [this, name, spec = device.spec,
                alive = std::weak_ptr<bool>(alive_)](const OperationOutcome<Unit>& outcome) {
        if (alive.expired()) return;
        parts_.actual.UnmountDeviceDone(name, outcome);
        if (outcome.value) hooks_.gone(name, spec);
        MarkDirty(name);
        TellUsers(name);
      });
  if (result == StartResult::kStarted) {
    parts_.actual.UnmountDeviceStarted(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

}  // namespace volumed
