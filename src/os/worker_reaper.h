// WorkerReaper: watches workers that the pool has let go of until they are dead. A killed one that
// still lives after two seconds is stuck: it sleeps uninterruptibly in a filesystem that hangs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/worker_pool_stats.h"
#include "os/worker_process.h"

namespace volumed {

// A worker that nobody waits for any more.
struct LostWorker {
  std::unique_ptr<WorkerProcess> process;
  bool killed = false;       // else it was told to end by closing its socket
  StuckOperation operation;  // what it was doing, if it was killed
  TimePoint let_go;
};

// Threads: any, but for the destructor: nobody calls Add() then. Blocks: never, but for the
// destructor. It has one thread of its own, which calls the handler, without a lock held.
class WorkerReaper {
 public:
  // Both are called on the reaper's thread, for killed workers alone: when one became stuck, and
  // when one died, having been told as stuck or not. Each worker is told as stuck at most once, and
  // as dead at most once.
  struct Handler {
    std::function<void(const StuckOperation&)> stuck;
    std::function<void(const StuckOperation&, bool was_stuck)> dead;
  };

  // How long a killed worker may take to die before it is told as stuck. No key of the
  // configuration: a process that the kernel can end is gone in milliseconds, and one that it
  // cannot end stays, whatever the bound is.
  static constexpr std::chrono::seconds kStuckAfter{2};

  // Starts the thread. `clock` outlives the reaper. Errors: errno of eventfd(2), not applied.
  static Result<std::unique_ptr<WorkerReaper>> Start(const Clock& clock, Handler handler);
  // Leaves those that live to themselves, without a word to the handler. Blocks: up to 200 ms for
  // each worker whose socket was closed and which has not ended yet.
  ~WorkerReaper();

  // Takes the worker over: it is reaped when it is dead.
  void Add(LostWorker worker) EXCLUDES(mu_);

 private:
  struct Watched {
    LostWorker worker;
    bool stuck = false;
  };

  WorkerReaper(const Clock& clock, Handler handler, Descriptor wake);
  void Run();
  void Look(Watched& watched);
  static void LeaveToThemselves(std::vector<Watched>& watched);
  int PollTimeoutMillis(const std::vector<Watched>& watched) const;

  const Clock& clock_;
  const Handler handler_;
  const Descriptor wake_;
  Mutex mu_;
  std::vector<LostWorker> added_ GUARDED_BY(mu_);
  bool stop_ GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace volumed
