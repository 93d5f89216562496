// StorageViews: what is still to be taken back although no pod and no claim shows it any more.
#include "operation/attach_operations.h"
#include "operation/provision_operations.h"
#include "operation/reclaim_operations.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/claims/claims.h"
#include "volumemanager/claims/provisioning.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/views/pod_views.h"
#include "volumemanager/views/storage_views.h"

namespace volumed {
namespace {

std::string UndoingText(const Provisioning::Undoing& undoing) {
  return "it was begun for claim " + ToString(undoing.claim) +
         ", which does not wait for it any more; " + undoing.provisioner +
         " is to take back what there may be of it";
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
  if (running->waits_for->does_not_answer) problem.who_must_act = kAdministratorMustAct;
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
    view.problem->who_must_act += "; `volumectl delete pv " + view.name + " --force` gives it up";
    view.reason = view.problem->message;
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
    const FailureHistory* failure = parts_.claims.ReclaimFailure(name);
    if (failure == nullptr) continue;
    OwedView view{"volume " + name, OwedProblem(ReclaimKey(name), failure, "")};
    const std::string device = WhyDeviceStays(name);
    if (!device.empty()) view.problem.message = device;
    owed.push_back(std::move(view));
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
