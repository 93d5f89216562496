// A RealScheduler with its control thread, for tests of what has real sockets.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/real_scheduler.h"

namespace volumed {

class SchedulerThread {
 public:
  SchedulerThread()
      : scheduler_(*RealScheduler::Create()), thread_([this] { scheduler_->Run(); }) {}
  // What is queued is run first, and tasks that they queue.
  ~SchedulerThread() {
    WaitUntilIdle();
    scheduler_->Stop();
    thread_.join();
  }

  RealScheduler& scheduler() { return *scheduler_; }

  // Runs the function on the control thread. Blocks: until it has returned.
  void OnControl(const std::function<void()>& function) {
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    scheduler_->Post([&] {
      function();
      const std::lock_guard lock(mu);
      done = true;
      changed.notify_all();
    });
    std::unique_lock lock(mu);
    changed.wait(lock, [&] { return done; });
  }
  // No executor thread has a task.
  void WaitUntilIdle() {
    for (;;) {
      OnControl([] {});
      const ExecutorLoad load = scheduler_->load();
      if (load.busy == 0 && load.queued == 0) break;
      std::this_thread::yield();
    }
    OnControl([] {});
  }

 private:
  const std::unique_ptr<RealScheduler> scheduler_;
  std::thread thread_;
};

}  // namespace volumed
