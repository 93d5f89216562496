#include "operation/operation_executor.h"

#include <utility>

namespace volumed {
namespace {

const std::string& VolumeOf(const OperationKey& key) {
  return key.is_device() ? key.device.str() : key.spec.str();
}

// Calls visit(device, use) for each device of the operation, once.
template <typename Visit>
void ForEachDevice(const OperationTraits& operation, const Visit& visit) {
  const bool has_one = operation.use != DeviceUse::kNone;
  if (has_one && !operation.more_devices.contains(operation.device)) {
    visit(operation.device, operation.use);
  }
  for (const UniqueVolumeName& device : operation.more_devices) {
    visit(device, DeviceUse::kExclusive);
  }
}

}  // namespace

void OperationProgress::EnterStep(const std::string& step) {
  const MutexLock lock(mu_);
  step_ = step;
  step_since_unix_ms_ = clock_.WallUnixMillis();
  awaited_ = {};
  entries_.store(0, std::memory_order_relaxed);
}

void OperationProgress::SetAwaited(const std::string& whom) {
  const MutexLock lock(mu_);
  awaited_ = {whom, whom.empty() ? 0 : clock_.WallUnixMillis()};
}

AwaitedProgram OperationProgress::awaited() const {
  const MutexLock lock(mu_);
  return awaited_;
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
                                     LaneLimits limits, Backoff::Options back_off)
    : scheduler_(scheduler),
      logger_(logger),
      observer_(observer),
      backoff_(scheduler.clock(), back_off),
      lanes_(scheduler, domains, limits) {}

OperationExecutor::~OperationExecutor() = default;

void OperationExecutor::Add(Member member, const GroupPtr& group) {
  const OperationKey key = member.operation.key;
  ForEachDevice(member.operation, [&](const UniqueVolumeName& device, DeviceUse use) {
    DeviceUsers& users = device_users_[device];
    ++(use == DeviceUse::kExclusive ? users.exclusive : users.shared);
    users.keys.insert(key);
  });
  running_[key] = {std::move(member.operation), group, std::move(member.done),
                   std::move(member.left_out)};
}

OperationExecutor::Active OperationExecutor::Take(const OperationKey& key) {
  Active taken = std::move(running_.extract(key).mapped());
  ForEachDevice(taken.operation, [&](const UniqueVolumeName& device, DeviceUse use) {
    const auto users = device_users_.find(device);
    --(use == DeviceUse::kExclusive ? users->second.exclusive : users->second.shared);
    users->second.keys.erase(key);
    if (users->second.keys.empty()) device_users_.erase(users);
  });
  return taken;
}

bool OperationExecutor::BacksOff(const Operation& operation) const {
  const auto last = last_failed_.find(operation.key);
  return last != last_failed_.end() && last->second == operation.name &&
         backoff_.BlockedUntil(operation.key.ToString(), operation.name);
}

StartResult OperationExecutor::CheckStart(const Operation& operation) {
  if (IsPending(operation.key) || DeviceIsBusy(operation)) return StartResult::kPending;
  if (BacksOff(operation)) return StartResult::kBackoff;
  const auto last = last_failed_.find(operation.key);
  if (last != last_failed_.end() && last->second != operation.name) ResetBackoff(operation.key);
  return StartResult::kStarted;
}

// What waits for a closed lane has its device for nothing, and might have it for days, while the
// lane of what takes the volume from a pod, or from the node, may be open.
void OperationExecutor::MakeWay(const Operation& operation) {
  if (IsPending(operation.key) || BacksOff(operation)) return;
  std::set<OperationKey> waiting;
  ForEachDevice(operation, [&](const UniqueVolumeName& device, DeviceUse) {
    const auto users = device_users_.find(device);
    if (users == device_users_.end()) return;
    for (const OperationKey& key : users->second.keys) {
      if (lanes_.WaitsForClosedLane(running_.at(key).group->place)) waiting.insert(key);
    }
  });
  for (const OperationKey& key : waiting) GiveUpWaiting(key);
}

StartResult OperationExecutor::Start(Operation operation, Body body, Completion done, Task waited) {
  if (operation.takes_away) MakeWay(operation);
  if (const StartResult result = CheckStart(operation); result != StartResult::kStarted) {
    return result;
  }
  auto group = std::make_shared<Group>();
  group->keys = {operation.key};
  group->numbers = {0};
  group->kind = {operation.takes_away, operation.with_many, operation.finishes};
  group->body = [body = std::move(body)](const std::vector<size_t>&, OperationProgress& progress) {
    return Failures{body(progress)};
  };
  FaultDomain domain = operation.domain;
  const bool is_unbound = domain.lane.empty() && !operation.on_own_filesystem;
  if (is_unbound) domain.lane = kUnboundLane;
  Add({std::move(operation), std::move(done)}, group);
  Enter(group, domain);
  if (lanes_.WaitOf(group->place)) group->waited = std::move(waited);
  return StartResult::kStarted;
}

std::vector<StartResult> OperationExecutor::StartGroup(std::vector<Member> members,
                                                       GroupBody body) {
  std::vector<StartResult> results;
  results.reserve(members.size());
  auto group = std::make_shared<Group>();
  group->body = std::move(body);
  for (size_t number = 0; number < members.size(); ++number) {
    Operation& operation = members[number].operation;
    results.push_back(CheckStart(operation));
    if (results.back() != StartResult::kStarted) continue;
    group->keys.push_back(operation.key);
    group->numbers.push_back(number);
    group->kind.takes_away |= operation.takes_away;
    group->kind.with_many |= operation.with_many;
    group->kind.finishes |= operation.finishes;
    Add(std::move(members[number]), group);
  }
  if (!group->keys.empty()) Enter(group, FaultDomain());
  return results;
}

void OperationExecutor::Enter(const GroupPtr& group, const FaultDomain& domain) {
  group->started = scheduler_.clock().Now();
  group->started_unix_ms = scheduler_.clock().WallUnixMillis();
  group->progress = std::make_shared<OperationProgress>(scheduler_.clock());
  group->place = lanes_.Enter(domain, group->kind, [this, group] { Begin(group); });
  if (const auto wait = lanes_.WaitOf(group->place)) group->progress->EnterStep(wait->step);
}

void OperationExecutor::Begin(const GroupPtr& group) {
  if (group->waited) std::exchange(group->waited, nullptr)();
  // `this` is used on the control thread only, and only while it is alive.
  scheduler_.RunBlocking([this, watch = alive_.watch(), &scheduler = scheduler_, group] {
    Failures failures = group->body(group->numbers, *group->progress);
    scheduler.Post([this, watch, group, failures = std::move(failures)] {
      if (watch.alive()) Finish(group, failures);
    });
  });
}

void OperationExecutor::GiveUpWaiting(const OperationKey& key) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.group->kind.takes_away) return;
  const GroupPtr group = found->second.group;
  const std::optional<LaneWait> wait = lanes_.WaitOf(group->place);
  if (!lanes_.GiveUp(group->place)) return;
  const std::string step = wait ? wait->step : kWaitForWorker;
  const char* const for_whom = step == kWaitForDriver ? "its driver" : "a worker";
  for (const OperationKey& one : group->keys) {
    Active active = Take(one);
    const OperationFailure failure{
        active.operation.name, step,
        Error::NotApplied(Code::kCancelled,
                          std::string("given up while it waited for ") + for_whom)};
    // The caller may be in the midst of what the completion changes.
    scheduler_.Post([failure, done = std::move(active.done), watch = alive_.watch()] {
      if (watch.alive()) done(failure);
    });
  }
}

void OperationExecutor::Finish(const GroupPtr& group, const Failures& failures) {
  lanes_.Leave(group->place);
  group->body = nullptr;
  const Duration elapsed = scheduler_.clock().Now() - group->started;
  std::vector<Completion> completions;
  for (size_t i = 0; i < group->keys.size(); ++i) {
    Active finished = Take(group->keys[i]);
    const bool is_left_out = !failures[i] && finished.left_out && finished.left_out();
    if (!is_left_out) Ended(group->keys[i], finished, elapsed, failures[i]);
    completions.push_back(std::move(finished.done));
  }
  // Last: each may start the next operation of its key, or destroy this.
  const AliveGuard::Watch watch = alive_.watch();
  for (size_t i = 0; i < completions.size() && watch.alive(); ++i) completions[i](failures[i]);
}

void OperationExecutor::Ended(const OperationKey& key, const Active& finished, Duration elapsed,
                              const std::optional<OperationFailure>& failure) {
  NoteOutcome(finished.operation, failure);
  LogFinished(finished, elapsed, failure);
  observer_.OperationFinished({.key = key,
                               .plugin_name = finished.operation.plugin_name,
                               .operation = finished.operation.name,
                               .elapsed = elapsed,
                               .failure = failure,
                               .migrated = finished.operation.migrated});
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
  bool busy = false;
  ForEachDevice(operation, [&](const UniqueVolumeName& device, DeviceUse use) {
    work_.Add();
    const auto users = device_users_.find(device);
    if (users == device_users_.end()) return;
    busy = busy || use == DeviceUse::kExclusive || users->second.exclusive > 0;
  });
  return busy;
}

bool OperationExecutor::IsPending(const OperationKey& key) const {
  if (key.is_device()) return running_.contains(key);
  for (auto it = running_.lower_bound({key.pod, SpecName()});
       it != running_.end() && it->first.pod == key.pod; ++it) {
    work_.Add();
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
  const OperationProgress& progress = *active.group->progress;
  std::optional<LaneWait> wait = lanes_.WaitOf(active.group->place);
  std::string step = wait ? wait->step : progress.step();
  return {.key = key,
          .operation = active.operation.name,
          .step = std::move(step),
          .since_unix_ms = active.group->started_unix_ms,
          .step_since_unix_ms = progress.step_since_unix_ms(),
          .progress = progress.done(),
          .waits_for = std::move(wait),
          .awaited = progress.awaited()};
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

std::optional<RunningOperation> OperationExecutor::FindOwner(const UniqueVolumeName& device) const {
  const auto users = device_users_.find(device);
  if (users == device_users_.end() || users->second.exclusive == 0) return std::nullopt;
  const OperationKey& owner = *users->second.keys.begin();
  return Describe(owner, running_.at(owner));
}

}  // namespace volumed
