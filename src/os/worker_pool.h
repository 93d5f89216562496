// WorkerPool: who gets a worker, and what becomes of one that does not answer. See WorkerKernel for
// the lanes and the outcomes.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"
#include "os/worker_kernel.h"
#include "os/worker_pool_stats.h"
#include "os/worker_process.h"
#include "os/worker_reaper.h"

namespace volumed {

// Threads: any. Blocks: as WorkerKernel::Do.
//
// A call is admitted to its domain's lane, takes a worker that is warm or starts one, and itself
// waits on that worker's socket: no thread stands between. Whoever leaves admits the next.
class WorkerPool {
 public:
  static Result<std::unique_ptr<WorkerPool>> Create(const WorkerKernelOptions& options,
                                                    const Clock& clock);
  ~WorkerPool();

  Result<AnyAnswer> Do(const AnyRequest& request, const CallOptions& options) EXCLUDES(mu_);
  void SetLimits(int max_workers, int max_per_domain) EXCLUDES(mu_);

  WorkerPoolStats stats() const EXCLUDES(mu_);
  std::vector<StuckOperation> stuck_operations() const EXCLUDES(mu_);

 private:
  struct Call;
  struct Waiter;
  // What a domain has in use.
  struct Lane {
    int busy = 0;
    int lost = 0;   // killed and not yet dead
    int stuck = 0;  // of these, dead in no sight
  };

  WorkerPool(const WorkerKernelOptions& options, const Clock& clock);
  Status Start();

  Status Admit(Call& call) EXCLUDES(mu_);
  Status WaitForAdmission(Call& call, Waiter& waiter) REQUIRES(mu_);
  bool HasRoom(const std::string& domain) REQUIRES(mu_);
  void TakeRoom(const std::string& domain) REQUIRES(mu_);
  void AdmitWaiters() REQUIRES(mu_);
  void Leave(Call& call) EXCLUDES(mu_);

  Result<AnyAnswer> Serve(Call& call);
  Result<std::unique_ptr<WorkerProcess>> TakeWorker(const Call& call) EXCLUDES(mu_);
  void GiveBack(const Call& call, std::unique_ptr<WorkerProcess> worker) EXCLUDES(mu_);
  Result<std::unique_ptr<WorkerProcess>> SendToWorker(Call& call);
  Result<AnyAnswer> AwaitAnswer(Call& call, std::unique_ptr<WorkerProcess> worker);
  Result<AnyAnswer> Died(Call& call, std::unique_ptr<WorkerProcess> worker);
  Result<AnyAnswer> KillWorker(Call& call, std::unique_ptr<WorkerProcess> worker, Error error);
  void Abandon(const Call& call, std::unique_ptr<WorkerProcess> worker, bool killed) EXCLUDES(mu_);

  void OnStuck(const StuckOperation& operation) EXCLUDES(mu_);
  void OnDead(const StuckOperation& operation, bool was_stuck) EXCLUDES(mu_);

  const std::vector<std::string> command_;
  const Clock& clock_;

  mutable Mutex mu_;
  int max_workers_ GUARDED_BY(mu_);
  int max_per_domain_ GUARDED_BY(mu_);
  std::map<std::string, Lane> lanes_ GUARDED_BY(mu_);
  std::list<Waiter*> waiters_ GUARDED_BY(mu_);  // in the order of arrival
  std::unique_ptr<WorkerProcess> fast_ GUARDED_BY(mu_);
  std::vector<std::unique_ptr<WorkerProcess>> idle_ GUARDED_BY(mu_);
  int isolated_busy_ GUARDED_BY(mu_) = 0;
  WorkerPoolStats stats_ GUARDED_BY(mu_);
  std::vector<StuckOperation> stuck_ GUARDED_BY(mu_);

  std::unique_ptr<WorkerReaper> reaper_;  // last: its thread calls the rest
};

}  // namespace volumed
