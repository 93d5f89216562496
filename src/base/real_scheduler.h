// RealScheduler: the Scheduler of the running program, on an EventLoop and an Executor.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/executor.h"
#include "base/result.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: any, but for what EventLoop keeps to the control thread.
//
// Destruction waits for nobody. A task of RunBlocking that still runs then (load().busy) goes on in
// its thread and must not touch what is being destroyed, this scheduler included: a program that
// stops with hung volumes ends by _exit(), without destroying its parts.
class RealScheduler final : public Scheduler {
 public:
  // No thread is started yet. Errors (NotApplied): ResourceExhausted without descriptors to spare.
  static Result<std::unique_ptr<RealScheduler>> Create(ExecutorOptions options = {});

  // The calling thread becomes the control thread until Stop(), with more of the processor than
  // others if that is allowed (RLIMIT_NICE): what it does is short, and everybody waits for it.
  // Afterwards the thread has its own nice value again. Blocks: yes.
  void Run();
  // Run() returns after the control task that runs now; what is queued is not run.
  void Stop() { loop_->Stop(); }

  const Clock& clock() const override { return *clock_; }
  void Post(Task task) override { loop_->Post(std::move(task)); }
  TimerId PostAfter(Duration delay, Task task) override {
    return loop_->PostAfter(delay, std::move(task));
  }
  bool Cancel(TimerId timer) override { return loop_->Cancel(timer); }
  // If the machine has no memory for a thread, the task waits, and every 100 ms another thread is
  // tried: that it was queued is certain, so there is no error.
  void RunBlocking(Task task) override;
  bool OnControlThread() const override { return loop_->OnLoopThread(); }

  // The loop lives as long as this; descriptors are watched by it, on the control thread.
  EventLoop& loop() { return *loop_; }

  // For the watchdog. The longest control task since the last call, and the one that runs now.
  LoopHealth TakeHealth() { return loop_->TakeHealth(); }
  // The longest control task since the last call, or the one that runs now if that is longer. It
  // takes the same figures as TakeHealth(): who uses both finds less in each.
  Duration MaxTaskDuration();
  ExecutorLoad load() const { return executor_->load(); }

 private:
  RealScheduler(std::unique_ptr<RealClock> clock, std::unique_ptr<EventLoop> loop,
                ExecutorOptions options);
  void RetryThreads();

  const std::unique_ptr<RealClock> clock_;
  const std::unique_ptr<EventLoop> loop_;
  const std::unique_ptr<Executor> executor_;  // goes first: nothing new is posted to the loop
};

}  // namespace volumed
