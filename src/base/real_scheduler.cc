#include "base/real_scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_nice.h"

namespace volumed {
namespace {

constexpr Duration kThreadRetry = std::chrono::milliseconds(100);
// In a burst of devices, a dozen processes of udevd compete with the one thread that answers.
constexpr int kControlNice = -10;

}  // namespace

Result<std::unique_ptr<RealScheduler>> RealScheduler::Create(ExecutorOptions options) {
  auto clock = std::make_unique<RealClock>();
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Create(*clock));
  return std::unique_ptr<RealScheduler>(
      new RealScheduler(std::move(clock), std::move(loop), options));
}

RealScheduler::RealScheduler(std::unique_ptr<RealClock> clock, std::unique_ptr<EventLoop> loop,
                             ExecutorOptions options)
    : clock_(std::move(clock)),
      loop_(std::move(loop)),
      executor_(std::make_unique<Executor>(options)) {}

void RealScheduler::Run() {
  const int usual = ThreadNice();
  SetThreadNice(usual + kControlNice);
  loop_->Run();
  SetThreadNice(usual);
}

void RealScheduler::RunBlocking(Task task) {
  // The task is queued either way; without a thread it waits until there is memory for one.
  if (!executor_->Submit(std::move(task)).ok()) PostAfter(kThreadRetry, [this] { RetryThreads(); });
}

void RealScheduler::RetryThreads() {
  if (!executor_->StartThreads().ok()) PostAfter(kThreadRetry, [this] { RetryThreads(); });
}

Duration RealScheduler::MaxTaskDuration() {
  const LoopHealth health = TakeHealth();
  return std::max(health.longest_task, health.current_task);
}

}  // namespace volumed
