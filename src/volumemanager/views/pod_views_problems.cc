// PodViews: what is wrong with a volume, the first thing that blocks it, and with a pod.
#include <utility>

#include "base/strings.h"
#include "kube/about_object.h"
#include "operation/expand_operations.h"
#include "volumemanager/failure_history.h"
#include "volumemanager/views/pod_views.h"

namespace volumed {
namespace {

std::string OwnerOf(const PodIdentity& pod) { return "the owner of pod " + pod.DisplayName(); }

std::string OwnerOf(const ObjectKey& key) {
  const std::string kind = key.kind == ObjectKind::kSecret ? "secret" : "config map";
  return "the owner of " + kind + " " + key.name_space + "/" + key.name;
}

std::string KindText(const std::string& plugin, bool is_block) {
  return plugin + (is_block ? ", a block volume," : "");
}

ProblemView FromWanted(const WantedProblem& wanted, const ActualPod& pod) {
  ProblemView problem;
  problem.step = wanted.step;
  problem.code = CodeName(wanted.error.code());
  problem.outcome = OutcomeName(wanted.error.outcome());
  problem.message = wanted.error.message();
  problem.who_must_act = wanted.who_must_act.empty() ? OwnerOf(pod.identity) : wanted.who_must_act;
  problem.since_unix_ms = pod.since_unix_ms;
  problem.attempts = wanted.attempts;
  return problem;
}

}  // namespace

ProblemView Waiting(std::string step, std::string message, std::string who, int64_t since) {
  ProblemView problem;
  problem.step = std::move(step);
  problem.message = std::move(message);
  problem.who_must_act = std::move(who);
  problem.since_unix_ms = since;
  return problem;
}

// The first thing, other than a failure of its own, that keeps a wanted persistent volume from
// being set up.
std::optional<ProblemView> PodViews::SharedProblem(const PodVolumeKey& key, const ActualPod& pod,
                                                   const WantedVolume& wanted) const {
  if (const std::optional<PodUid> other = parts_.reconciler.ExcludedBy(key.pod, wanted)) {
    const ActualPod* user = parts_.actual.FindPod(*other);
    ProblemView problem = Waiting(
        "WaitForOtherPod",
        "volume uses the ReadWriteOncePod access mode and is already in use by another pod (" +
            user->identity.DisplayName() + ")",
        OwnerOf(user->identity), pod.since_unix_ms);
    problem.code = CodeName(Code::kFailedPrecondition);
    return problem;
  }
  if (!wanted.has_device) return std::nullopt;
  const ActualDevice* device = parts_.actual.devices().Find(wanted.unique_name);
  if (auto other = OtherVolumeProblem(wanted, pod, device)) return other;
  if (auto attach = AttachProblem(wanted, pod, device)) return attach;
  if (device == nullptr) return std::nullopt;
  if (!device->quarantine_reason.empty()) {
    return Waiting("ReadRecord",
                   device->quarantine_reason + "; the device is left alone until it is repaired",
                   kAdministratorMustAct, device->since_unix_ms);
  }
  if (auto lane = LaneProblem(OperationKey(wanted.unique_name), device->failure)) {
    return lane;
  }
  if (!device->failure) return OwnerProblem(key, wanted);
  // The disk belongs to the node, so no owner of a pod can repair it.
  return FromFailure(*device->failure, OperationKey(wanted.unique_name), pod, nullptr);
}

std::optional<ProblemView> PodViews::OwnerProblem(const PodVolumeKey& key,
                                                  const WantedVolume& wanted) const {
  if (IsSetUpFully(wanted, parts_.actual.FindVolume(key))) return std::nullopt;
  const std::optional<RunningOperation> owner = parts_.operations.FindOwner(wanted.unique_name);
  if (!owner) return std::nullopt;
  std::optional<ProblemView> problem = LaneProblem(owner->key, std::nullopt);
  if (problem)
    problem->message = "another operation has the device, and waits: " + problem->message;
  return problem;
}

std::optional<ProblemView> PodViews::VanishedDevice(const PodVolumeKey& key,
                                                    const WantedVolume& wanted) const {
  if (parts_.vanished_devices.empty() && parts_.storage_troubles.empty()) return std::nullopt;
  const ActualVolume* actual = parts_.actual.FindVolume(key);
  if (actual == nullptr || !MayBePresent(*actual)) return std::nullopt;
  std::vector<std::string> paths = wanted.device_paths;
  const ActualDevice* device = parts_.actual.devices().Find(wanted.unique_name);
  if (device != nullptr) paths.push_back(device->device_path);
  for (const std::string& path : paths) {
    const auto trouble = parts_.storage_troubles.find(path);
    if (trouble != parts_.storage_troubles.end()) {
      const StorageTrouble& ails = trouble->second;
      ProblemView problem =
          Waiting(ails.step, ails.text, kAdministratorMustAct, ails.since_unix_ms);
      problem.is_warning = ails.is_warning;
      return problem;
    }
    const auto vanished = parts_.vanished_devices.find(path);
    if (vanished == parts_.vanished_devices.end()) continue;
    return Waiting(
        "DeviceGone",
        "device " + path +
            " has left the node while the volume is in use: what the pod still has of it "
            "answers with errors; the pod has to go before a device that returns is used",
        kAdministratorMustAct, vanished->second);
  }
  return std::nullopt;
}

std::optional<ProblemView> PodViews::VolumeProblem(const PodVolumeKey& key, const ActualPod& pod,
                                                   const WantedVolume* wanted,
                                                   const ActualVolume* actual) const {
  if (const ServerState* silent = parts_.health.FindSilent(key)) {
    return SilentProblem(*silent, key, pod, actual);
  }
  if (wanted != nullptr) {
    if (auto server = ServerProblem(key, pod, *wanted, actual)) return server;
  }
  const std::optional<FailureHistory> last = actual == nullptr ? std::nullopt : actual->failure;
  if (auto lane = LaneProblem(key, last)) return lane;
  if (last) return FromFailure(*last, key, pod, wanted);
  if (parts_.is_stuck && parts_.is_stuck(key.ToString())) {
    return Waiting("Stuck", "a worker hangs in the kernel with this volume and cannot be ended",
                   kAdministratorMustAct, actual == nullptr ? 0 : actual->since_unix_ms);
  }
  if (wanted == nullptr) return std::nullopt;
  if (auto gone = VanishedDevice(key, *wanted)) return gone;
  if (!wanted->problems.empty()) {
    const WantedProblem& problem = wanted->problems.front();
    auto waits = problem.operation ? LaneProblem(*problem.operation, std::nullopt) : std::nullopt;
    if (waits) return waits;
    ProblemView shown = FromWanted(problem, pod);
    const auto next = problem.operation ? parts_.operations.NextTry(*problem.operation)
                                        : std::optional<TimePoint>();
    if (next) shown.next_try_unix_ms = ToWall(*next);
    return shown;
  }
  if (auto shared = SharedProblem(key, pod, *wanted)) return shared;
  if (actual != nullptr && MayBePresent(*actual) && !IsSameKind(*actual, *wanted)) {
    return Waiting("WaitForUnmount",
                   "the volume is still there as " +
                       KindText(actual->plugin_name, actual->is_block) +
                       " and has to leave before it can come as " +
                       KindText(wanted->plugin_name, wanted->is_block),
                   OwnerOf(pod.identity), actual->since_unix_ms);
  }
  if (const SizeLimitBreach* breach = parts_.size_limits.Find(key)) {
    return Waiting("SizeLimit",
                   breach->message + "It holds " + std::to_string(breach->used_bytes) + " bytes.",
                   OwnerOf(pod.identity), breach->since_unix_ms);
  }
  return GrowthProblem(key, pod, *wanted);
}

std::optional<ProblemView> PodViews::GrowthProblem(const PodVolumeKey& key, const ActualPod& pod,
                                                   const WantedVolume& wanted) const {
  for (const OperationKey& growth :
       {ExpandStorageKey(wanted.unique_name), ExpandKey(wanted.unique_name)}) {
    std::optional<ProblemView> waits = LaneProblem(growth, std::nullopt);
    if (!waits) continue;
    waits->message = "the claim asks for more, and its growth waits: " + waits->message;
    return waits;
  }
  if (const FailureHistory* failure = parts_.expander.Failure(wanted.unique_name)) {
    return FromFailure(*failure, ExpandKey(wanted.unique_name), pod, nullptr);
  }
  if (const FailureHistory* failure = parts_.storage_expander.Failure(key.spec.str())) {
    return FromFailure(*failure, ExpandStorageKey(wanted.unique_name), pod, nullptr);
  }
  const std::string growth_waits_for = parts_.storage_expander.WaitsFor(key.spec.str());
  if (!growth_waits_for.empty()) {
    const std::string who_lets_grow = parts_.storage_expander.WhoLetsGrow(key.spec.str());
    return Waiting("ExpandVolumeDevice", "the claim asks for more: " + growth_waits_for,
                   who_lets_grow.empty() ? OwnerOf(pod.identity) : who_lets_grow, 0);
  }
  return std::nullopt;
}

ProblemView PodViews::FromFailure(const FailureHistory& failure, const OperationKey& key,
                                  const ActualPod& pod, const WantedVolume* wanted) const {
  const Error& error = failure.last.error;
  ProblemView problem;
  problem.operation = failure.last.operation;
  problem.step = failure.last.step;
  problem.code = CodeName(error.code());
  // This is the outcome of the named step, not of the steps before it.
  problem.outcome = OutcomeName(failure.last.step_outcome.value_or(error.outcome()));
  problem.message = error.message();
  // The administrator decides to whom the node's storage belongs.
  const bool is_storage = failure.last.step == "ReserveStorage";
  problem.who_must_act = WhoMustAct(failure, pod, is_storage ? nullptr : wanted);
  problem.since_unix_ms = failure.since_unix_ms;
  problem.attempts = failure.attempts;
  if (const auto next = parts_.operations.NextTry(key)) problem.next_try_unix_ms = ToWall(*next);
  return problem;
}

std::string PodViews::WhoMustAct(const FailureHistory& failure, const ActualPod& pod,
                                 const WantedVolume* wanted) const {
  const Error& error = failure.last.error;
  if (wanted == nullptr || IsForNode(error)) return WhoActsForNode(failure);
  switch (error.code()) {
    case Code::kNotFound:
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition: {
      for (const ObjectKey& key : wanted->objects) {
        const bool has_content =
            key.kind == ObjectKind::kSecret || key.kind == ObjectKind::kConfigMap;
        if (has_content && IsAboutObject(error, key)) return OwnerOf(key);
      }
      return OwnerOf(pod.identity);
    }
    case Code::kUnimplemented:
    case Code::kOutOfRange:
    case Code::kAlreadyExists:
      return OwnerOf(pod.identity);
    case Code::kPermissionDenied:
    case Code::kUnauthenticated:
    case Code::kResourceExhausted:
    case Code::kDataLoss:
    case Code::kCancelled:
    case Code::kUnknown:
    case Code::kDeadlineExceeded:
    case Code::kAborted:
    case Code::kInternal:
    case Code::kUnavailable:
      return WhoActsForNode(failure);
  }
  __builtin_unreachable();
}

// ---- the pod itself -----------------------------------------------------------------------------

void PodViews::AddPodProblems(const PodUid& uid, const ActualPod& pod, const WantedPod* wanted,
                              PodView& view) const {
  if (!pod.quarantine_reason.empty()) {
    const bool is_covered = !pod.covered_by.empty();
    view.problems.push_back(
        Waiting(is_covered ? "FindVolumes" : "ReadRecord",
                pod.quarantine_reason + "; nothing of this pod is touched until it is " +
                    (is_covered ? "unmounted" : "repaired; see `volumectl records`"),
                kAdministratorMustAct, pod.since_unix_ms));
  }
  if (pod.record_failure) {
    ProblemView problem = FromFailure(*pod.record_failure, {uid, SpecName()}, pod, nullptr);
    const auto next = parts_.reconciler.NextRecordTry(uid);
    problem.next_try_unix_ms = next ? ToWall(*next) : 0;
    view.problems.push_back(std::move(problem));
  }
  if (wanted != nullptr) {
    for (const WantedProblem& problem : wanted->problems) {
      view.problems.push_back(FromWanted(problem, pod));
    }
    AddLeavingClaims(*wanted, view);
    AddOtherFsTypes(*wanted, pod, view);
  } else if (auto waits = WaitProblem(uid, pod)) {
    view.problems.push_back(std::move(*waits));
  }
  if (pod.remove_failure) {
    view.problems.push_back(FromFailure(*pod.remove_failure, {uid, SpecName()}, pod, nullptr));
  }
  if (pod.leaving && pod.leaving->evicted) {
    view.problems.push_back(Waiting("Evicted", "it was " + pod.leaving->reason, kNobodyMustAct,
                                    pod.leaving->since_unix_ms));
    view.problems.back().is_warning = true;
  }
  AddSourceProblems({ObjectKind::kPod, pod.identity.name_space, pod.identity.name}, view);
}

// The pod keeps its volume all the same.
void PodViews::AddLeavingClaims(const WantedPod& wanted, PodView& view) const {
  for (const auto& [spec, volume] : wanted.volumes) {
    if (!volume.claim) continue;
    const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(*volume.claim);
    if (const std::optional<int64_t> deleted_since = parts_.commands.DeletedSince(*volume.claim)) {
      view.problems.push_back(
          Waiting("ClaimDeleted",
                  ToString(*volume.claim) +
                      " has been deleted by command, and ends once no pod has it: the pod keeps "
                      "its volume as long as it is there",
                  "the owner of pod " + view.ns + "/" + view.name +
                      ": the claim ends once that is gone (`volumectl delete pod`, or out of its "
                      "manifest)",
                  *deleted_since));
    } else if (standing && standing->missing) {
      view.problems.push_back(
          Waiting("ClaimMissing",
                  ToString(*volume.claim) + " has left " + standing->origin.file +
                      ", and nobody has deleted it: the pod keeps its volume",
                  "the owner of the claim: put it back, or delete it by command",
                  standing->missing_since_unix_millis));
    }
  }
}

std::optional<ProblemView> PodViews::WaitProblem(const PodUid& uid, const ActualPod& pod) const {
  const int64_t since = pod.leaving ? pod.leaving->since_unix_ms : pod.since_unix_ms;
  switch (parts_.reconciler.WaitsFor(uid, pod)) {
    case Reconciler::Wait::kNothing:
    case Reconciler::Wait::kRecord:
      return std::nullopt;
    case Reconciler::Wait::kSources:
      return Waiting("WaitForSources",
                     "no source has the pod, but not every source has delivered a complete list: " +
                         Join(parts_.catalog.IncompleteSources(), ", "),
                     kAdministratorMustAct, since);
    case Reconciler::Wait::kConsumers:
      return Waiting("Held", "held by " + Join(parts_.consumers.HeldBy(uid), ", "),
                     "whoever runs the pod's containers", since);
    case Reconciler::Wait::kGrace: {
      ProblemView problem =
          Waiting("DeletionGrace", "its deletion grace period is not over", kNobodyMustAct, since);
      problem.next_try_unix_ms = Reconciler::GraceEnd(*pod.leaving);
      return problem;
    }
  }
  __builtin_unreachable();
}

void PodViews::AddSourceProblems(const ObjectKey& key, PodView& view) const {
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(key);
  if (standing && standing->presence == ObjectPresence::kUnproven) {
    view.problems.push_back(Waiting("HeldBySource",
                                    "held, as no source has it: " + standing->reason,
                                    kAdministratorMustAct, 0));
    view.problems.back().is_warning = true;
  }
  for (const DecodeProblem& problem : parts_.catalog.ProblemsOf(key)) {
    view.problems.push_back(
        Waiting("ReadManifest", problem.ToString(),
                "the owner of " + (problem.file.empty() ? "the source" : problem.file), 0));
  }
  for (const DecodeProblem& warning : parts_.catalog.WarningsOf(key)) {
    view.problems.push_back(
        Waiting("ReadManifest", warning.ToString(), "the owner of " + warning.file, 0));
    view.problems.back().is_warning = true;
  }
}

}  // namespace volumed
