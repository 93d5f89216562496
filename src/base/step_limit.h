// StepLimit: ends a simulation that goes in circles, and says which tasks do, instead of letting it
// hang.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "base/clock.h"

namespace volumed {

// Leaves the Run call of the simulation. Its text names the tasks that were run last, the most
// frequent first.
class StepLimitReached : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Threads: one. Blocks: never.
class StepLimit {
 public:
  // Both are far above what any test needs: ten thousand pods that start at once are some hundred
  // thousand tasks.
  struct Limits {
    uint64_t at_one_time = 5'000'000;
    uint64_t in_one_call = 50'000'000;
  };

  // For simulations that are meant to be long; what was counted before stays counted.
  void set_limits(Limits limits) { limits_ = limits; }

  // A Run call begins: the tasks of earlier ones do not count against it.
  void BeginCall() { in_call_ = {}; }

  // A task that was made as `made_as` is about to run at `now`. Throws StepLimitReached if it is
  // one too many since the time moved, or since the call began.
  void Count(TimePoint now, const std::type_info& made_as);

 private:
  // The names are told from so many last tasks: names of all of them would slow every simulation.
  static constexpr uint64_t kObserved = 1000;

  struct Span {
    uint64_t count = 0;
    std::map<std::string, uint64_t> last;  // task -> how often it is among the last ones
  };

  static void Count(Span& span, uint64_t limit, const char* when, const std::type_info& made_as);

  Limits limits_;
  TimePoint now_;
  Span at_now_;
  Span in_call_;
};

}  // namespace volumed
