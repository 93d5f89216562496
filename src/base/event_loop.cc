#include "base/event_loop.h"

#include <cxxabi.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace volumed {
namespace {

constexpr uint64_t kWakeWatch = 0;
constexpr size_t kMaxEvents = 64;

// Of posted tasks, before timers and descriptors have their turn again.
constexpr Duration kLongestRound = std::chrono::milliseconds(10);

int64_t Nanos(TimePoint when) { return when.time_since_epoch().count(); }

void EraseAll(std::string& text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    text.erase(at, part.size());
  }
}

}  // namespace

std::string TaskName(const std::type_info& made_as) {
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> whole(
      abi::__cxa_demangle(made_as.name(), nullptr, nullptr, &failed), &std::free);
  std::string name = failed == 0 ? whole.get() : made_as.name();
  EraseAll(name, "(anonymous namespace)::");
  EraseAll(name, "volumed::");
  name.resize(std::min(name.size(), name.find('(')));
  // Template arguments say nothing that the function's name does not.
  int depth = 0;
  std::erase_if(name, [&depth](char c) {
    if (c == '<') ++depth;
    return depth > 0 && (c != '>' || depth-- > 0);
  });
  return name;
}

Result<std::unique_ptr<EventLoop>> EventLoop::Create(const Clock& clock) {
  ASSIGN_OR_RETURN(Descriptor epoll,
                   DescriptorFrom(::epoll_create1(EPOLL_CLOEXEC), "make an epoll instance"));
  ASSIGN_OR_RETURN(Descriptor wake,
                   DescriptorFrom(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "make an eventfd"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWakeWatch;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) < 0) {
    return Error::FromErrno(errno, "watch the wake-up eventfd", Outcome::kNotApplied);
  }
  return std::unique_ptr<EventLoop>(new EventLoop(clock, std::move(epoll), std::move(wake)));
}

EventLoop::EventLoop(const Clock& clock, Descriptor epoll, Descriptor wake)
    : clock_(clock), epoll_(std::move(epoll)), wake_(std::move(wake)) {}

EventLoop::~EventLoop() {
  std::deque<Task> posted;
  TimerQueue timers;
  {
    MutexLock lock(mu_);
    closed_ = true;
    posted.swap(posted_);
    std::swap(timers, timers_);
  }
  // The tasks are destroyed here, without the lock: what they own may call Post or Cancel.
}

void EventLoop::Run() {
  loop_thread_.store(std::this_thread::get_id());
  // Also when a task throws: nobody is on the loop thread afterwards.
  struct Leave {
    EventLoop& loop;
    ~Leave() {
      loop.task_started_ns_.store(0);
      loop.loop_thread_.store(std::thread::id());
      loop.stop_.store(false);
    }
  } leave{*this};
  while (!stop_.load()) {
    RunPosted();
    RunDueTimers();
    if (stop_.load()) break;
    WaitAndDispatch();
  }
}

void EventLoop::Stop() {
  stop_.store(true);
  Wake();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  // The only possible failure is EAGAIN of a full counter, which wakes as well.
  [[maybe_unused]] const ssize_t count = ::write(wake_.get(), &one, sizeof(one));
}

bool EventLoop::OnLoopThread() const { return loop_thread_.load() == std::this_thread::get_id(); }

void EventLoop::Post(Task task) {
  {
    MutexLock lock(mu_);
    if (closed_) return;
    posted_.push_back(std::move(task));
    if (!waiting_) return;
    waiting_ = false;
  }
  Wake();
}

TimerId EventLoop::PostAfter(Duration delay, Task task) {
  TimerId timer = 0;
  {
    MutexLock lock(mu_);
    if (closed_) return 0;
    timer = timers_.Add(clock_.Now(), delay, std::move(task));
    if (!waiting_) return timer;
    waiting_ = false;
  }
  Wake();
  return timer;
}

bool EventLoop::Cancel(TimerId timer) {
  std::optional<Task> cancelled;  // destroyed without the lock
  MutexLock lock(mu_);
  cancelled = timers_.Remove(timer);
  return cancelled.has_value();
}

void EventLoop::RunPosted() {
  // Only what is there now: a task that posts itself must not keep timers and descriptors waiting.
  // Nor must many that are posted at once.
  const TimePoint end = clock_.Now() + kLongestRound;
  size_t batch = 0;
  {
    MutexLock lock(mu_);
    batch = posted_.size();
  }
  for (; batch > 0 && !stop_.load(); --batch) {
    Task task;
    {
      MutexLock lock(mu_);
      task = std::move(posted_.front());
      posted_.pop_front();
    }
    RunObserved(task, task.target_type());
    if (clock_.Now() >= end) return;
  }
}

void EventLoop::RunDueTimers() {
  const TimePoint now = clock_.Now();
  while (!stop_.load()) {
    std::optional<TimerQueue::Due> due;
    {
      MutexLock lock(mu_);
      due = timers_.PopDue(now);
    }
    if (!due) return;
    RunObserved(due->task, due->task.target_type());
  }
}

int EventLoop::PrepareToWait() {
  MutexLock lock(mu_);
  if (!posted_.empty()) return 0;
  waiting_ = true;
  const std::optional<TimePoint> due = timers_.NextDue();
  if (!due) return -1;
  const Duration left = *due - clock_.Now();
  if (left <= Duration::zero()) return 0;
  // Rounded up: waking too early would spin until the time has come.
  const int64_t milliseconds = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max()));
}

void EventLoop::WaitAndDispatch() {
  std::array<epoll_event, kMaxEvents> events;
  const int timeout_ms = PrepareToWait();
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), timeout_ms);
  {
    MutexLock lock(mu_);
    waiting_ = false;
  }
  // EINTR is the only failure that a valid epoll descriptor has; the loop comes round again.
  for (int i = 0; i < count && !stop_.load(); ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    // epoll_event is packed: nothing may refer to the number in it.
    const uint64_t watch = event.data.u64;
    if (watch == kWakeWatch) {
      uint64_t counter = 0;
      [[maybe_unused]] const ssize_t size = ::read(wake_.get(), &counter, sizeof(counter));
      continue;
    }
    const auto found = watches_.find(watch);
    if (found == watches_.end()) continue;
    // Held here, because the callback may unwatch itself.
    const std::shared_ptr<FdCallback> callback = found->second;
    RunObserved([&callback, ready = uint32_t{event.events}] { (*callback)(ready); },
                callback->target_type());
  }
}

Status EventLoop::WatchFd(int fd, uint32_t epoll_events, FdCallback callback) {
  const std::string what = "watch descriptor " + std::to_string(fd);
  if (watch_of_fd_.contains(fd)) {
    return Error::NotApplied(Code::kAlreadyExists, what + ": already watched");
  }
  const uint64_t watch = next_watch_++;
  epoll_event event{};
  event.events = epoll_events;
  event.data.u64 = watch;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  watches_.emplace(watch, std::make_shared<FdCallback>(std::move(callback)));
  watch_of_fd_.emplace(fd, watch);
  return OkStatus();
}

void EventLoop::UnwatchFd(int fd) {
  const auto found = watch_of_fd_.find(fd);
  if (found == watch_of_fd_.end()) return;
  // Fails only for a descriptor that was closed too early, and then there is nothing to remove.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(found->second);
  watch_of_fd_.erase(found);
}

void EventLoop::SetSlowTaskListener(Duration threshold, SlowTaskListener listener) {
  slow_threshold_ = threshold;
  slow_listener_ = std::move(listener);
}

void EventLoop::RunObserved(const Task& task, const std::type_info& made_as) {
  const int64_t start = Nanos(clock_.Now());
  task_started_ns_.store(start);
  task();
  task_started_ns_.store(0);
  tasks_run_.fetch_add(1);
  const int64_t took = Nanos(clock_.Now()) - start;
  int64_t longest = longest_task_ns_.load();
  while (took > longest && !longest_task_ns_.compare_exchange_weak(longest, took)) {
  }
  if (slow_listener_ && took >= Nanos(TimePoint(slow_threshold_))) {
    slow_listener_(TaskName(made_as), Duration(took));
  }
}

LoopHealth EventLoop::TakeHealth() {
  LoopHealth health;
  health.longest_task = Duration(longest_task_ns_.exchange(0));
  health.tasks_run = tasks_run_.load();
  if (const int64_t start = task_started_ns_.load(); start != 0) {
    health.current_task = Duration(std::max<int64_t>(0, Nanos(clock_.Now()) - start));
  }
  return health;
}

}  // namespace volumed
