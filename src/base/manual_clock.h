// ManualClock: time that moves only when told. For tests and the simulated scheduler.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace volumed {

// Both times move together. Threads: any. Blocks: never.
class ManualClock final : public Clock {
 public:
  // Not zero, so that "no time" and "the start" differ.
  static constexpr TimePoint kStart{std::chrono::hours(1)};
  static constexpr int64_t kStartUnixMillis = 1'700'000'000'000;

  TimePoint Now() const override { return kStart + Duration(elapsed_ns_.load()); }
  int64_t WallUnixMillis() const override {
    return kStartUnixMillis + wall_shift_ms_.load() + elapsed_ns_.load() / 1'000'000;
  }

  // Negative steps are ignored: monotonic time does not go back.
  void Advance(Duration step) {
    if (step > Duration::zero()) elapsed_ns_.fetch_add(step.count());
  }
  // Does nothing if `when` has passed. REQUIRES: no other thread moves the clock meanwhile, or it
  // may go beyond `when`.
  void AdvanceTo(TimePoint when) { Advance(when - Now()); }
  // An administrator or NTP sets the clock; monotonic time does not notice.
  void ShiftWallMillis(int64_t milliseconds) { wall_shift_ms_.fetch_add(milliseconds); }

 private:
  std::atomic<int64_t> elapsed_ns_{0};
  std::atomic<int64_t> wall_shift_ms_{0};
};

using SimulatedClock = ManualClock;

}  // namespace volumed
