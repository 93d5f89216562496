// SlowTasks: remembers which tasks kept the control thread longest, so that one can see what all
// other tasks waited for. A task is named by the function that made it.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"

namespace volumed {

// A task that is shorter delays the others by less than a person would notice.
inline constexpr Duration kSlowTask = std::chrono::milliseconds(5);

// Threads: the control thread. Blocks: never.
class SlowTasks {
 public:
  // `clock` outlives this object.
  explicit SlowTasks(const Clock& clock) : clock_(clock), window_began_(clock.Now()) {}

  // Notes one run. Which runs are worth that (kSlowTask) the caller decides.
  void Ran(const std::string& task, Duration took);

  // The longest run of each task in the last one to two minutes. It is not counted from the last
  // question, so that each of several callers sees it.
  std::map<std::string, Duration> Longest();

 private:
  void TurnWindow();

  const Clock& clock_;
  TimePoint window_began_;
  std::map<std::string, Duration> now_;
  std::map<std::string, Duration> before_;  // the window that ended last
};

}  // namespace volumed
