#include "base/executor.h"

#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_nice.h"

namespace volumed {

struct Executor::State {
  explicit State(ExecutorOptions given) : options(given) {}

  // A thread without work.
  struct Waiter {
    CondVar work_or_stop;
    bool is_called = false;
  };

  const ExecutorOptions options;
  const int nice = ThreadNice();
  Mutex mu;
  std::deque<Task> queue GUARDED_BY(mu);
  // Who came last is called first: in turn, all threads of a busy hour would stay for as long as
  // there is work now and then.
  std::vector<Waiter*> waiting GUARDED_BY(mu);
  size_t threads GUARDED_BY(mu) = 0;
  size_t idle GUARDED_BY(mu) = 0;      // without a task, and called or not
  size_t starting GUARDED_BY(mu) = 0;  // made, and not yet looking for a task
  size_t busy GUARDED_BY(mu) = 0;
  bool stopping GUARDED_BY(mu) = false;

  // For a thread: its next task, or nothing; then it is no longer counted and must end.
  std::optional<Task> NextOrLeave() EXCLUDES(mu);
  void WaitForWork(Duration limit) REQUIRES(mu);
  void CallOne() REQUIRES(mu);
  bool NeedsThread() const REQUIRES(mu) {
    return queue.size() > idle + starting && threads < options.max_threads && !stopping;
  }
};

std::optional<Task> Executor::State::NextOrLeave() {
  const auto deadline = std::chrono::steady_clock::now() + options.idle_timeout;
  MutexLock lock(mu);
  while (queue.empty() && !stopping) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) break;
    WaitForWork(left);
  }
  if (queue.empty()) {
    --threads;
    return std::nullopt;
  }
  std::optional<Task> task(std::move(queue.front()));
  queue.pop_front();
  ++busy;
  return task;
}

// Returns also without work.
void Executor::State::WaitForWork(Duration limit) {
  Waiter self;
  waiting.push_back(&self);
  ++idle;
  self.work_or_stop.WaitFor(mu, limit);
  --idle;
  if (!self.is_called) std::erase(waiting, &self);
}

void Executor::State::CallOne() {
  if (waiting.empty()) return;
  Waiter& last = *waiting.back();
  waiting.pop_back();
  last.is_called = true;
  last.work_or_stop.NotifyOne();  // with the mutex held: it is gone once it wakes
}

namespace {

// A thread that nobody joins. 0 or an errno.
int StartDetached(size_t stack_bytes, void* (*main)(void*), void* argument) {
  pthread_attr_t attributes;
  if (const int failed = ::pthread_attr_init(&attributes); failed != 0) return failed;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const size_t smallest = static_cast<size_t>(PTHREAD_STACK_MIN);
  int failed = ::pthread_attr_setstacksize(&attributes, std::max(stack_bytes, smallest));
  pthread_t thread;
  if (failed == 0) failed = ::pthread_create(&thread, &attributes, main, argument);
  ::pthread_attr_destroy(&attributes);
  return failed;
}

}  // namespace

Executor::Executor(ExecutorOptions options) : state_(std::make_shared<State>(options)) {}

Executor::~Executor() {
  std::deque<Task> dropped;  // destroyed without the lock
  MutexLock lock(state_->mu);
  state_->stopping = true;
  dropped.swap(state_->queue);
  for (State::Waiter* one : state_->waiting) one->work_or_stop.NotifyOne();
}

Status Executor::Submit(Task task) {
  {
    MutexLock lock(state_->mu);
    state_->queue.push_back(std::move(task));
    state_->CallOne();
  }
  return StartThreads();
}

Status Executor::StartThreads() {
  for (;;) {
    {
      MutexLock lock(state_->mu);
      if (!state_->NeedsThread()) return OkStatus();
      ++state_->threads;
      ++state_->starting;
    }
    // The thread owns this until it has taken its share of the state.
    auto share = std::make_unique<std::shared_ptr<State>>(state_);
    const int failed = StartDetached(state_->options.stack_bytes, &ThreadMain, share.get());
    if (failed != 0) {
      MutexLock lock(state_->mu);
      --state_->threads;
      --state_->starting;
      // pthread_create says EAGAIN for want of memory, address space or process numbers alike.
      return Error::FromParts(Code::kResourceExhausted, Outcome::kMaybeApplied, failed,
                              "start an executor thread: " + ErrnoName(failed));
    }
    static_cast<void>(share.release());
  }
}

void* Executor::ThreadMain(void* argument) {
  const std::unique_ptr<std::shared_ptr<State>> share(
      static_cast<std::shared_ptr<State>*>(argument));
  // Not that of the control thread, which may have started this one; nor may a worker get it.
  SetThreadNice((*share)->nice);
  Work(**share);
  return nullptr;
}

void Executor::Work(State& state) {
  {
    MutexLock lock(state.mu);
    --state.starting;
  }
  while (std::optional<Task> task = state.NextOrLeave()) {
    (*task)();
    // Destroyed while still busy: what it captured may take time to let go.
    task.reset();
    MutexLock lock(state.mu);
    --state.busy;
  }
}

ExecutorLoad Executor::load() const {
  MutexLock lock(state_->mu);
  return ExecutorLoad{state_->threads, state_->busy, state_->queue.size()};
}

}  // namespace volumed
