#include "os/worker_process.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

extern char** environ;

namespace volumed {
namespace {

constexpr int kWorkerSocket = 3;

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  SpawnAttributes() { ::posix_spawnattr_init(&attributes_); }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// The worker gets no descriptor, signal mask or handler of the agent: only its socket, and stderr.
int SpawnWith(const std::vector<std::string>& arguments, int socket, pid_t* pid) {
  SpawnActions actions;
  // First of all, lest one of the others takes the number 3 before it is read.
  ::posix_spawn_file_actions_adddup2(actions.get(), socket, kWorkerSocket);
  ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(actions.get(), kWorkerSocket + 1);

  SpawnAttributes attributes;
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(attributes.get(), &none);
  ::posix_spawnattr_setsigdefault(attributes.get(), &all);
  ::posix_spawnattr_setpgroup(attributes.get(), 0);
  ::posix_spawnattr_setflags(
      attributes.get(), POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  return ::posix_spawn(pid, argv[0], actions.get(), attributes.get(), argv.data(), environ);
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Spawn(
    const std::vector<std::string>& arguments) {
  const std::string what = "start " + arguments[0];
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::FromErrno(errno, what, Outcome::kNotApplied);
  }
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  pid_t pid = -1;
  const int failure = SpawnWith(arguments, theirs.get(), &pid);
  if (failure != 0) return Error::FromErrno(failure, what, Outcome::kNotApplied);
  // Nobody else reaps our children, so the pid cannot have been given away yet.
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int saved = errno;
    ::kill(-pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Error::FromErrno(saved, what, Outcome::kNotApplied);
  }
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(pid, std::move(pidfd), std::move(ours)));
}

void WorkerProcess::Kill() {
  // Not once it is reaped: the number may belong to somebody else then.
  if (how_it_ended_.empty()) ::kill(-pid_, SIGKILL);
}

bool WorkerProcess::WaitForDeath(Duration timeout) {
  if (!how_it_ended_.empty()) return true;
  pollfd wait = {pidfd_.get(), POLLIN, 0};
  const auto nanoseconds = timeout.count();
  const timespec limit = {static_cast<time_t>(nanoseconds / 1000000000),
                          static_cast<long>(nanoseconds % 1000000000)};
  if (::ppoll(&wait, 1, &limit, nullptr) <= 0) return false;
  siginfo_t info = {};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG) != 0) {
    how_it_ended_ = "ended, reaped by somebody else";
    return true;
  }
  if (info.si_pid == 0) return false;
  how_it_ended_ = (info.si_code == CLD_EXITED ? "ended with status " : "killed by signal ") +
                  std::to_string(info.si_status);
  return true;
}

}  // namespace volumed
