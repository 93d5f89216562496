// WorkerMinder: ends a worker whose agent has stopped, and which nobody would kill at the deadline
// of its request any more.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"

namespace volumed {

// While the agent lives, the agent kills a worker at the deadline of its request. If the agent has
// stopped, the worker goes on: what it does may still become right. But if the request is not done
// at its deadline and a grace after it, the minder sends SIGKILL to the worker's process group, and
// so to the tools that it runs. It is a thread of its own, because the worker's other thread may
// hang in the kernel. It sleeps until the agent's end of the socket is closed, so that a request
// costs it nothing.
//
// Threads: Begin() and End() on one thread. Blocks: never.
class WorkerMinder {
 public:
  // No key of the configuration: it only has to be so long that an agent that lives kills first.
  static constexpr std::chrono::seconds kGrace{2};

  // Starts the thread, which stays until the process ends. `socket` is the worker's end of its
  // channel and stays open likewise.
  explicit WorkerMinder(int socket);
  WorkerMinder(const WorkerMinder&) = delete;
  WorkerMinder& operator=(const WorkerMinder&) = delete;

  // A request begins that may be killed once `time_left` has passed. nullopt: it is never killed,
  // because it has no deadline or must finish (mkfs, fsck, a copy).
  void Begin(std::optional<Duration> time_left);
  void End();

 private:
  // Shared with the thread.
  struct State {
    Mutex mu;
    CondVar changed;
    std::optional<TimePoint> kill_at GUARDED_BY(mu);
  };
  static void Run(int socket, const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace volumed
