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
  virtual TimePoint Now() const = 0;
  virtual int64_t WallUnixMillis() const = 0;
};

class RealClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  int64_t WallUnixMillis() const override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

// The moment at which a caller stops waiting. A Deadline in a signature marks a function that may
// wait. Infinite deadlines exist for calls that must finish (mkfs) and for nothing else.
class Deadline {
 public:
  static Deadline Infinite() { return Deadline(TimePoint::max()); }
  static Deadline At(TimePoint when) { return Deadline(when); }
  static Deadline After(const Clock& clock, Duration timeout) {
    return Deadline(clock.Now() + timeout);
  }

  bool infinite() const { return when_ == TimePoint::max(); }
  TimePoint when() const { return when_; }
  bool Passed(const Clock& clock) const { return !infinite() && clock.Now() >= when_; }
  // Zero once passed. Duration::max() for an infinite deadline.
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
