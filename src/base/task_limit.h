// TaskLimit: how much of a long work one control task does before others have their turn: until
// some time has passed, or so many pieces are done, whatever comes first. The count keeps a task
// bounded also if the clock stands still, as it does in a simulation.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.h"

namespace volumed {

// A value of one task, made when the task begins. Threads: one. Blocks: never.
class TaskLimit {
 public:
  // A task that takes longer than this is felt by whoever asks meanwhile.
  static constexpr Duration kLongest = std::chrono::milliseconds(5);
  // More pieces than fit into that time: of the smallest ones a microsecond each.
  static constexpr size_t kMost = 1000;

  explicit TaskLimit(const Clock& clock, size_t most = kMost)
      : clock_(clock), end_(clock.Now() + kLongest), left_(most) {}

  // True: one more piece may be done. The first one always may.
  bool TakeOne() {
    if (left_ == 0 || (is_begun_ && clock_.Now() >= end_)) return false;
    is_begun_ = true;
    --left_;
    return true;
  }
  // Whether TakeOne() would say no; asking takes nothing.
  bool IsReached() const { return left_ == 0 || (is_begun_ && clock_.Now() >= end_); }

 private:
  const Clock& clock_;
  const TimePoint end_;
  size_t left_;
  bool is_begun_ = false;
};

}  // namespace volumed
