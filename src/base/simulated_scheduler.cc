#include "base/simulated_scheduler.h"

#include <iterator>
#include <optional>
#include <utility>

namespace volumed {

SimulatedScheduler::SimulatedScheduler(uint64_t seed) : clock_(own_clock_), random_(seed) {}

SimulatedScheduler::SimulatedScheduler(uint64_t seed, ManualClock& clock)
    : clock_(clock), random_(seed) {}

SimulatedScheduler::~SimulatedScheduler() {
  dropped_ = true;
  // Destroying a task may run destructors that post; those find empty queues and are dropped.
  const std::deque<Queued> control = std::exchange(control_, {});
  const std::vector<Task> blocking = std::exchange(blocking_, {});
  const TimerQueue timers = std::exchange(timers_, TimerQueue());
}

void SimulatedScheduler::Post(Task task) {
  if (dropped_) return;
  control_.push_back(Queued{0, std::move(task)});
}

TimerId SimulatedScheduler::PostAfter(Duration delay, Task task) {
  if (dropped_) return 0;
  return timers_.Add(clock_.Now(), delay, std::move(task));
}

bool SimulatedScheduler::Cancel(TimerId timer) {
  if (timer == 0) return false;
  if (const std::optional<Task> waiting = timers_.Remove(timer)) return true;
  for (auto queued = control_.begin(); queued != control_.end(); ++queued) {
    if (queued->timer != timer) continue;
    // Out of the queue before it is destroyed: its destructor may post.
    const Task cancelled = std::move(queued->task);
    control_.erase(queued);
    return true;
  }
  return false;
}

void SimulatedScheduler::RunBlocking(Task task) {
  if (dropped_) return;
  blocking_.push_back(std::move(task));
}

bool SimulatedScheduler::HasReady() const {
  const std::optional<TimePoint> due = timers_.NextDue();
  return !control_.empty() || !blocking_.empty() || (due && *due <= clock_.Now());
}

void SimulatedScheduler::QueueDueTimers() {
  while (std::optional<TimerQueue::Due> due = timers_.PopDue(clock_.Now())) {
    control_.push_back(Queued{due->id, std::move(due->task)});
  }
}

bool SimulatedScheduler::RunOne() {
  QueueDueTimers();
  const size_t control_choices = control_.empty() ? 0 : 1;
  const size_t choices = control_choices + blocking_.size();
  if (choices == 0) return false;
  ++steps_;
  // Not std::uniform_int_distribution: its numbers differ between libraries.
  const size_t chosen = static_cast<size_t>(random_() % choices);
  if (chosen < control_choices) {
    const Task task = std::move(control_.front().task);
    control_.pop_front();
    step_limit_.Count(clock_.Now(), task.target_type());
    struct OffControl {
      bool& on_control;
      ~OffControl() { on_control = false; }
    } off_control{on_control_};
    on_control_ = true;
    task();
    return true;
  }
  const auto at = std::next(blocking_.begin(), static_cast<ptrdiff_t>(chosen - control_choices));
  const Task task = std::move(*at);
  blocking_.erase(at);
  step_limit_.Count(clock_.Now(), task.target_type());
  task();
  return true;
}

bool SimulatedScheduler::JumpToNextTimer(TimePoint limit) {
  const std::optional<TimePoint> due = timers_.NextDue();
  if (!due || *due > limit) return false;
  clock_.AdvanceTo(*due);
  return true;
}

void SimulatedScheduler::AdvanceTo(TimePoint when) {
  step_limit_.BeginCall();
  do {
    while (RunOne()) {
    }
  } while (JumpToNextTimer(when));
  clock_.AdvanceTo(when);
}

bool SimulatedScheduler::RunUntilIdle(Duration max_virtual_time) {
  step_limit_.BeginCall();
  const TimePoint limit = clock_.Now() + max_virtual_time;
  do {
    while (RunOne()) {
    }
  } while (JumpToNextTimer(limit));
  if (timers_.size() == 0) return true;
  clock_.AdvanceTo(limit);
  return false;
}

bool SimulatedScheduler::RunUntil(const std::function<bool()>& done, Duration max_virtual_time) {
  step_limit_.BeginCall();
  const TimePoint limit = clock_.Now() + max_virtual_time;
  while (!done()) {
    if (RunOne() || JumpToNextTimer(limit)) continue;
    if (timers_.size() != 0) clock_.AdvanceTo(limit);
    return false;
  }
  return true;
}

}  // namespace volumed
