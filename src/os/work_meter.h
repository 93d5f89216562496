// WorkMeter: where a long effect reports how far it is and hears that it shall stop.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "base/mutex.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// `options` outlive it. A cancel that was seen once stays seen. Threads: any; `progress` is called
// by one at a time, with the total so far. Blocks: as `progress` does.
class WorkMeter {
 public:
  // How often progress is told, and with it how soon a cancel is seen.
  static constexpr std::chrono::milliseconds kInterval{200};

  explicit WorkMeter(const CallOptions& options)
      : options_(options), next_(std::chrono::steady_clock::now() + kInterval) {}

  // A safe point: false when the work shall stop. Cheap; call it for every entry or few of them.
  bool Step(int64_t entries);
  // What all steps together were told.
  int64_t done() const { return done_.load(std::memory_order_relaxed); }

  // The error of work that a step told to stop; whoever did it knows the outcome.
  static Error CancelledError(Outcome outcome) {
    return Error::FromParts(Code::kCancelled, outcome, 0, "cancelled");
  }

 private:
  // Entries between two looks at the clock.
  static constexpr int64_t kLookEvery = 64;

  const CallOptions& options_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stopped_{false};
  Mutex mu_;
  std::chrono::steady_clock::time_point next_ GUARDED_BY(mu_);
};

}  // namespace volumed
