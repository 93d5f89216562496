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
  struct Due {
    TimerId id = 0;
    Task task;
  };

  // Due `delay` after `now`; what overflows is due at the end of time, what is negative at once.
  TimerId Add(TimePoint now, Duration delay, Task task);
  // The task, for the caller to destroy where its destructor does no harm. Nothing if no such timer
  // waits.
  std::optional<Task> Remove(TimerId timer);
  // The first one due at `now`; those due at the same time come in the order of Add.
  std::optional<Due> PopDue(TimePoint now);
  std::optional<TimePoint> NextDue() const;

  size_t size() const { return tasks_.size(); }

 private:
  using Key = std::pair<TimePoint, TimerId>;

  std::map<Key, Task> tasks_;
  std::unordered_map<TimerId, TimePoint> due_of_;
  TimerId next_ = 1;
};

}  // namespace volumed
