// EventLoop: one thread that runs posted tasks, timers and descriptor callbacks, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <typeinfo>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "base/timer_queue.h"

namespace volumed {

// What a watchdog needs to know of a loop.
struct LoopHealth {
  Duration longest_task{};  // since the last TakeHealth()
  Duration current_task{};  // how long the task that runs now has been running; zero if none
  uint64_t tasks_run = 0;   // tasks, timers and callbacks, since the start
};

// The function that made a task, by the type of its closure: "Reconciler::Wake" of
// "volumed::Reconciler::Wake()::{lambda()#1}". What was wrapped has the name of the wrapper. A type
// that is no closure gives its own name. Pure; threads: any.
std::string TaskName(const std::type_info& made_as);

// Threads: as each method says; "loop thread" is the one in Run(), or any one before Run(). Timers
// are exact to about a millisecond. A task that throws ends Run() with its exception; what is still
// queued stays queued.
//
// In each round, posted tasks run in the order in which they were posted, for 10 ms at most and
// only those that were there when the round began; then timers that are due, then callbacks of
// descriptors. So none of the three can keep the others waiting for long, but for a single task
// that takes long itself.
class EventLoop {
 public:
  using FdCallback = std::function<void(uint32_t ready_events)>;

  // `clock` outlives the loop. Errors (NotApplied): ResourceExhausted without descriptors to spare.
  static Result<std::unique_ptr<EventLoop>> Create(const Clock& clock);
  // Tasks that have not run are destroyed unrun. REQUIRES: nobody is in Run(). Watched descriptors
  // stay open: they are their owners'.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // The calling thread becomes the loop thread until Stop(). Blocks: yes.
  void Run();
  // Run() returns after the task that runs now. Threads: any, signal handlers excepted. If nobody
  // is in Run(), the next Run() returns at once.
  void Stop();

  // As in Scheduler. Threads: any. Blocks: never. While the loop is being destroyed, Post drops the
  // task and PostAfter returns 0.
  void Post(Task task);
  TimerId PostAfter(Duration delay, Task task);
  bool Cancel(TimerId timer);
  // False on every thread while nobody is in Run().
  bool OnLoopThread() const;

  // Calls `callback` on the loop thread while `fd` is ready for `epoll_events` (EPOLLIN ...;
  // EPOLLERR and EPOLLHUP always). The descriptor stays the caller's, who must call UnwatchFd
  // before closing it. Threads: loop thread. Errors (NotApplied): AlreadyExists for a second watch
  // of the same number, PermissionDenied (EPERM) for a file that cannot be polled.
  Status WatchFd(int fd, uint32_t epoll_events, FdCallback callback);
  // No call of its callback begins after this; it may be called from the callback itself.
  // Threads: loop thread. Nothing happens if there is no such watch.
  void UnwatchFd(int fd);

  // Taking sets the longest task back to zero, so that one watcher alone may ask. Threads: any.
  // Blocks: never.
  LoopHealth TakeHealth();

  // Is called on the loop thread after each task that took `threshold` or longer, with the function
  // that made the task ("Reconciler::Wake") and the time that it took.
  using SlowTaskListener = std::function<void(const std::string& task, Duration took)>;
  // Replaces the listener that was set before; an empty one is called for nothing. Threads: loop
  // thread.
  void SetSlowTaskListener(Duration threshold, SlowTaskListener listener);

 private:
  EventLoop(const Clock& clock, Descriptor epoll, Descriptor wake);

  void Wake();
  void RunPosted() EXCLUDES(mu_);
  void RunDueTimers() EXCLUDES(mu_);
  // How long epoll may wait, in its own milliseconds; from here on Post() must wake the loop.
  int PrepareToWait() EXCLUDES(mu_);
  // Waits until something is ready, then runs callbacks.
  void WaitAndDispatch() EXCLUDES(mu_);
  // `made_as` is the type of what was posted: it names the function that did so.
  void RunObserved(const Task& task, const std::type_info& made_as);

  const Clock& clock_;
  const Descriptor epoll_;
  const Descriptor wake_;

  Mutex mu_;
  std::deque<Task> posted_ GUARDED_BY(mu_);
  TimerQueue timers_ GUARDED_BY(mu_);
  bool waiting_ GUARDED_BY(mu_) = false;  // in epoll_wait, and no wake-up is on its way
  bool closed_ GUARDED_BY(mu_) = false;   // being destroyed: what is posted now is dropped

  // Loop thread only. Epoll events carry the watch's number, not the descriptor: an event that was
  // fetched before its watch went must not reach a new watch of a reused descriptor.
  std::map<uint64_t, std::shared_ptr<FdCallback>> watches_;
  std::map<int, uint64_t> watch_of_fd_;
  uint64_t next_watch_ = 1;
  Duration slow_threshold_{};
  SlowTaskListener slow_listener_;  // may be empty

  std::atomic<bool> stop_{false};
  std::atomic<std::thread::id> loop_thread_{};
  std::atomic<int64_t> task_started_ns_{0};  // 0: none
  std::atomic<int64_t> longest_task_ns_{0};
  std::atomic<uint64_t> tasks_run_{0};
};

}  // namespace volumed
