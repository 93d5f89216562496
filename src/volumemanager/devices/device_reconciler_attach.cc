// DeviceReconciler: devices that are attached before they are mounted. attach_ladder.h decides the
// next step; the step is begun here.
#include <utility>

#include "operation/attach_operations.h"

#include "volumemanager/devices/device_reconciler.h"

namespace volumed {
namespace {

// Source: the reason of a pod's status in kubernetes pkg/kubelet/volumemanager@v1.36.2
// (VolumeAttachmentLimitExceeded).
constexpr const char* kLimitExceeded = "VolumeAttachmentLimitExceeded";
// This reason is this program's own: a controller that finds a missing device only logs it.
constexpr const char* kNotAttached = "VolumeNotAttached";

}  // namespace

bool DeviceReconciler::IsAttachable(const UniqueVolumeName& name,
                                    const ActualDevice* device) const {
  const std::set<PodUid>& users = parts_.desired.UsersOf(name);
  // A device keeps the kind as which it was begun, until nothing of it is on the node any more. If
  // no record knows the device, its kind is not known either, so the pods that want it decide.
  if (device != nullptr && MayBePresent(*device) && (!device->unrecorded || users.empty())) {
    return device->attachable;
  }
  if (users.empty()) return device != nullptr && device->attachable;
  return parts_.desired.FindUse(*users.begin(), name)->attachable;
}

void DeviceReconciler::ReconcileAttachable(const UniqueVolumeName& name, const ActualDevice* device,
                                           Wake& wake) {
  if (device != nullptr && device->unrecorded && !device->attachable) {
    if (!PodsThatMayHave(name).empty()) StartAttach(name, wake);
    return;
  }
  AttachSituation now;
  now.device = device;
  now.wanted = IsWantedNow(name);
  now.may_begin = !PodsThatMayHave(name).empty();
  now.used = !parts_.actual.UsersOf(name).empty();
  now.may_leave = device != nullptr && MayLeave(name, *device);
  switch (NextAttachStep(now)) {
    case AttachStep::kNothing:
      return;
    case AttachStep::kVerify:
      verifier_.MarkDirty(device->plugin_name);  // the answer is an event
      return;
    case AttachStep::kAttach:
      StartAttach(name, wake);
      return;
    case AttachStep::kMount:
      StartMount(name, wake);
      return;
    case AttachStep::kUnmount:
      StartUnmount(name, *device, wake);
      return;
    case AttachStep::kDetach:
      StartDetach(name, *device, wake);
      return;
    case AttachStep::kForget: {
      const SpecName spec = device->spec;
      parts_.actual.devices().Erase(name);
      SlotMayBeFree();
      hooks_.gone(name, spec);
      return;
    }
  }
}

void DeviceReconciler::StartAttach(const UniqueVolumeName& name, Wake& wake) {
  std::vector<PodUid> pods = PodsThatMayHave(name);
  PutFirstWhoMayJoin(name, pods);
  const WantedVolume& wanted = *parts_.desired.FindUse(pods.front(), name);
  if (const std::optional<AttachLimits::Refusal> refused = limits_.Admit(name, wanted)) {
    if (refused->is_new) TellRefused(pods, wanted, refused->error);
    return;  // a slot that becomes free is an event
  }
  AttachRequest request{name, wanted.spec, pods, wanted.limit_key};
  const ActualDevice* const found = parts_.actual.devices().Find(name);
  request.found_mounted = found != nullptr && found->unrecorded;
  const AttachIntent intent{wanted.plugin_name, wanted.spec.name(), wanted.limit_key};
  const StartResult result = parts_.operations.Start(
      AttachVolume(std::move(request)),
      alive_.Guarded([this, name](const OperationOutcome<AttachedVolume>& outcome) {
        parts_.actual.devices().AttachDone(name, outcome);
        if (outcome.value) {
          verifier_.MarkDirty(parts_.actual.devices().Find(name)->plugin_name);
        } else {
          SlotMayBeFree();
        }
        MarkDirty(name);
        TellUsers(name);
      }));
  if (result == StartResult::kStarted) {
    parts_.actual.devices().AttachStarted(name, intent);
    TellUsers(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

void DeviceReconciler::StartDetach(const UniqueVolumeName& name, const ActualDevice& device,
                                   Wake& wake) {
  const DetachRequest request{name, device.plugin_name, device.spec};
  const StartResult result = parts_.operations.Start(
      DetachVolume(request),
      alive_.Guarded([this, name, spec = device.spec](const OperationOutcome<Unit>& outcome) {
        parts_.actual.devices().DetachDone(name, outcome);
        if (outcome.value) {
          SlotMayBeFree();
          hooks_.gone(name, spec);
        }
        if (outcome.failure && hooks_.stays) hooks_.stays(name);
        MarkDirty(name);
        TellUsers(name);
      }));
  if (result == StartResult::kStarted) {
    parts_.actual.devices().DetachStarted(name);
  } else {
    wake.AfterRefusal(result, parts_.operations, OperationKey(name));
  }
}

void DeviceReconciler::WaitsNoMore(const UniqueVolumeName& name) {
  if (!limits_.Forget(name)) return;
  SlotMayBeFree();  // a later one may have its turn now
}

void DeviceReconciler::SlotMayBeFree() {
  for (const UniqueVolumeName& next : limits_.NextInTurn()) MarkDirty(next);
}

void DeviceReconciler::TellRefused(const std::vector<PodUid>& pods, const WantedVolume& wanted,
                                   const Error& error) const {
  for (const PodUid& pod : pods) {
    hooks_.event(
        pod, kLimitExceeded,
        "Unable to attach volume \"" + wanted.spec.name().str() + "\": " + error.message());
    hooks_.changed(pod);
  }
}

void DeviceReconciler::Verified(const UniqueVolumeName& name) {
  const ActualDevice& device = *parts_.actual.devices().Find(name);
  if (device.attachment == Attachment::kMissing) {
    std::set<PodUid> pods;
    for (const PodVolumeKey& user : parts_.actual.UsersOf(name)) pods.insert(user.pod);
    for (const PodUid& pod : pods) {
      hooks_.event(pod, kNotAttached,
                   "volume \"" + device.spec.str() +
                       "\" is no longer attached to this node, says " + device.plugin_name +
                       "; what is mounted is left alone while pods have it");
    }
  }
  MarkDirty(name);
  TellUsers(name);
}

}  // namespace volumed
