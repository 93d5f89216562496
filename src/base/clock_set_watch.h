// ClockSetWatch: tells that the machine's wall clock was set (by a person, or by NTP in a step).
// Timers run on monotonic time and do not notice. Source: timerfd_create(2),
// TFD_TIMER_CANCEL_ON_SET.
#pragma once

#include <functional>
#include <memory>

#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/result.h"

namespace volumed {

// Threads: the loop's, for the destructor too; `was_set` is called on it, once for each time that
// the clock was set, or for several of them together. It must not destroy the watch. Blocks: never.
class ClockSetWatch {
 public:
  // `loop` outlives the watch. Errors, all not applied: errno of timerfd_create(2) and
  // timerfd_settime(2), and those of EventLoop::WatchFd.
  static Result<std::unique_ptr<ClockSetWatch>> Create(EventLoop& loop,
                                                       std::function<void()> was_set);
  ~ClockSetWatch();
  ClockSetWatch(const ClockSetWatch&) = delete;
  ClockSetWatch& operator=(const ClockSetWatch&) = delete;

 private:
  ClockSetWatch(Descriptor timer, EventLoop& loop, std::function<void()> was_set);
  Status Arm();
  void Ready();

  const Descriptor timer_;
  EventLoop& loop_;
  const std::function<void()> was_set_;
};

}  // namespace volumed
