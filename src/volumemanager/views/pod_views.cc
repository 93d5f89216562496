#include "volumemanager/views/pod_views.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "kube/about_object.h"
#include "operation/device_facts.h"
#include "operation/expand_operations.h"
#include "volumemanager/adopted_pods.h"

namespace volumed {
namespace {

constexpr const char* kNobody = kNobodyMustAct;
constexpr const char* kAdministrator = kAdministratorMustAct;

std::string OwnerOf(const PodIdentity& pod) { return "the owner of pod " + pod.DisplayName(); }

std::string OwnerOf(const ObjectKey& key) {
  const std::string kind = key.kind == ObjectKind::kSecret ? "secret" : "config map";
  return "the owner of " + kind + " " + key.name_space + "/" + key.name;
}

std::string KindText(const std::string& plugin, bool is_block) {
  return plugin + (is_block ? ", a block volume," : "");
}

bool IsSetUpFully(const WantedVolume& wanted, const ActualVolume* actual) {
  // If a mount of a container could not be expanded, that mount is missing although its volume is
  // set up.
  return actual != nullptr && IsSetUp(*actual) && wanted.problems.empty() &&
         IsSameKind(*actual, wanted);
}

ProblemView Waiting(std::string step, std::string message, std::string who, int64_t since) {
  ProblemView problem;
  problem.step = std::move(step);
  problem.message = std::move(message);
  problem.who_must_act = std::move(who);
  problem.since_unix_ms = since;
  return problem;
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

const UniqueVolumeName& SharedName(const WantedVolume* wanted, const ActualVolume* actual) {
  static const UniqueVolumeName kNone;
  if (wanted != nullptr && !wanted->unique_name.empty()) return wanted->unique_name;
  return actual == nullptr ? kNone : actual->unique_name;
}

VolumeUsageView UsageOf(const Metrics& metrics) {
  return {metrics.used_bytes, metrics.capacity_bytes, metrics.available_bytes, metrics.inodes_used,
          metrics.inodes,     metrics.inodes_free,    metrics.time_unix_ms};
}

}  // namespace

std::string PhaseOf(const ActualPod& pod, const WantedPod* wanted) {
  if (!pod.quarantine_reason.empty()) return "Refused";
  if (wanted == nullptr && pod.leaving) return "Terminating";
  if (wanted == nullptr) return pod.identity.source == kAdoptedRootSource ? "Held" : "Pending";
  for (const auto& [spec, volume] : wanted->volumes) {
    const auto actual = pod.volumes.find(spec);
    if (!IsSetUpFully(volume, actual == pod.volumes.end() ? nullptr : &actual->second)) {
      return "Pending";
    }
  }
  return wanted->problems.empty() ? "Ready" : "Pending";
}

int64_t PodViews::ToWall(TimePoint when) const {
  return parts_.clock.WallUnixMillis() +
         std::chrono::duration_cast<std::chrono::milliseconds>(when - parts_.clock.Now()).count();
}

PodView PodViews::Build(const PodUid& uid) const {
  const ActualPod& pod = *parts_.actual.FindPod(uid);
  const WantedPod* wanted = parts_.desired.Find(uid);
  PodView view;
  view.uid = uid;
  view.ns = pod.identity.name_space;
  view.name = pod.identity.name;
  view.source = pod.identity.source;
  view.phase = PhaseOf(pod, wanted);
  view.since_unix_ms = pod.leaving ? pod.leaving->since_unix_ms : pod.since_unix_ms;
  view.created_unix_ms = pod.created_unix_ms;
  view.held_by = parts_.consumers.HeldBy(uid);
  std::set<SpecName> specs;
  for (const auto& [spec, volume] : pod.volumes) specs.insert(spec);
  if (wanted != nullptr) {
    for (const auto& [spec, volume] : wanted->volumes) specs.insert(spec);
  }
  for (const SpecName& spec : specs) {
    const auto actual = pod.volumes.find(spec);
    view.volumes.push_back(BuildVolume({uid, spec}, pod, parts_.desired.Find({uid, spec}),
                                       actual == pod.volumes.end() ? nullptr : &actual->second));
    if (view.phase == "Ready") {
      view.since_unix_ms = std::max(view.since_unix_ms, view.volumes.back().since_unix_ms);
    }
  }
  AddPodProblems(uid, pod, wanted, view);
  return view;
}

PodView PodViews::BuildRefused(const Pod& pod, const std::string& phase,
                               ProblemView problem) const {
  PodView view;
  view.uid = pod.uid();
  view.ns = pod.metadata.name_space;
  view.name = pod.metadata.name;
  view.phase = phase;
  const ObjectKey key{ObjectKind::kPod, view.ns, view.name};
  if (const auto origin = parts_.catalog.OriginOf(key)) view.source = origin->source;
  view.since_unix_ms = problem.since_unix_ms;
  view.problems.push_back(std::move(problem));
  AddSourceProblems(key, view);
  return view;
}

// ---- volumes ------------------------------------------------------------------------------------

VolumeView PodViews::BuildVolume(const PodVolumeKey& key, const ActualPod& pod,
                                 const WantedVolume* wanted, const ActualVolume* actual) const {
  VolumeView view;
  view.pod = key.pod;
  view.pod_namespace = pod.identity.name_space;
  view.pod_name = pod.identity.name;
  view.spec = key.spec;
  view.wanted = wanted != nullptr;
  view.state = VolumeStateName(VolumeState::kNotSetUp);
  view.since_unix_ms = pod.since_unix_ms;
  if (wanted != nullptr) {
    view.plugin_name = wanted->plugin_name;
    view.is_block = wanted->is_block;
  }
  if (actual != nullptr) {
    view.plugin_name = actual->plugin_name;
    view.is_block = actual->is_block;
    view.state = VolumeStateName(actual->state);
    view.uncertain = actual->uncertain;
    view.since_unix_ms = actual->since_unix_ms;
    if (actual->mounted) {
      view.host_path = actual->mounted->host_path;
      view.read_only = actual->mounted->attributes.read_only;
      view.sub_paths = actual->mounted->sub_paths;
      if (actual->mounted->mapped) {
        view.device_path = actual->mounted->mapped->device_path;
        view.device_node_path = actual->mounted->mapped->node_path;
      }
    }
  }
  view.stuck = (parts_.is_stuck && parts_.is_stuck(key.ToString())) ||
               parts_.health.FindSilent(key) != nullptr ||
               (wanted != nullptr && IsServerSilent(*wanted, actual));
  AddShared(wanted, actual, view);
  std::optional<RunningOperation> running = parts_.operations.FindRunning(key);
  const UniqueVolumeName shared = SharedName(wanted, actual);
  if (!running && !view.device_state.empty()) {
    running = parts_.operations.FindRunning(OperationKey(shared));
  }
  if (!running) running = parts_.operations.FindRunning(ExpandKey(shared));
  if (running) {
    view.running_step = running->step;
    view.progress = running->progress;
    view.awaited = running->awaited.whom;
    view.awaited_since_unix_ms = running->awaited.since_unix_ms;
  }
  view.problem = VolumeProblem(key, pod, wanted, actual);
  if (const VolumeStatsEntry* stats = parts_.stats.Find(key); stats != nullptr && stats->measured) {
    view.usage = UsageOf(stats->metrics);
  }
  return view;
}

// Adds what the volume has because it is a persistent one.
void PodViews::AddShared(const WantedVolume* wanted, const ActualVolume* actual,
                         VolumeView& view) const {
  if (wanted != nullptr) {
    view.pod_volumes = wanted->pod_volumes;
    if (wanted->claim) view.claim = wanted->claim->name_space + "/" + wanted->claim->name;
  }
  const UniqueVolumeName name = SharedName(wanted, actual);
  if (name.empty()) return;
  view.persistent_volume = view.spec.str();
  const bool has_device =
      wanted != nullptr ? wanted->has_device : actual != nullptr && actual->has_device;
  if (!has_device) return;
  const ActualDevice* device = parts_.actual.devices().Find(name);
  // Nobody knows yet how such a device comes.
  if (device == nullptr && wanted != nullptr && !wanted->mountable()) return;
  const bool attachable = wanted != nullptr && wanted->attachable;
  view.device_state = VolumeStateName(device == nullptr ? RestingState(attachable) : device->state);
  if (device != nullptr) {
    view.device_mount_path = device->device_mount_path;
    if (actual != nullptr && view.device_path.empty()) view.device_path = device->pinned_path;
    if (IsDevicePath(device->device_path)) view.device_path = device->device_path;
  }
  view.stuck = view.stuck || (parts_.is_stuck && parts_.is_stuck(name.str()));
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
                   kAdministrator, device->since_unix_ms);
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
  if (parts_.vanished_devices.empty()) return std::nullopt;
  const ActualVolume* actual = parts_.actual.FindVolume(key);
  if (actual == nullptr || !MayBePresent(*actual)) return std::nullopt;
  std::vector<std::string> paths = wanted.device_paths;
  const ActualDevice* device = parts_.actual.devices().Find(wanted.unique_name);
  if (device != nullptr) paths.push_back(device->device_path);
  for (const std::string& path : paths) {
    const auto vanished = parts_.vanished_devices.find(path);
    if (vanished == parts_.vanished_devices.end()) continue;
    return Waiting(
        "DeviceGone",
        "device " + path +
            " has left the node while the volume is in use: what the pod still has of it "
            "answers with errors; the pod has to go before a device that returns is used",
        kAdministrator, vanished->second);
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
                   kAdministrator, actual == nullptr ? 0 : actual->since_unix_ms);
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
                kAdministrator, pod.since_unix_ms));
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
  } else if (auto waits = WaitProblem(uid, pod)) {
    view.problems.push_back(std::move(*waits));
  }
  if (pod.remove_failure) {
    view.problems.push_back(FromFailure(*pod.remove_failure, {uid, SpecName()}, pod, nullptr));
  }
  if (pod.leaving && pod.leaving->evicted) {
    view.problems.push_back(
        Waiting("Evicted", "it was " + pod.leaving->reason, kNobody, pod.leaving->since_unix_ms));
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
                     kAdministrator, since);
    case Reconciler::Wait::kConsumers:
      return Waiting("Held", "held by " + Join(parts_.consumers.HeldBy(uid), ", "),
                     "whoever runs the pod's containers", since);
    case Reconciler::Wait::kGrace: {
      ProblemView problem =
          Waiting("DeletionGrace", "its deletion grace period is not over", kNobody, since);
      problem.next_try_unix_ms = Reconciler::GraceEnd(*pod.leaving);
      return problem;
    }
  }
  __builtin_unreachable();
}

void PodViews::AddSourceProblems(const ObjectKey& key, PodView& view) const {
  const std::optional<ObjectStanding> standing = parts_.catalog.StandingOf(key);
  if (standing && standing->presence == ObjectPresence::kUnproven) {
    view.problems.push_back(Waiting(
        "HeldBySource", "held, as no source has it: " + standing->reason, kAdministrator, 0));
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
