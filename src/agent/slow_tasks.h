// SlowTasks: which tasks have kept the control thread longest, by the function that made them: what
// everybody else waited for.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"

namespace volumed {

// A task that is shorter keeps nobody waiting for what a person would notice.
inline constexpr Duration kSlowTask = std::chrono::milliseconds(5);

// Threads: the control thread. Blocks: never.
class SlowTasks {
 public:
  // `clock` outlives this.
  explicit SlowTasks(const Clock& clock) : clock_(clock), window_began_(clock.Now()) {}

  void Ran(const std::string& task, Duration took);

  // The longest run of each task in the last one to two minutes: not since it was asked last, so
  // that each of several who ask sees it.
  std::map<std::string, Duration> Longest();

 private:
  void TurnWindow();

  const Clock& clock_;
  TimePoint window_began_;
  std::map<std::string, Duration> now_;
  std::map<std::string, Duration> before_;  // of the window that has ended
};

}  // namespace volumed
