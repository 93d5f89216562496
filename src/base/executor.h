// Executor: threads for tasks that block, as many as there are blocked tasks, up to a limit.
#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// A limit of threads, not a pool: none is started before a task needs it.
struct ExecutorOptions {
  size_t max_threads = 1024;
  size_t stack_bytes = 256 * 1024;  // of each thread; the system's least if that is more
  // A thread without work ends after this. Work goes to the thread that has waited least, so that
  // those that are not needed any more are without it.
  Duration idle_timeout = std::chrono::seconds(10);
};

// How an Executor is at one moment.
struct ExecutorLoad {
  size_t threads = 0;  // all of them
  size_t busy = 0;     // in a task
  size_t queued = 0;   // tasks that wait for a thread
};

// Tasks are begun in the order in which they were submitted, and a task that throws ends the
// process. The threads have the nice value of the thread that made the Executor, whoever submits.
//
// Threads: any. Blocks: never; the destructor neither: a thread in a task is left behind and ends
// after it, so what that task refers to must outlive it, or the process must end without waiting.
class Executor {
 public:
  explicit Executor(ExecutorOptions options);
  // Tasks that wait are destroyed unrun.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Queues the task and starts a thread for it if one is needed. An error (ResourceExhausted,
  // MaybeApplied: the task is queued) says that no thread could be made. The task then runs once
  // another thread is free, or StartThreads() has made one.
  Status Submit(Task task);
  // Makes the threads that queued tasks lack. The same error.
  Status StartThreads();

  ExecutorLoad load() const;

 private:
  // Shared with the threads, which may outlive this object.
  struct State;
  static void* ThreadMain(void* argument);
  static void Work(State& state);

  const std::shared_ptr<State> state_;
};

}  // namespace volumed
