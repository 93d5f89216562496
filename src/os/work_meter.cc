#include "os/work_meter.h"

namespace volumed {

bool WorkMeter::Step(int64_t entries) {
  const int64_t before = done_.fetch_add(entries, std::memory_order_relaxed);
  const int64_t after = before + entries;
  if (stopped_.load(std::memory_order_relaxed)) return false;
  if (before / kLookEvery == after / kLookEvery && before != 0) return true;
  if (options_.progress) {
    MutexLock lock(mu_);
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_) {
      next_ = now + kInterval;
      options_.progress(after);
    }
  }
  if (options_.cancel != nullptr && options_.cancel->cancelled()) stopped_.store(true);
  return !stopped_.load();
}

}  // namespace volumed
