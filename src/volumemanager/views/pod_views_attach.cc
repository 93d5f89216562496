// PodViews: problems of volumes that are attached, or whose device is there for another volume.
#include "operation/attach_operations.h"
#include "volumemanager/devices/other_volume.h"
#include "volumemanager/views/pod_views.h"

namespace volumed {
namespace {

constexpr const char* kVerifyStep = "VolumesAreAttached";

ProblemView Refused(const AttachLimits::Refusal& refused) {
  ProblemView problem = Waiting("CheckAttachLimits", refused.error.message(),
                                "the owners of the pods that have the slots, or an administrator",
                                refused.since_unix_ms);
  problem.operation = "volume_attach";
  problem.code = CodeName(refused.error.code());
  problem.outcome = OutcomeName(refused.error.outcome());
  return problem;
}

// Another pod than this one that may have some of the volume; null if none has.
const ActualPod* OtherUserOf(const ActualStateOfWorld& actual, const UniqueVolumeName& volume,
                             const ActualPod& pod) {
  for (const PodVolumeKey& user : actual.UsersOf(volume)) {
    const ActualPod* const other = actual.FindPod(user.pod);
    if (other != nullptr && other->identity != pod.identity) return other;
  }
  return nullptr;
}

}  // namespace

std::optional<ProblemView> PodViews::AttachProblem(const WantedVolume& wanted, const ActualPod& pod,
                                                   const ActualDevice* device) const {
  if (const auto refused = parts_.devices.limits().Find(wanted.unique_name)) {
    return Refused(*refused);
  }
  if (device == nullptr || !device->attachable) return std::nullopt;
  switch (device->attachment) {
    case Attachment::kAttached:
      return std::nullopt;
    case Attachment::kMissing:
      return Waiting(kVerifyStep,
                     device->plugin_name +
                         " says that the volume is not attached to this node any more; it is "
                         "attached again when no pod has it mounted",
                     "an administrator, or the owners of the pods that have it",
                     device->missing_since_unix_ms);
    case Attachment::kUnknown:
      break;
  }
  if (device->failure || !MayBePresent(*device) || device->in_flight) return std::nullopt;
  if (const FailureHistory* failure = parts_.devices.verifier().FailureOf(device->plugin_name)) {
    return FromFailure(*failure, VerifyAttachedKey(device->plugin_name), pod, nullptr);
  }
  return Waiting(kVerifyStep, "its plugin is asked whether the volume is attached still",
                 "nobody: retried", device->since_unix_ms);
}

std::optional<ProblemView> PodViews::OtherVolumeProblem(const WantedVolume& wanted,
                                                        const ActualPod& pod,
                                                        const ActualDevice* device) const {
  if (device == nullptr || !device->quarantine_reason.empty()) return std::nullopt;
  const bool is_of_other_kind = MayBeAtItsPlace(*device) && device->is_block != wanted.is_block;
  if (!is_of_other_kind && !HasToLeaveFirst(parts_.desired, parts_.actual, wanted.unique_name)) {
    return std::nullopt;
  }
  const OperationKey key(wanted.unique_name);
  std::optional<ProblemView> problem = LaneProblem(key, device->failure);
  if (!problem && device->failure) problem = FromFailure(*device->failure, key, pod, nullptr);
  if (!problem) {
    const ActualPod* const user = OtherUserOf(parts_.actual, wanted.unique_name, pod);
    const std::string who = user == nullptr ? "" : "pod " + user->identity.DisplayName();
    return Waiting("WaitForUnmount",
                   StillThereText(*device) + (who.empty() ? "" : "; " + who + " has it"),
                   who.empty() ? kNobodyMustAct : "the owner of " + who, device->since_unix_ms);
  }
  problem->message = StillThereText(*device) + ": " + problem->message;
  return problem;
}

void PodViews::AddOtherFsTypes(const WantedPod& wanted, const ActualPod& pod, PodView& view) const {
  for (const auto& [spec, volume] : wanted.volumes) {
    const ActualDevice* const device = parts_.actual.devices().Find(volume.unique_name);
    const bool is_shared = !volume.is_block && device != nullptr && IsMounted(*device) &&
                           device->spec != volume.spec.name();
    if (!is_shared) continue;
    const PersistentVolumePtr there = parts_.catalog.FindPersistentVolume(device->spec.str());
    const std::string text = there == nullptr ? "" : OtherFsTypeText(volume.spec, *there);
    if (text.empty()) continue;
    view.problems.push_back(
        Waiting("FilesystemType", text, "the owners of both PersistentVolumes", pod.since_unix_ms));
    view.problems.back().is_warning = true;
  }
}

}  // namespace volumed
