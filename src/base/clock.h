// Clock and Deadline: the only sources of time. Monotonic time measures, wall time is shown and
// stored (as unix milliseconds).
#pragma once

#include <chrono>
#include <cstdint>

namespace volumed {

using Duration = std::chrono::nanoseconds;
// Monotonic; its zero means nothing outside this process.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Threads: any. Blocks: never.
class Clock {
 public:
  virtual ~Clock() = default;
  // It never goes back.
  virtual TimePoint Now() const = 0;
  // Milliseconds since 1970 in UTC. It jumps, in either direction, if the machine's clock is set.
  virtual int64_t WallUnixMillis() const = 0;
};

// The machine's clocks; it has no state of its own. Now() stands still while the machine is
// suspended, as CLOCK_MONOTONIC does.
class RealClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  int64_t WallUnixMillis() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

// The moment at which a caller stops waiting, as a value. A Deadline in a signature marks a
// function that may wait. An infinite one is meant for calls that must finish (mkfs); it is also
// what an options struct holds before its maker sets another.
class Deadline {
 public:
  static Deadline Infinite() { return Deadline(TimePoint::max()); }
  // TimePoint::max() is the infinite one.
  static Deadline At(TimePoint when) { return Deadline(when); }
  // REQUIRES: the sum is a TimePoint. Duration::max() overflows; Infinite() is for that.
  static Deadline After(const Clock& clock, Duration timeout) {
    return Deadline(clock.Now() + timeout);
  }

  bool infinite() const { return when_ == TimePoint::max(); }
  TimePoint when() const { return when_; }
  // An infinite deadline never passes.
  bool Passed(const Clock& clock) const { return !infinite() && clock.Now() >= when_; }
  // It is zero once the deadline has passed, and Duration::max() for an infinite one.
  Duration Remaining(const Clock& clock) const {
    if (infinite()) return Duration::max();
    const Duration left = when_ - clock.Now();
    return left > Duration::zero() ? left : Duration::zero();
  }

 private:
  explicit Deadline(TimePoint when) : when_(when) {}
  TimePoint when_;
};

}  // namespace volumed
