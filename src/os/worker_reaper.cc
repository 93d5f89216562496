#include "os/worker_reaper.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace volumed {
namespace {

// How long the end of the program waits for one worker whose socket was closed.
constexpr std::chrono::milliseconds kLastWait(200);

}  // namespace

Result<std::unique_ptr<WorkerReaper>> WorkerReaper::Start(const Clock& clock, Handler handler) {
  Descriptor wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Error::FromErrno(errno, "make an eventfd", Outcome::kNotApplied);
  return std::unique_ptr<WorkerReaper>(
      new WorkerReaper(clock, std::move(handler), std::move(wake)));
}

WorkerReaper::WorkerReaper(const Clock& clock, Handler handler, Descriptor wake)
    : clock_(clock),
      handler_(std::move(handler)),
      wake_(std::move(wake)),
      thread_([this] { Run(); }) {}

WorkerReaper::~WorkerReaper() {
  {
    MutexLock lock(mu_);
    stop_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void WorkerReaper::Add(LostWorker worker) {
  {
    MutexLock lock(mu_);
    added_.push_back(std::move(worker));
  }
  ::eventfd_write(wake_.get(), 1);
}

// Until the next killed worker counts as stuck; -1 for no limit.
int WorkerReaper::PollTimeoutMillis(const std::vector<Watched>& watched) const {
  int64_t earliest = -1;
  const TimePoint now = clock_.Now();
  for (const Watched& one : watched) {
    if (!one.worker.killed || one.stuck) continue;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(one.worker.let_go + kStuckAfter - now);
    const int64_t millis = std::max<int64_t>(0, left.count());
    earliest = earliest < 0 ? millis : std::min(earliest, millis);
  }
  return static_cast<int>(earliest);
}

// Sets `worker.process` to null when it is dead.
void WorkerReaper::Look(Watched& watched) {
  LostWorker& worker = watched.worker;
  if (worker.process->WaitForDeath(Duration::zero())) {
    worker.process.reset();
    if (worker.killed) handler_.dead(worker.operation, watched.stuck);
    return;
  }
  if (worker.killed && !watched.stuck && clock_.Now() >= worker.let_go + kStuckAfter) {
    watched.stuck = true;
    handler_.stuck(worker.operation);
  }
}

// Those that are about to end are waited for, so that no zombie stays.
void WorkerReaper::LeaveToThemselves(std::vector<Watched>& watched) {
  for (Watched& one : watched) {
    one.worker.process->WaitForDeath(one.worker.killed ? Duration::zero() : Duration(kLastWait));
  }
}

void WorkerReaper::Run() {
  std::vector<Watched> watched;
  std::vector<pollfd> polls;
  while (true) {
    bool stop = false;
    {
      MutexLock lock(mu_);
      for (LostWorker& worker : added_) watched.push_back({std::move(worker), false});
      added_.clear();
      stop = stop_;
    }
    if (stop) return LeaveToThemselves(watched);
    polls.assign(1, {wake_.get(), POLLIN, 0});
    for (Watched& one : watched) polls.push_back({one.worker.process->death_fd(), POLLIN, 0});
    ::poll(polls.data(), polls.size(), PollTimeoutMillis(watched));
    eventfd_t ignored = 0;
    if (polls[0].revents != 0) ::eventfd_read(wake_.get(), &ignored);
    for (Watched& one : watched) Look(one);
    watched.erase(std::remove_if(watched.begin(), watched.end(),
                                 [](const Watched& one) { return one.worker.process == nullptr; }),
                  watched.end());
  }
}

}  // namespace volumed
