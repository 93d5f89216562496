#include "os/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/descriptor.h"
#include "os/child_process.h"

namespace volumed {
namespace {

bool HangsUpWithin(int fd, Duration timeout) {
  pollfd wait = {fd, 0, 0};
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  return ::poll(&wait, 1, static_cast<int>(std::max<int64_t>(0, millis))) > 0;
}

class SpawnedWorker final : public WorkerProcess {
 public:
  SpawnedWorker(ChildProcess child, Descriptor life, Descriptor socket)
      : child_(std::move(child)), life_(std::move(life)), channel_(std::move(socket)) {}

  WorkerChannel& channel() override { return channel_; }
  pid_t pid() const override { return child_.pid(); }
  int death_fd() const override { return how_it_ended_.empty() ? child_.pidfd() : life_.get(); }
  void Kill() override { child_.Kill(); }
  bool WaitForDeath(Duration timeout) override;
  const std::string& how_it_ended() const override { return how_it_ended_; }

 private:
  ChildProcess child_;
  const Descriptor life_;
  WorkerChannel channel_;
  std::string how_it_ended_;
};

bool SpawnedWorker::WaitForDeath(Duration timeout) {
  const auto begin = std::chrono::steady_clock::now();
  if (how_it_ended_.empty()) {
    const std::optional<ChildEnd> end = child_.WaitForEnd(timeout);
    if (!end) return false;
    how_it_ended_ =
        (end->exited ? "ended with status " : "killed by signal ") + std::to_string(end->status);
  }
  const Duration spent = std::chrono::steady_clock::now() - begin;
  return HangsUpWithin(life_.get(), timeout - spent);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> SpawnWorker(const std::vector<std::string>& arguments) {
  const std::string what = "start " + arguments[0];
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  Descriptor life(ends[0]);
  const Descriptor their_life(ends[1]);
  ChildSetup setup;
  setup.arguments = arguments;
  // It speaks on its socket alone, and on our stderr.
  setup.descriptors = {-1, -1, STDERR_FILENO, theirs.get(), their_life.get()};
  static_assert(kWorkerSocket == 3 && kWorkerLife == 4);
  setup.own_group = true;
  ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(setup));
  return std::unique_ptr<WorkerProcess>(
      std::make_unique<SpawnedWorker>(std::move(child), std::move(life), std::move(ours)));
}

}  // namespace volumed
