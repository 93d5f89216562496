// TimerQueue: tasks by the time they are due. The part that the real and the simulated scheduler
// share.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: one at a time. Blocks: never.
class TimerQueue {
 public:
  // A timer that has come due, with the number that Add() gave it.
  struct Due {
    TimerId id = 0;
    Task task;
  };

  // Queues `task` for `delay` after `now`. A sum that overflows is due at the end of time, a
  // negative delay at once. The number is never 0 and not used again.
  TimerId Add(TimePoint now, Duration delay, Task task);
  // Takes the timer out and returns its task, for the caller to destroy where its destructor does
  // no harm. It is nullopt if no such timer waits.
  std::optional<Task> Remove(TimerId timer);
  // Takes out the first one that is due at `now`; those due at the same time come in the order of
  // Add(). It is nullopt if none is due.
  std::optional<Due> PopDue(TimePoint now);
  // When the first one is due, which may be a moment that has passed; nullopt if none waits.
  std::optional<TimePoint> NextDue() const;

  size_t size() const { return tasks_.size(); }

 private:
  using Key = std::pair<TimePoint, TimerId>;

  std::map<Key, Task> tasks_;
  std::unordered_map<TimerId, TimePoint> due_of_;
  TimerId next_ = 1;
};

}  // namespace volumed
