// Scheduler: every thread, timer and posted task of the program comes from here, so that a test can
// run the same program in one thread, in a seeded order, in virtual time, and end it anywhere.
//
// Two kinds of work:
//  - control tasks run one after another on the control thread, which owns the domain state. They
//    compute and post; they never wait;
//  - blocking tasks (an operation that waits for a worker, a record to become durable) run beside
//    each other on executor threads and hand their result back with Post().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace volumed {

// What a task captured is destroyed on the thread that ran it, or on the one that cancelled or
// dropped it.
using Task = std::function<void()>;

// Names a timer of one scheduler; 0 is no timer. A number is not used again.
using TimerId = uint64_t;

// Threads: any, for every method. Blocks: never, for every method. A task that is queued when the
// scheduler goes is destroyed unrun.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  // The clock by which the timers run. It lives at least as long as the scheduler.
  virtual const Clock& clock() const = 0;

  // Runs `task` on the control thread, after the tasks posted before it; never before Post()
  // returns on the control thread itself.
  virtual void Post(Task task) = 0;

  // Runs `task` on the control thread once `delay` has passed: at the next turn for a delay of zero
  // or less. Returns 0 if the scheduler is being destroyed.
  virtual TimerId PostAfter(Duration delay, Task task) = 0;

  // True if the timer was still waiting; then it will not run, and its task is destroyed. False if
  // it has run, runs now, or is 0.
  virtual bool Cancel(TimerId timer) = 0;

  // Runs `task`, which may block, on an executor thread. There are as many executor threads as
  // there are blocked tasks, up to a limit set when the scheduler is made; beyond it tasks queue.
  // The limit is far above the number of workers, so that hung volumes cannot use it up.
  virtual void RunBlocking(Task task) = 0;

  // True on the control thread (in a simulation: while a control task runs).
  virtual bool OnControlThread() const = 0;
};

}  // namespace volumed
