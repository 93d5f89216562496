// FakeWorkers: worker processes that answer, hang, die or answer late as a test says, without any
// process: each is a thread that speaks the worker's own protocol on a socket.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/result.h"
#include "os/worker_codec.h"
#include "os/worker_process.h"

namespace volumed {

enum class WorkerMood {
  kAnswers,
  kReportsProgress,    // once, and then hangs
  kHangs,              // dies when it is killed
  kHangsInTheKernel,   // does not die when it is killed, until the world heals
  kAnswersWhenKilled,  // its answer is on its way when the signal comes
  kDiesWithItsRequest,
  kDiesAtItsStart,
};

// Threads: any.
class FakeWorkers {
 public:
  // What workers do with requests that they get from now on.
  void SetMood(WorkerMood mood) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    mood_ = mood;
  }
  void FailToStart(bool fail) EXCLUDES(mu_) {
    MutexLock lock(mu_);
    fails_ = fail;
  }
  // Those that wait for a request end.
  void EndIdle() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  // Whatever hangs lets go: those that were killed die, the others answer.
  void Heal() EXCLUDES(mu_) {
    MutexLock lock(mu_);
    mood_ = WorkerMood::kAnswers;
    ++healed_;
    changed_.NotifyAll();
  }
  WorkerStarter starter() {
    return [this](const std::string&) { return Start(); };
  }

  int started() const EXCLUDES(mu_) { return Get(&FakeWorkers::started_); }
  int alive() const EXCLUDES(mu_) { return Get(&FakeWorkers::alive_); }
  int most_alive() const EXCLUDES(mu_) { return Get(&FakeWorkers::most_alive_); }
  // Requests that a worker has taken.
  int taken() const EXCLUDES(mu_) { return Get(&FakeWorkers::taken_); }
  std::optional<Duration> last_time_left() const EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return last_time_left_;
  }

 private:
  class Worker;

  int Get(int FakeWorkers::*number) const EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return this->*number;
  }
  Result<std::unique_ptr<WorkerProcess>> Start() EXCLUDES(mu_);

  mutable Mutex mu_;
  CondVar changed_;
  WorkerMood mood_ GUARDED_BY(mu_) = WorkerMood::kAnswers;
  bool fails_ GUARDED_BY(mu_) = false;
  int healed_ GUARDED_BY(mu_) = 0;
  int started_ GUARDED_BY(mu_) = 0;
  int alive_ GUARDED_BY(mu_) = 0;
  int most_alive_ GUARDED_BY(mu_) = 0;
  int taken_ GUARDED_BY(mu_) = 0;
  std::optional<Duration> last_time_left_ GUARDED_BY(mu_);
  std::set<int> sockets_ GUARDED_BY(mu_);  // the workers' ends
};

class FakeWorkers::Worker final : public WorkerProcess {
 public:
  Worker(FakeWorkers& world, int pid, Descriptor ours, Descriptor theirs, Descriptor life,
         Descriptor their_life)
      : world_(world),
        pid_(pid),
        channel_(std::move(ours)),
        life_(std::move(life)),
        thread_([this, theirs = std::move(theirs), their_life = std::move(their_life)]() mutable {
          Live(std::move(theirs), their_life);
        }) {}
  ~Worker() override {
    channel_.Close();
    Kill();
    thread_.join();
  }

  WorkerChannel& channel() override { return channel_; }
  pid_t pid() const override { return pid_; }
  int death_fd() const override { return life_.get(); }
  void Kill() override {
    MutexLock lock(world_.mu_);
    killed_ = true;
    world_.changed_.NotifyAll();
  }
  bool WaitForDeath(Duration timeout) override {
    const TimePoint until = RealClock().Now() + timeout;
    MutexLock lock(world_.mu_);
    while (!dead_) {
      const Duration left = until - RealClock().Now();
      if (left <= Duration::zero()) return false;
      world_.changed_.WaitFor(world_.mu_, left);
    }
    how_it_ended_ = killed_ ? "killed by signal 9" : "ended with status 0";
    return true;
  }
  const std::string& how_it_ended() const override { return how_it_ended_; }

 private:
  void Live(Descriptor socket, Descriptor& life) {
    const int number = socket.get();
    {
      WorkerChannel channel(std::move(socket));
      while (number >= 0) {
        Result<std::optional<WorkerMessage>> message = channel.Receive(true);
        if (!message.ok() || !message->has_value()) break;
        if ((*message)->kind != MessageKind::kBody) continue;
        if (!Serve((*message)->body, channel)) break;
      }
      MutexLock lock(world_.mu_);
      world_.sockets_.erase(number);
    }
    MutexLock lock(world_.mu_);
    dead_ = true;
    --world_.alive_;
    life.Reset();
    world_.changed_.NotifyAll();
  }

  // False: it dies.
  bool Serve(const std::string& body, WorkerChannel& channel) {
    const Result<WorkerRequest> request = DecodeRequest(body);
    WorkerMood mood;
    int healed = 0;
    {
      MutexLock lock(world_.mu_);
      ++world_.taken_;
      world_.last_time_left_ = request.ok() ? request->time_left : std::nullopt;
      mood = world_.mood_;
      healed = world_.healed_;
      world_.changed_.NotifyAll();
    }
    const auto answer = [&] {
      return channel.Send(MessageKind::kBody, EncodeAnswer(Result<AnyAnswer>(AnyAnswer(FsInfo()))))
          .ok();
    };
    if (mood == WorkerMood::kAnswers) return answer();
    if (mood == WorkerMood::kDiesWithItsRequest) return false;
    if (mood == WorkerMood::kReportsProgress) (void)channel.Send(MessageKind::kProgress, "1").ok();
    const bool in_kernel = mood == WorkerMood::kHangsInTheKernel;
    bool killed = false;
    {
      MutexLock lock(world_.mu_);
      while (world_.healed_ == healed && (in_kernel || !killed_)) world_.changed_.Wait(world_.mu_);
      killed = killed_;
    }
    if (killed && mood != WorkerMood::kAnswersWhenKilled) return false;
    return answer() && !killed;
  }

  FakeWorkers& world_;
  const int pid_;
  WorkerChannel channel_;
  const Descriptor life_;
  bool killed_ = false;  // both guarded by the world's lock
  bool dead_ = false;
  std::string how_it_ended_;
  std::thread thread_;
};

inline Result<std::unique_ptr<WorkerProcess>> FakeWorkers::Start() {
  int sockets[2];
  int life[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 || ::pipe(life) != 0) {
    return Error::FromErrno(errno, "make a fake worker", Outcome::kNotApplied);
  }
  Descriptor ours(sockets[0]);
  Descriptor theirs(sockets[1]);
  Descriptor our_life(life[0]);
  Descriptor their_life(life[1]);
  MutexLock lock(mu_);
  if (fails_) return Error::FromErrno(EAGAIN, "start a fake worker", Outcome::kNotApplied);
  most_alive_ = std::max(most_alive_, ++alive_);
  if (mood_ == WorkerMood::kDiesAtItsStart) {
    theirs.Reset();
  } else {
    sockets_.insert(theirs.get());
  }
  return std::unique_ptr<WorkerProcess>(
      std::make_unique<Worker>(*this, 1000 + started_++, std::move(ours), std::move(theirs),
                               std::move(our_life), std::move(their_life)));
}

}  // namespace volumed
