// Drives a RealScheduler from a test, whose thread becomes the control thread meanwhile.
#pragma once

#include <chrono>
#include <functional>

#include "base/real_scheduler.h"

namespace volumed {

// Runs the loop, looking every millisecond, until `done` holds. False after ten seconds.
inline bool RunUntil(RealScheduler& scheduler, const std::function<bool()>& done) {
  const TimePoint limit = scheduler.clock().Now() + std::chrono::seconds(10);
  bool held = false;
  Task look = [&] {
    held = done();
    if (held || scheduler.clock().Now() > limit) {
      scheduler.Stop();
    } else {
      scheduler.PostAfter(std::chrono::milliseconds(1), look);
    }
  };
  scheduler.Post(look);
  scheduler.Run();
  return held;
}

// Runs the loop until no blocking task is left: only then may a scheduler be destroyed, because
// such a task posts to it at its end.
inline bool RunUntilIdle(RealScheduler& scheduler) {
  return RunUntil(scheduler, [&scheduler] {
    const ExecutorLoad load = scheduler.load();
    return load.busy == 0 && load.queued == 0;
  });
}

}  // namespace volumed
