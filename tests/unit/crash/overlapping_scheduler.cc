#include "unit/crash/overlapping_scheduler.h"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace volumed {
namespace {

// One of so many suspended tasks stays behind for some steps of the others, and one for some time:
// its effect is slow.
constexpr uint64_t kStaysBehind = 8;
constexpr uint64_t kMaxStepsBehind = 120;
constexpr uint64_t kIsSlow = 60;
constexpr uint64_t kMaxSlowMillis = 3000;

}  // namespace

OverlappingScheduler::OverlappingScheduler(SimulatedScheduler& scheduler,
                                           std::optional<OverlapSchedule> overlap)
    : scheduler_(scheduler), overlap_(std::move(overlap)), random_(overlap_ ? overlap_->seed : 0) {
  // Many switches find what takes many; few find what takes one at the right place.
  constexpr uint64_t kOneIn[] = {1, 2, 4, 16};
  one_in_ = kOneIn[random_() % 4];
}

OverlappingScheduler::~OverlappingScheduler() { EndTasks(); }

void OverlappingScheduler::RunBlocking(Task task) {
  if (!overlap_) return scheduler_.RunBlocking(std::move(task));
  const auto running = std::make_shared<HandOverThread>(std::move(task), overlap_->title);
  tasks_.push_back(running);
  scheduler_.RunBlocking([this, running] { Continue(running); });
}

void OverlappingScheduler::Continue(const Running& task) {
  if (last_ != task) ++switches_;
  last_ = task;
  running_ = task;
  struct Stopped {
    Running& running;
    ~Stopped() { running = nullptr; }
  } stopped{running_};
  if (task->Resume()) {
    std::erase(tasks_, task);
  } else if (std::exchange(waits_, false)) {
    waiting_.push_back(task);
    return;
  } else {
    ContinueLater(task);
  }
  ContinueWaiting();
}

void OverlappingScheduler::ContinueWaiting() {
  for (const Running& task : std::exchange(waiting_, {})) ContinueAfter(task, 0);
}

void OverlappingScheduler::ContinueLater(const Running& task) {
  if (std::exchange(is_slow_, false)) {
    const std::chrono::milliseconds slow(1 + random_() % kMaxSlowMillis);
    scheduler_.PostAfter(slow, [this, task] { ContinueAfter(task, 0); });
    return;
  }
  ContinueAfter(task, OneIn(kStaysBehind) ? random_() % kMaxStepsBehind : 0);
}

void OverlappingScheduler::ContinueAfter(const Running& task, uint64_t steps) {
  scheduler_.RunBlocking([this, task, steps] {
    if (steps == 0) return Continue(task);
    ContinueAfter(task, steps - 1);
  });
}

void OverlappingScheduler::SwitchPoint() {
  if (running_ == nullptr || !OneIn(one_in_)) return;
  is_slow_ = OneIn(kIsSlow);
  // Else nobody is there who could run instead.
  if (!is_slow_ && !scheduler_.HasReady()) return;
  // `running_` is another one's by the time that this one goes on.
  const Running self = running_;
  self->Suspend();
}

void OverlappingScheduler::AwaitOthers() {
  if (running_ == nullptr || tasks_.size() == 1) {
    throw std::logic_error("a task waits for another one, and none is there");
  }
  waits_ = true;
  const Running self = running_;
  self->Suspend();
}

void OverlappingScheduler::EndTasks() {
  waiting_.clear();
  // Those who wait in the scheduler have them too.
  for (const Running& task : std::exchange(tasks_, {})) task->End();
}

}  // namespace volumed
