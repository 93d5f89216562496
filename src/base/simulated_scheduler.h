// SimulatedScheduler: the whole program in one thread, in a seeded order, in virtual time. The same
// seed gives the same run, so a crash at call k is the same crash every time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "base/clock.h"
#include "base/manual_clock.h"
#include "base/scheduler.h"
#include "base/step_limit.h"
#include "base/timer_queue.h"

namespace volumed {

// Threads: one, for every method; that is the point.
//
// Control tasks run in the order of posting. Before each step the seed decides between the next
// control task and any waiting blocking task, so blocking tasks overtake each other as they would
// on threads. Time stands still while anything is ready, then jumps to the next timer. A blocking
// task runs to its end in one step and cannot wait for another task; one that "takes time" advances
// clock() itself.
//
// A task that throws (a simulated crash) leaves Run*() with its exception. The scheduler can then
// be dropped: what is queued is destroyed unrun, and what a destructor posts is dropped too.
//
// Tasks that go in circles do not hang the test: Run*() and AdvanceTo() throw StepLimitReached,
// which names them (base/step_limit.h).
class SimulatedScheduler final : public Scheduler {
 public:
  // The clock is made here.
  explicit SimulatedScheduler(uint64_t seed);
  // A clock that goes on over simulated restarts; it outlives the scheduler.
  SimulatedScheduler(uint64_t seed, ManualClock& clock);
  ~SimulatedScheduler() override;
  SimulatedScheduler(const SimulatedScheduler&) = delete;
  SimulatedScheduler& operator=(const SimulatedScheduler&) = delete;

  const Clock& clock() const override { return clock_; }
  ManualClock& manual_clock() { return clock_; }

  void Post(Task task) override;
  TimerId PostAfter(Duration delay, Task task) override;
  bool Cancel(TimerId timer) override;
  void RunBlocking(Task task) override;
  bool OnControlThread() const override { return on_control_; }

  // Runs until nothing is ready and no timer waits, and then returns true. It returns false if the
  // next timer lies more than `max_virtual_time` after the start of this call; that time has then
  // passed.
  bool RunUntilIdle(Duration max_virtual_time);
  // Runs what becomes ready in this time; all of it has passed afterwards.
  void RunFor(Duration time) { AdvanceTo(clock_.Now() + time); }
  // As RunFor(), up to that moment. If the moment has passed, what is ready now is run, and time
  // stays.
  void AdvanceTo(TimePoint when);
  // Runs until `done` holds, which is asked before each step, and then returns true. It returns
  // false when nothing is left to run, or when `max_virtual_time` has passed first.
  bool RunUntil(const std::function<bool()>& done, Duration max_virtual_time);
  // One step at the present time. False if nothing is ready; time does not move then.
  bool RunOne();

  // Whether a task is queued, or a timer is due, at the present time.
  bool HasReady() const;
  // Timers that have not come due, or that no step has looked at since.
  size_t waiting_timers() const { return timers_.size(); }
  // Tasks that were run since the start, those that threw included.
  uint64_t steps() const { return steps_; }
  void set_step_limits(StepLimit::Limits limits) { step_limit_.set_limits(limits); }

 private:
  // A timer that is due waits here too, and can still be cancelled.
  struct Queued {
    TimerId timer = 0;
    Task task;
  };

  void QueueDueTimers();
  // Jumps to the next timer, if there is one up to `limit`.
  bool JumpToNextTimer(TimePoint limit);

  ManualClock own_clock_;
  ManualClock& clock_;
  std::mt19937_64 random_;

  std::deque<Queued> control_;
  std::vector<Task> blocking_;
  TimerQueue timers_;
  uint64_t steps_ = 0;
  StepLimit step_limit_;
  bool on_control_ = false;
  bool dropped_ = false;
};

}  // namespace volumed
