#include "os/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
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
  SpawnedWorker(ChildProcess child, Descriptor life, Descriptor socket,
                std::optional<WorkerKeys> keys)
      : child_(std::move(child)),
        life_(std::move(life)),
        channel_(std::move(socket)),
        keys_(std::move(keys)) {}

  WorkerChannel& channel() override { return channel_; }
  pid_t pid() const override { return child_.pid(); }
  WorkerKeys* keys() override { return keys_ ? &*keys_ : nullptr; }
  int death_fd() const override { return how_it_ended_.empty() ? child_.pidfd() : life_.get(); }
  void Kill() override { child_.Kill(); }
  bool WaitForDeath(Duration timeout) override;
  const std::string& how_it_ended() const override { return how_it_ended_; }

 private:
  ChildProcess child_;
  const Descriptor life_;
  WorkerChannel channel_;
  std::optional<WorkerKeys> keys_;
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
  if (!HangsUpWithin(life_.get(), timeout - spent)) return false;
  if (keys_) keys_->RemoveFile();
  return true;
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> SpawnWorker(const std::vector<std::string>& arguments,
                                                   const std::string& key_directory) {
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
  std::optional<WorkerKeys> keys;
  if (!key_directory.empty()) {
    ASSIGN_OR_RETURN(WorkerKeys made, WorkerKeys::Create(key_directory));
    keys.emplace(std::move(made));
  }
  ChildSetup setup;
  setup.arguments = arguments;
  // It speaks on its socket alone, and on our stderr.
  setup.descriptors = {
      -1, -1, STDERR_FILENO, theirs.get(), their_life.get(), keys ? keys->lock() : -1};
  static_assert(kWorkerSocket == 3 && kWorkerLife == 4 && kWorkerKeys == 5);
  setup.own_group = true;
  Result<ChildProcess> child = ChildProcess::Start(setup);
  if (!child.ok()) {
    if (keys) keys->RemoveFile();
    return child.error();
  }
  if (keys) keys->CloseLock();
  return std::unique_ptr<WorkerProcess>(std::make_unique<SpawnedWorker>(
      *std::move(child), std::move(life), std::move(ours), std::move(keys)));
}

}  // namespace volumed
