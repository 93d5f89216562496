// StorageViews: what is still to be taken back although no pod and no claim shows it any more.
#include <set>

#include "operation/attach_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "volume/csi_translation.h"
#include "volume/secrets_of_volume.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/views/pod_views.h"
#include "volumemanager/views/storage_views.h"
#include "volumemanager/wanted_problem.h"

namespace volumed {
namespace {

std::string UndoingText(const Provisioning::Undoing& undoing) {
  return "it was begun for claim " + ToString(undoing.claim) +
         ", which does not wait for it any more; " + undoing.provisioner +
         " is to take back what there may be of it";
}

// Nothing is tried at all before each source was looked into.
void TellUnseen(const WantedProblem& unseen, ProblemView& problem) {
  problem.message = unseen.error.message();
  problem.who_must_act = unseen.who_must_act;
}

// Whether the operation waits for a driver that is away, and not for its turn.
bool IsWithoutDriver(const std::optional<RunningOperation>& running) {
  return running && running->waits_for && running->waits_for->step == kWaitForDriver &&
         running->waits_for->does_not_answer;
}

}  // namespace

ProblemView StorageViews::OwedProblem(const OperationKey& key, const FailureHistory* failure,
                                      const std::string& otherwise) const {
  ProblemView problem;
  problem.message = otherwise;
  problem.who_must_act = kNobodyMustAct;
  if (failure != nullptr) {
    const Error& error = failure->last.error;
    problem.operation = failure->last.operation;
    problem.step = failure->last.step;
    problem.code = CodeName(error.code());
    problem.outcome = OutcomeName(failure->last.step_outcome.value_or(error.outcome()));
    problem.message = error.message();
    problem.who_must_act = WhoActsForNode(*failure);
    problem.since_unix_ms = failure->since_unix_ms;
    problem.attempts = failure->attempts;
  }
  const Clock& clock = parts_.clock;
  if (const auto next = parts_.operations.NextTry(key)) {
    problem.next_try_unix_ms =
        clock.WallUnixMillis() +
        std::chrono::duration_cast<std::chrono::milliseconds>(*next - clock.Now()).count();
  }
  const std::optional<RunningOperation> running = parts_.operations.FindRunning(key);
  if (!running || !running->waits_for) return problem;
  problem.operation = running->operation;
  problem.step = running->step;
  problem.message =
      running->waits_for->text + (failure == nullptr ? "" : "; the last try: " + problem.message);
  if (running->waits_for->does_not_answer) {
    problem.who_must_act = WhoEndsTheWait(*running->waits_for);
  }
  if (failure == nullptr) problem.since_unix_ms = running->since_unix_ms;
  return problem;
}

std::vector<PersistentVolumeView> StorageViews::Undoings() const {
  std::vector<PersistentVolumeView> views;
  for (const Provisioning::Undoing& undoing : parts_.provisioning.Undoings()) {
    PersistentVolumeView view = BuildVolume(*undoing.volume);
    view.phase = kUndoingPhase;
    view.claim = ToString(undoing.claim);
    view.problem = OwedProblem(ProvisionKey(view.name),
                               undoing.failure ? &*undoing.failure : nullptr, UndoingText(undoing));
    if (const auto unseen = parts_.claims.UnseenProblem()) TellUnseen(*unseen, *view.problem);
    view.problem->who_must_act += "; `volumectl delete pv " + view.name + " --force` gives it up";
    view.reason = view.problem->message;
    AddAwaited(ProvisionKey(view.name), view.reason);
    views.push_back(std::move(view));
  }
  return views;
}

std::string StorageViews::WhoUndoes(const std::string& volume_name) const {
  parts_.claims.DecideNow();
  for (const Provisioning::Undoing& undoing : parts_.provisioning.Undoings()) {
    if (undoing.volume->metadata.name == volume_name) return undoing.provisioner;
  }
  return "";
}

std::vector<std::string> StorageViews::BegunBy(const std::string& provisioner) const {
  std::vector<std::string> texts;
  for (const Provisioning::Begun& begun : parts_.provisioning.BegunBy(provisioner)) {
    const std::string claim = "claim " + ToString(begun.claim);
    texts.push_back("volume " + begun.volume + ", which it may have made for " + claim +
                    (begun.over ? ": `volumectl delete pv " + begun.volume + " --force` gives it up"
                                : ": delete the claim first, if the driver never comes back"));
  }
  return texts;
}

std::vector<std::string> StorageViews::VolumesOfDriver(const std::string& driver) const {
  return VolumesWhere([&](const PersistentVolume& volume) {
    const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(volume, false));
    const auto* csi = spec.SourceAs<CsiPersistentVolumeSource>();
    return csi != nullptr && csi->driver == driver;
  });
}

std::vector<std::string> StorageViews::VolumesWithSecret(const ObjectKey& secret) const {
  return VolumesWhere(
      [&](const PersistentVolume& volume) { return SecretsNamedBy(volume).contains(secret); });
}

std::vector<std::string> StorageViews::VolumesWhere(
    const std::function<bool(const PersistentVolume&)>& counts) const {
  parts_.claims.DecideNow();
  std::set<std::string> names;
  const auto note = [&](const PersistentVolumePtr& volume) {
    if (volume != nullptr && counts(*volume)) names.insert(volume->metadata.name);
  };
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) note(volume);
  for (const auto& [name, decision] : parts_.claims.volumes()) {
    if (!names.contains(name)) note(parts_.claims.FindVolumeObject(name));
  }
  return {names.begin(), names.end()};
}

// A volume that waits for its driver has not failed, and may wait for ever.
std::optional<ProblemView> StorageViews::ReclaimProblem(const std::string& volume_name) const {
  const FailureHistory* failure = parts_.claims.ReclaimFailure(volume_name);
  const bool is_away = IsWithoutDriver(parts_.operations.FindRunning(ReclaimKey(volume_name)));
  const VolumeDecision* decision = parts_.claims.FindVolume(volume_name);
  const bool is_due = decision != nullptr && decision->reclaim != ReclaimAction::kNone;
  const std::optional<WantedProblem> unseen = is_due ? parts_.claims.UnseenProblem() : std::nullopt;
  if (failure == nullptr && !is_away && !unseen) return std::nullopt;
  ProblemView problem = OwedProblem(ReclaimKey(volume_name), failure, "");
  if (unseen) TellUnseen(*unseen, problem);
  const std::string device = WhyDeviceStays(volume_name);
  if (!device.empty() && !is_away) problem.message = device;
  if (is_away) {
    problem.who_must_act += "; `volumectl delete pv " + volume_name + " --force` gives it up";
  }
  return problem;
}

std::optional<PendingReclaim> StorageViews::ReclaimOf(const std::string& volume_name) const {
  parts_.claims.DecideNow();
  const VolumeDecision* decision = parts_.claims.FindVolume(volume_name);
  if (decision == nullptr || decision->reclaim != ReclaimAction::kDelete) return std::nullopt;
  const PersistentVolumePtr volume = parts_.claims.FindVolumeObject(volume_name);
  if (volume == nullptr) return std::nullopt;
  const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(*volume, false));
  const auto* csi = spec.SourceAs<CsiPersistentVolumeSource>();
  if (csi == nullptr) return std::nullopt;
  PendingReclaim reclaim{.driver = csi->driver, .handle = csi->volume_handle, .problem = ""};
  const ActualDevice* device = DeviceOf(volume_name);
  if (device != nullptr) reclaim.device = VolumeStateName(device->state);
  const FailureHistory* failure = parts_.claims.ReclaimFailure(volume_name);
  reclaim.waits_for_driver =
      IsWithoutDriver(parts_.operations.FindRunning(ReclaimKey(volume_name)));
  reclaim.may_be_done = failure != nullptr && failure->last.error.maybe_applied();
  // That a device has not left yet, and goes on its way, is no reason to give anything up.
  const bool is_on_its_way = device != nullptr && !device->failure && !reclaim.waits_for_driver;
  const std::optional<ProblemView> problem = ReclaimProblem(volume_name);
  if (problem && !is_on_its_way) reclaim.problem = problem->message;
  return reclaim;
}

const ActualDevice* StorageViews::DeviceOf(const std::string& volume_name) const {
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    if (device.spec.str() == volume_name && MayBePresent(device)) return &device;
  }
  return nullptr;
}

std::string StorageViews::WhyDeviceStays(const std::string& volume_name) const {
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    const bool stays = device.spec.str() == volume_name && device.failure && MayBePresent(device);
    if (!stays) continue;
    const OperationFailure& last = device.failure->last;
    return std::string("its device cannot be ") +
           (last.operation == kDetachOperation ? "detached" : "taken from this node") + ": " +
           last.error.message();
  }
  return "";
}

std::vector<OwedView> StorageViews::Owed() const {
  std::vector<OwedView> owed;
  for (const PersistentVolumeView& undoing : Undoings()) {
    owed.push_back({"volume " + undoing.name, *undoing.problem});
  }
  for (const auto& [name, decision] : parts_.claims.volumes()) {
    const std::optional<ProblemView> problem = ReclaimProblem(name);
    if (problem) owed.push_back({"volume " + name, *problem});
  }
  for (const auto& [name, device] : parts_.actual.devices().all()) {
    const bool has_pods =
        !parts_.desired.UsersOf(name).empty() || !parts_.actual.UsersOf(name).empty();
    if (has_pods || !MayBePresent(device)) continue;
    const std::optional<RunningOperation> running =
        parts_.operations.FindRunning(OperationKey(name));
    const bool waits = running && running->waits_for;
    if (!device.failure && !waits) continue;
    owed.push_back({"device " + name.str(),
                    OwedProblem(OperationKey(name), device.failure ? &*device.failure : nullptr,
                                "it is to leave this node")});
  }
  return owed;
}

}  // namespace volumed
