// OverlappingScheduler: a SimulatedScheduler whose blocking tasks overlap effect by effect. Each is
// suspended at calls of the kernel and record writes, as the seed says, while others run; the same
// seed gives the same run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/scheduler.h"
#include "base/simulated_scheduler.h"
#include "unit/crash/hand_over_thread.h"

namespace volumed {

// What a run's operations overlap by.
struct OverlapSchedule {
  uint64_t seed = 0;
  std::string title;  // of the run; is printed if it cannot go on
};

// Threads: one at a time: its creator's, or that of a task that it runs.
class OverlappingScheduler final : public Scheduler {
 public:
  // Without `overlap` a task runs to its end in one step. `scheduler` outlives this.
  OverlappingScheduler(SimulatedScheduler& scheduler, std::optional<OverlapSchedule> overlap);
  ~OverlappingScheduler() override;
  OverlappingScheduler(const OverlappingScheduler&) = delete;
  OverlappingScheduler& operator=(const OverlappingScheduler&) = delete;

  const Clock& clock() const override { return scheduler_.clock(); }
  void Post(Task task) override { scheduler_.Post(std::move(task)); }
  TimerId PostAfter(Duration delay, Task task) override {
    return scheduler_.PostAfter(delay, std::move(task));
  }
  bool Cancel(TimerId timer) override { return scheduler_.Cancel(timer); }
  void RunBlocking(Task task) override;
  bool OnControlThread() const override { return scheduler_.OnControlThread(); }

  // Here a blocking task may be suspended. Nothing on the control thread.
  void SwitchPoint();
  // The blocking task that runs waits for what another one does: it goes on once another one has
  // run. Throws std::logic_error if none is there that could.
  void AwaitOthers();
  // Suspended tasks are unwound; to be called before what they use is destroyed.
  void EndTasks();
  // No blocking task is suspended. Always, if they do not overlap.
  bool IsIdle() const { return tasks_.empty(); }
  // How often a task went on after another had run.
  uint64_t switches() const { return switches_; }

 private:
  using Running = std::shared_ptr<HandOverThread>;

  void Continue(const Running& task);
  void ContinueWaiting();
  void ContinueLater(const Running& task);
  // Once so many others have had their turn.
  void ContinueAfter(const Running& task, uint64_t steps);
  bool OneIn(uint64_t n) { return random_() % n == 0; }

  SimulatedScheduler& scheduler_;
  const std::optional<OverlapSchedule> overlap_;
  std::mt19937_64 random_;
  uint64_t one_in_ = 1;   // so many points is one where the task is suspended
  bool is_slow_ = false;  // the task that is being suspended
  bool waits_ = false;    // likewise
  std::vector<Running> tasks_;
  std::vector<Running> waiting_;  // for others of these
  Running running_;
  Running last_;
  uint64_t switches_ = 0;
};

}  // namespace volumed
