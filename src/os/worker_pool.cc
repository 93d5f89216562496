#include "os/worker_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "os/worker_pool_call.h"

namespace volumed {
namespace {

// How long the destructor waits for idle workers, which end at once. No key of the configuration,
// like those of worker_pool_request.cc.
constexpr std::chrono::milliseconds kIdleEnds(500);

LaneLimits LimitsOf(int max_workers, int max_per_domain, int fast_workers) {
  return {.places = max_workers, .per_lane = max_per_domain, .own_lane = fast_workers};
}

}  // namespace

// ---- life ---------------------------------------------------------------------------------------

Result<std::unique_ptr<WorkerPool>> WorkerPool::Create(Parts parts, const Clock& clock) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::move(parts), clock));
  RETURN_IF_ERROR(pool->Start());
  return pool;
}

WorkerPool::WorkerPool(Parts parts, const Clock& clock)
    : start_(std::move(parts.start)),
      fast_workers_(parts.fast_workers),
      lanes_changed_(std::move(parts.lanes_changed)),
      clock_(clock),
      lanes_(LimitsOf(parts.max_workers, parts.max_per_domain, parts.fast_workers)),
      key_directory_(std::move(parts.key_directory)) {}

// Those that came before have no page in the directory, and end.
Status WorkerPool::KeepKeysIn(const std::string& directory) {
  ASSIGN_OR_RETURN(KeysOfOthers others, KeysOfOthers::Read(directory));
  std::vector<std::unique_ptr<WorkerProcess>> leaving;
  {
    MutexLock lock(mu_);
    key_directory_ = directory;
    keys_.SetOthers(std::move(others));
    leaving = std::exchange(idle_, {});
    for (auto& fast : std::exchange(fast_, {})) leaving.push_back(std::move(fast));
  }
  for (auto& worker : leaving) {
    LostWorker lost;
    lost.process = std::move(worker);
    LetGo(std::move(lost));
  }
  return OkStatus();
}

Status WorkerPool::Start() {
  WorkerReaper::Handler handler;
  handler.stuck = [this](const StuckOperation& operation) { OnStuck(operation); };
  handler.dead = [this](const StuckOperation& operation, bool was_stuck) {
    OnDead(operation, was_stuck);
  };
  ASSIGN_OR_RETURN(reaper_, WorkerReaper::Start(clock_, std::move(handler)));
  std::string directory;
  {
    MutexLock lock(mu_);
    directory = key_directory_;
  }
  if (!directory.empty()) RETURN_IF_ERROR(KeepKeysIn(directory));
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> fast, start_(directory));
  ASSIGN_OR_RETURN(std::unique_ptr<WorkerProcess> warm, start_(directory));
  MutexLock lock(mu_);
  fast_.push_back(std::move(fast));
  idle_.push_back(std::move(warm));
  stats_.spawned = 2;
  return OkStatus();
}

WorkerPool::~WorkerPool() {
  std::vector<std::unique_ptr<WorkerProcess>> leaving;
  {
    MutexLock lock(mu_);
    leaving = std::move(idle_);
    for (auto& fast : fast_) leaving.push_back(std::move(fast));
  }
  for (const auto& worker : leaving) worker->channel().Close();
  for (const auto& worker : leaving) {
    if (!worker->WaitForDeath(kIdleEnds)) worker->Kill();
  }
}

// ---- admission ----------------------------------------------------------------------------------

void WorkerPool::SetLimits(int max_workers, int max_per_domain) {
  {
    MutexLock lock(mu_);
    lanes_.SetLimits(LimitsOf(max_workers, max_per_domain, fast_workers_));
    AdmitWaiters();
    WakeWaiters();
  }
  LanesChanged();
}

void WorkerPool::LanesChanged() const {
  if (lanes_changed_) lanes_changed_();
}

void WorkerPool::AdmitWaiters() {
  for (const Lanes::Ticket ticket : lanes_.Admit()) {
    const auto found = waiters_.find(ticket);
    ++stats_.busy;
    found->second->admitted = true;
    found->second->admitted_or_not.NotifyOne();
    waiters_.erase(found);
  }
}

// Each looks for itself whether it still may wait.
void WorkerPool::WakeWaiters() {
  for (const auto& [ticket, waiter] : waiters_) waiter->admitted_or_not.NotifyOne();
}

std::optional<Error> WorkerPool::WhyNotWait(const Call& call) const {
  const std::string& lane = call.options.domain;
  const auto stuck = stuck_in_.find(lane);
  if (stuck == stuck_in_.end() || stuck->second < lanes_.limits().per_lane) return std::nullopt;
  return Error::NotApplied(Code::kUnavailable,
                           call.Name() + ": " + std::to_string(stuck->second) +
                               " workers are stuck in " +
                               (lane.empty() ? "the agent's own filesystem" : lane));
}

Status WorkerPool::WaitForAdmission(Call& call, Waiter& waiter) {
  const Deadline& deadline = call.options.deadline;
  while (!waiter.admitted) {
    if (call.cancelled()) {
      ++stats_.cancelled;
      return Error::NotApplied(Code::kCancelled, call.Name() + ": cancelled");
    }
    if (deadline.Passed(clock_)) {
      ++stats_.deadline_exceeded;
      return Error::NotApplied(Code::kDeadlineExceeded,
                               call.Name() + ": no worker became free in time");
    }
    if (std::optional<Error> error = WhyNotWait(call)) return *std::move(error);
    if (deadline.infinite()) {
      waiter.admitted_or_not.Wait(mu_);
    } else {
      waiter.admitted_or_not.WaitFor(mu_, deadline.Remaining(clock_));
    }
  }
  return OkStatus();
}

Status WorkerPool::Admit(Call& call) {
  const std::string& lane = call.options.domain;
  MutexLock lock(mu_);
  Waiter waiter{call, {}, false};
  const Lanes::Ticket ticket = lanes_.Wait(lane);
  waiters_[ticket] = &waiter;
  // Not for one that has nothing to do any more.
  if (!call.cancelled() && !call.options.deadline.Passed(clock_)) AdmitWaiters();
  if (waiter.admitted) return OkStatus();
  Status admitted = WaitForAdmission(call, waiter);
  if (!admitted.ok()) {
    lanes_.GiveUp(lane, ticket);
    waiters_.erase(ticket);
  }
  return admitted;
}

void WorkerPool::Leave(Call& call) {
  MutexLock lock(mu_);
  lanes_.Leave(call.options.domain);
  --stats_.busy;
  AdmitWaiters();
}

void WorkerPool::Answered(const Call& call) {
  bool changed = false;
  {
    MutexLock lock(mu_);
    changed = lanes_.Health(call.options.domain).silent_since.has_value();
    lanes_.Answered(call.options.domain);
    if (changed) AdmitWaiters();
  }
  if (changed) LanesChanged();
}

// ---- stuck --------------------------------------------------------------------------------------

void WorkerPool::OnStuck(const StuckOperation& operation) {
  {
    MutexLock lock(mu_);
    ++stuck_in_[operation.domain];
    ++stats_.stuck_total;
    stuck_.push_back(operation);
    WakeWaiters();
  }
  LanesChanged();
}

void WorkerPool::OnDead(const StuckOperation& operation, bool was_stuck) {
  {
    MutexLock lock(mu_);
    lanes_.Found(operation.domain);
    keys_.GiveBack(KeysOf(operation.key, operation.more_keys));
    if (was_stuck) {
      if (--stuck_in_[operation.domain] == 0) stuck_in_.erase(operation.domain);
      stuck_.erase(
          std::remove_if(stuck_.begin(), stuck_.end(),
                         [&](const StuckOperation& other) { return other.pid == operation.pid; }),
          stuck_.end());
    }
    AdmitWaiters();
  }
  LanesChanged();
}

LaneHealth WorkerPool::HealthOf(const std::string& lane) const {
  MutexLock lock(mu_);
  return lanes_.Health(lane);
}

WorkerPoolStats WorkerPool::stats() const {
  MutexLock lock(mu_);
  WorkerPoolStats stats = stats_;
  stats.stuck_now = static_cast<int>(stuck_.size()) + keys_.BusyOthers();
  stats.waiting = lanes_.waiting();
  stats.idle = static_cast<int>(idle_.size() + fast_.size());
  return stats;
}

std::vector<StuckOperation> WorkerPool::stuck_operations() const {
  MutexLock lock(mu_);
  return stuck_;
}

}  // namespace volumed
