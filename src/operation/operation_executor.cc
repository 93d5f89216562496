#include "operation/operation_executor.h"

#include <utility>

namespace volumed {
namespace {

constexpr char kWaitForWorker[] = "WaitForWorker";

const std::string& VolumeOf(const OperationKey& key) {
  return key.is_device() ? key.device.str() : key.spec.str();
}

}  // namespace

void OperationProgress::EnterStep(const std::string& step) {
  const MutexLock lock(mu_);
  step_ = step;
  step_since_unix_ms_ = clock_.WallUnixMillis();
  entries_.store(0, std::memory_order_relaxed);
}

std::string OperationProgress::step() const {
  const MutexLock lock(mu_);
  return step_;
}

int64_t OperationProgress::step_since_unix_ms() const {
  const MutexLock lock(mu_);
  return step_since_unix_ms_;
}

bool KeysOverlap(const OperationKey& a, const OperationKey& b) {
  if (a.is_device() || b.is_device()) return a.device == b.device;
  return a.pod == b.pod && (a.spec == b.spec || a.spec.empty() || b.spec.empty());
}

OperationExecutor::OperationExecutor(Scheduler& scheduler, Logger& logger,
                                     OperationObserver& observer, FaultDomains* domains,
                                     LaneLimits limits)
    : scheduler_(scheduler),
      logger_(logger),
      observer_(observer),
      backoff_(scheduler.clock()),
      lanes_(scheduler, domains, limits) {}

OperationExecutor::~OperationExecutor() = default;

StartResult OperationExecutor::Start(Operation operation, Body body, Completion done) {
  if (IsPending(operation.key) || DeviceIsBusy(operation)) return StartResult::kPending;
  const std::string backoff_key = operation.key.ToString();
  if (const auto last = last_failed_.find(operation.key); last != last_failed_.end()) {
    if (last->second != operation.name) {
      ResetBackoff(operation.key);
    } else if (backoff_.BlockedUntil(backoff_key, operation.name)) {
      return StartResult::kBackoff;
    }
  }
  const OperationKey key = operation.key;
  Active& active = running_[key];
  active = Active{.operation = std::move(operation),
                  .started = scheduler_.clock().Now(),
                  .started_unix_ms = scheduler_.clock().WallUnixMillis(),
                  .progress = std::make_shared<OperationProgress>(scheduler_.clock()),
                  .body = std::move(body),
                  .done = std::move(done)};
  active.place = lanes_.Enter(active.operation.domain, active.operation.takes_away,
                              [this, key] { Begin(key); });
  if (lanes_.WaitOf(active.place)) active.progress->EnterStep(kWaitForWorker);
  return StartResult::kStarted;
}

void OperationExecutor::Begin(const OperationKey& key) {
  Active& active = running_.at(key);
  // `this` is used on the control thread only, and only while it is alive.
  scheduler_.RunBlocking([this, alive = std::weak_ptr<char>(alive_), &scheduler = scheduler_, key,
                          progress = active.progress, body = std::move(active.body)] {
    std::optional<OperationFailure> failure = body(*progress);
    scheduler.Post([this, alive, key, failure = std::move(failure)] {
      if (alive.lock()) Finish(key, failure);
    });
  });
}

void OperationExecutor::GiveUpWaiting(const OperationKey& key) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.operation.takes_away) return;
  if (!lanes_.GiveUp(found->second.place)) return;
  const OperationFailure failure{
      found->second.operation.name, kWaitForWorker,
      Error::NotApplied(Code::kCancelled, "given up while it waited for a worker")};
  Completion done = std::move(found->second.done);
  running_.erase(found);
  // The caller may be in the midst of what the completion changes.
  scheduler_.Post([failure, done = std::move(done), alive = std::weak_ptr<char>(alive_)] {
    if (alive.lock()) done(failure);
  });
}

void OperationExecutor::Finish(const OperationKey& key,
                               const std::optional<OperationFailure>& failure) {
  const auto found = running_.find(key);
  if (found == running_.end()) return;
  const Active finished = std::move(found->second);
  running_.erase(found);
  lanes_.Leave(finished.place);
  const Duration elapsed = scheduler_.clock().Now() - finished.started;
  NoteOutcome(finished.operation, failure);
  LogFinished(finished, elapsed, failure);
  observer_.OperationFinished({.key = key,
                               .plugin_name = finished.operation.plugin_name,
                               .operation = finished.operation.name,
                               .elapsed = elapsed,
                               .failure = failure});
  // Last: it may start the next operation of this key, or destroy this.
  finished.done(failure);
}

void OperationExecutor::NoteOutcome(const Operation& operation,
                                    const std::optional<OperationFailure>& failure) {
  if (failure) {
    last_failed_[operation.key] = operation.name;
    backoff_.RecordFailure(operation.key.ToString(), operation.name,
                           CodeName(failure->error.code()));
    return;
  }
  ResetBackoff(operation.key);
}

void OperationExecutor::LogFinished(const Active& finished, Duration elapsed,
                                    const std::optional<OperationFailure>& failure) {
  const Operation& operation = finished.operation;
  const int64_t elapsed_ms = std::chrono::duration_cast<std::chrono::milliseconds>(elapsed).count();
  if (!failure) {
    logger_.Info("operation done", {{"pod", operation.pod_display_name},
                                    {"pod_uid", operation.key.pod},
                                    {"volume", VolumeOf(operation.key)},
                                    {"plugin", operation.plugin_name},
                                    {"operation", operation.name},
                                    {"outcome", "done"},
                                    {"elapsed_ms", elapsed_ms}});
    return;
  }
  logger_.Warning("operation failed", {{"pod", operation.pod_display_name},
                                       {"pod_uid", operation.key.pod},
                                       {"volume", VolumeOf(operation.key)},
                                       {"plugin", operation.plugin_name},
                                       {"operation", operation.name},
                                       {"step", failure->step},
                                       {"outcome", OutcomeName(failure->error.outcome())},
                                       {"elapsed_ms", elapsed_ms},
                                       {"error", failure->error}});
}

bool OperationExecutor::DeviceIsBusy(const Operation& operation) const {
  if (operation.use == DeviceUse::kNone) return false;
  for (const auto& [key, active] : running_) {
    const Operation& other = active.operation;
    if (other.use == DeviceUse::kNone || other.device != operation.device) continue;
    if (other.use == DeviceUse::kExclusive || operation.use == DeviceUse::kExclusive) return true;
  }
  return false;
}

bool OperationExecutor::IsPending(const OperationKey& key) const {
  if (key.is_device()) return running_.contains(key);
  for (auto it = running_.lower_bound({key.pod, SpecName()});
       it != running_.end() && it->first.pod == key.pod; ++it) {
    if (KeysOverlap(it->first, key)) return true;
  }
  return false;
}

std::optional<TimePoint> OperationExecutor::NextTry(const OperationKey& key) const {
  const auto last = last_failed_.find(key);
  if (last == last_failed_.end()) return std::nullopt;
  return backoff_.BlockedUntil(key.ToString(), last->second);
}

void OperationExecutor::ResetBackoff(const OperationKey& key) {
  if (key.is_device()) {
    if (last_failed_.erase(key) > 0) backoff_.Reset(key.ToString());
    return;
  }
  // The key of a whole pod stands for those of its volumes too: nothing is remembered of a pod that
  // is gone.
  for (auto it = last_failed_.lower_bound({key.pod, SpecName()});
       it != last_failed_.end() && it->first.pod == key.pod;) {
    if (it->first == key || key.spec.empty()) {
      backoff_.Reset(it->first.ToString());
      it = last_failed_.erase(it);
    } else {
      ++it;
    }
  }
}

RunningOperation OperationExecutor::Describe(const OperationKey& key, const Active& active) const {
  return {.key = key,
          .operation = active.operation.name,
          .step = active.progress->step(),
          .since_unix_ms = active.started_unix_ms,
          .step_since_unix_ms = active.progress->step_since_unix_ms(),
          .progress = active.progress->done(),
          .waits_for = lanes_.WaitOf(active.place)};
}

std::vector<RunningOperation> OperationExecutor::Running() const {
  std::vector<RunningOperation> all;
  all.reserve(running_.size());
  for (const auto& [key, active] : running_) all.push_back(Describe(key, active));
  return all;
}

std::optional<RunningOperation> OperationExecutor::FindRunning(const OperationKey& key) const {
  const auto found = running_.find(key);
  if (found == running_.end()) return std::nullopt;
  return Describe(key, found->second);
}

}  // namespace volumed
