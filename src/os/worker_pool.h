// WorkerPool: who gets a worker, and what becomes of one that does not answer. See WorkerKernel for
// which calls share a lane, and for the outcomes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/lanes.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"
#include "os/worker_keys.h"
#include "os/worker_pool_stats.h"
#include "os/worker_process.h"
#include "os/worker_reaper.h"

namespace volumed {

// Threads: any. Blocks: as WorkerKernel::Do.
//
// A call is admitted to its domain's lane, takes a worker that is warm or starts one, and itself
// waits on that worker's socket: no thread stands between. Whoever leaves admits the next. A worker
// that was killed and does not die keeps its place in the lane until it does, so that there are
// never more than max_workers processes besides the fast lane's, and the idle ones.
class WorkerPool {
 public:
  // What the pool is made of, and its limits.
  struct Parts {
    // Called on any thread, by several at once.
    WorkerStarter start;
    // As WorkerKernelOptions says.
    int max_workers;
    int max_per_domain;
    // For the agent's own filesystem.
    int fast_workers;
    // A lane may have room again that it had not, or is silent or answers again. On any thread,
    // without a lock held. Optional.
    std::function<void()> lanes_changed;
    std::string key_directory = {};  // as of KeepKeysIn(); empty: none yet
  };

  // Starts the reaper's thread and the first two workers, one fast and one isolated. `clock`
  // outlives the pool. Errors: those of the start; those of KeepKeysIn().
  static Result<std::unique_ptr<WorkerPool>> Create(Parts parts, const Clock& clock);
  // REQUIRES: no call is running. Blocks: up to 500 ms for each idle worker, which ends when its
  // socket is closed, and is killed if it does not. Workers that were given up live on.
  ~WorkerPool();

  // Does the request in a worker of the lane options.domain, or in a fast worker if that is empty.
  // Blocks and errors: as WorkerKernel::Do. options.progress is called on the calling thread.
  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) EXCLUDES(mu_);
  // See WorkerKernel::SetLimits. Blocks: never.
  void SetLimits(int max_workers, int max_per_domain) EXCLUDES(mu_);
  // See WorkerKernel::KeepKeysIn.
  Status KeepKeysIn(const std::string& directory) EXCLUDES(mu_);

  // Figures of one moment. Blocks: never, if the directory of the keys is on a tmpfs.
  WorkerPoolStats stats() const EXCLUDES(mu_);
  // Those of this pool that were told as stuck and have not died, in the order in which they were
  // told.
  std::vector<StuckOperation> stuck_operations() const EXCLUDES(mu_);
  // Of a lane that nobody has named nothing is known: it is as LaneHealth begins.
  LaneHealth HealthOf(const std::string& lane) const EXCLUDES(mu_);

 private:
  struct Call;
  struct Waiter;

  WorkerPool(Parts parts, const Clock& clock);
  Status Start();

  Status Admit(Call& call) EXCLUDES(mu_);
  Status WaitForAdmission(Call& call, Waiter& waiter) REQUIRES(mu_);
  // Nothing while one may wait for the lane. All its places may be lost for good.
  std::optional<Error> WhyNotWait(const Call& call) const REQUIRES(mu_);
  void AdmitWaiters() REQUIRES(mu_);
  void WakeWaiters() REQUIRES(mu_);
  void Leave(Call& call) EXCLUDES(mu_);
  void Answered(const Call& call) EXCLUDES(mu_);
  void LanesChanged() const;

  // worker_pool_request.cc: one request, like Do.
  Result<AnyAnswer> Serve(Call& call) EXCLUDES(mu_);
  void LetGo(LostWorker lost);
  Result<std::unique_ptr<WorkerProcess>> TakeWorker(const Call& call) EXCLUDES(mu_);
  void GiveBack(Call& call, std::unique_ptr<WorkerProcess> worker) EXCLUDES(mu_);
  Result<std::unique_ptr<WorkerProcess>> SendToWorker(Call& call);
  Result<AnyAnswer> AwaitAnswer(Call& call, std::unique_ptr<WorkerProcess> worker);
  Result<AnyAnswer> Died(Call& call, std::unique_ptr<WorkerProcess> worker);
  Result<AnyAnswer> KillWorker(Call& call, std::unique_ptr<WorkerProcess> worker, Error error);
  void Abandon(Call& call, std::unique_ptr<WorkerProcess> worker, bool killed) EXCLUDES(mu_);

  void OnStuck(const StuckOperation& operation) EXCLUDES(mu_);
  void OnDead(const StuckOperation& operation, bool was_stuck) EXCLUDES(mu_);

  const WorkerStarter start_;
  const int fast_workers_;
  const std::function<void()> lanes_changed_;
  const Clock& clock_;

  mutable Mutex mu_;
  Lanes lanes_ GUARDED_BY(mu_);
  std::map<Lanes::Ticket, Waiter*> waiters_ GUARDED_BY(mu_);
  std::map<std::string, int> stuck_in_ GUARDED_BY(mu_);  // by lane: killed, and still alive
  std::vector<std::unique_ptr<WorkerProcess>> fast_ GUARDED_BY(mu_);  // those that are idle
  std::vector<std::unique_ptr<WorkerProcess>> idle_ GUARDED_BY(mu_);
  WorkerPoolStats stats_ GUARDED_BY(mu_);
  std::vector<StuckOperation> stuck_ GUARDED_BY(mu_);
  std::string key_directory_ GUARDED_BY(mu_);
  // Of calls that have a worker, and of workers that were killed and live on.
  mutable TakenKeys keys_ GUARDED_BY(mu_);

  std::unique_ptr<WorkerReaper> reaper_;  // last: its thread calls the rest
};

}  // namespace volumed
