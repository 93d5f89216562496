#include "agent/slow_tasks.h"

#include <algorithm>
#include <utility>

namespace volumed {
namespace {

constexpr auto kWindow = std::chrono::minutes(1);

}  // namespace

void SlowTasks::TurnWindow() {
  const Duration passed = clock_.Now() - window_began_;
  if (passed < kWindow) return;
  before_ = std::exchange(now_, {});
  if (passed >= 2 * kWindow) before_.clear();
  window_began_ = clock_.Now();
}

void SlowTasks::Ran(const std::string& task, Duration took) {
  TurnWindow();
  Duration& longest = now_[task];
  longest = std::max(longest, took);
}

std::map<std::string, Duration> SlowTasks::Longest() {
  TurnWindow();
  std::map<std::string, Duration> all = before_;
  for (const auto& [task, took] : now_) all[task] = std::max(all[task], took);
  return all;
}

}  // namespace volumed
