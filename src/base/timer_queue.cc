#include "base/timer_queue.h"

namespace volumed {
namespace {

TimePoint DueAfter(TimePoint now, Duration delay) {
  if (delay <= Duration::zero()) return now;
  return delay > TimePoint::max() - now ? TimePoint::max() : now + delay;
}

}  // namespace

TimerId TimerQueue::Add(TimePoint now, Duration delay, Task task) {
  const TimerId timer = next_++;
  const TimePoint due = DueAfter(now, delay);
  tasks_.emplace(Key(due, timer), std::move(task));
  due_of_.emplace(timer, due);
  return timer;
}

std::optional<Task> TimerQueue::Remove(TimerId timer) {
  const auto due = due_of_.find(timer);
  if (due == due_of_.end()) return std::nullopt;
  const auto at = tasks_.find(Key(due->second, timer));
  std::optional<Task> task(std::move(at->second));
  tasks_.erase(at);
  due_of_.erase(due);
  return task;
}

std::optional<TimerQueue::Due> TimerQueue::PopDue(TimePoint now) {
  const auto first = tasks_.begin();
  if (first == tasks_.end() || first->first.first > now) return std::nullopt;
  Due due{first->first.second, std::move(first->second)};
  tasks_.erase(first);
  due_of_.erase(due.id);
  return due;
}

std::optional<TimePoint> TimerQueue::NextDue() const {
  if (tasks_.empty()) return std::nullopt;
  return tasks_.begin()->first.first;
}

}  // namespace volumed
