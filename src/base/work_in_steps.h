// WorkInSteps: work of the control thread that grows with what there is on the node, as a chain of
// short tasks: requests, scrapes and timers have their turn between any two.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "base/alive_guard.h"
#include "base/scheduler.h"
#include "base/task_limit.h"

namespace volumed {

// Threads: the control thread. Blocks: never. The scheduler outlives this; what has not been done
// when this goes is not done.
class WorkInSteps {
 public:
  // Does some more of its work, as long as the limit allows. It returns true if it is over, and the
  // next one begins; else it is called again in another task. A step may call Start(), or destroy
  // the WorkInSteps.
  using Step = std::function<bool(TaskLimit&)>;

  // Nothing is done until Start().
  explicit WorkInSteps(Scheduler& scheduler) : scheduler_(scheduler) {}
  WorkInSteps(const WorkInSteps&) = delete;
  WorkInSteps& operator=(const WorkInSteps&) = delete;

  // What fits into one task is done before this returns, so that little work is done at once. Work
  // that is under way is given up for this.
  void Start(std::vector<Step> steps) {
    steps_.assign(std::make_move_iterator(steps.begin()), std::make_move_iterator(steps.end()));
    alive_.Renew();
    Continue();
  }
  // Whether a step is left that is not over.
  bool IsUnderWay() const { return !steps_.empty(); }

 private:
  void Continue() {
    const AliveGuard::Watch watch = alive_.watch();
    TaskLimit limit(scheduler_.clock());
    while (watch.alive() && !steps_.empty()) {
      // A copy: the step may start other work, or end its owner.
      const Step step = steps_.front();
      const bool is_over = step(limit);
      if (!watch.alive()) return;
      if (is_over) steps_.pop_front();
      if (!is_over || (limit.IsReached() && !steps_.empty())) return Post();
    }
  }

  void Post() {
    scheduler_.Post(alive_.Guarded([this] { Continue(); }));
  }

  Scheduler& scheduler_;
  std::deque<Step> steps_;
  AliveGuard alive_;
};

}  // namespace volumed
