// PodViews: problems of volumes whose server may not answer.
#include <utility>

#include "volumemanager/views/pod_views.h"

namespace volumed {
namespace {

// A server that works answers a mount much sooner.
constexpr int64_t kLongMountMs = 10'000;

// Whether the error may mean that the server has not answered. A mount helper only says that it
// failed.
bool MayBeTheServer(const Error& error) {
  return error.code() == Code::kUnknown || error.code() == Code::kUnavailable ||
         error.code() == Code::kDeadlineExceeded;
}

}  // namespace

ProblemView PodViews::SilentProblem(const ServerState& silent, const PodVolumeKey& key,
                                    const ActualPod& pod, const ActualVolume* actual) const {
  ProblemView problem;
  problem.step = "Stuck";
  problem.message = silent.Text();
  if (actual != nullptr && actual->failure) {
    problem = FromFailure(*actual->failure, key, pod, nullptr);
    problem.message = silent.Text() + "; " + problem.message;
  }
  problem.who_must_act = kAdministratorMustAct;
  problem.since_unix_ms = silent.since_unix_ms;
  return problem;
}

std::optional<ProblemView> PodViews::LaneProblem(
    const OperationKey& key, const std::optional<FailureHistory>& failure) const {
  const std::optional<RunningOperation> running = parts_.operations.FindRunning(key);
  if (!running || !running->waits_for) return std::nullopt;
  ProblemView problem;
  problem.operation = running->operation;
  problem.step = running->step;
  problem.message = running->waits_for->text;
  if (failure) {
    problem.message += "; the last try: " + failure->last.error.message();
    problem.attempts = failure->attempts;
  }
  problem.who_must_act = WhoEndsTheWait(*running->waits_for);
  problem.since_unix_ms = running->since_unix_ms;
  return problem;
}

// A volume that is not mounted is not looked at; the server's other volumes tell whether it is
// silent.
bool PodViews::IsServerSilent(const WantedVolume& wanted, const ActualVolume* actual) const {
  if (wanted.server.empty() || (actual != nullptr && IsSetUp(*actual))) return false;
  const ServerState* known = parts_.health.Find(wanted.server_domain);
  return known != nullptr && known->silent;
}

std::optional<ProblemView> PodViews::ServerProblem(const PodVolumeKey& key, const ActualPod& pod,
                                                   const WantedVolume& wanted,
                                                   const ActualVolume* actual) const {
  if (wanted.server.empty() || !wanted.problems.empty()) return std::nullopt;
  const ServerState* known = parts_.health.Find(wanted.server_domain);
  if (IsServerSilent(wanted, actual)) return SilentProblem(*known, key, pod, actual);
  const std::string others =
      known != nullptr ? ", which answers for other volumes of this node"
                       : ", of which nothing else is mounted here that would tell if it answers";
  if (actual != nullptr && actual->failure && MayBeTheServer(actual->failure->last.error)) {
    ProblemView problem = FromFailure(*actual->failure, key, pod, &wanted);
    problem.message = "of " + wanted.server + others + ": " + problem.message;
    return problem;
  }
  const std::optional<RunningOperation> mount = parts_.operations.FindRunning(key);
  if (!mount || (actual != nullptr && actual->failure)) return std::nullopt;
  const int64_t taken_ms = parts_.clock.WallUnixMillis() - mount->since_unix_ms;
  if (taken_ms < kLongMountMs) return std::nullopt;
  ProblemView problem;
  problem.operation = mount->operation;
  problem.step = mount->step;
  problem.message = "waits " + std::to_string(taken_ms / 1000) + " s for " + wanted.server + others;
  problem.who_must_act = kNobodyMustAct;
  problem.since_unix_ms = mount->since_unix_ms;
  return problem;
}

}  // namespace volumed
