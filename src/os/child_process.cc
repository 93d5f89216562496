#include "os/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/paused_start.h"

extern char** environ;

namespace volumed {
namespace {

constexpr char kNull[] = "/dev/null";

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // The copies lie above every number that the child gets, so that no dup2 hits another's source.
  Status Give(const std::vector<int>& descriptors) {
    const int above = static_cast<int>(descriptors.size()) + STDERR_FILENO + 1;
    int number = 0;
    for (const int ours : descriptors) {
      if (ours < 0) {
        ::posix_spawn_file_actions_addopen(&actions_, number, kNull, O_RDWR, 0);
      } else {
        ASSIGN_OR_RETURN(Descriptor copy, DescriptorFrom(::fcntl(ours, F_DUPFD_CLOEXEC, above),
                                                         "duplicate descriptor"));
        ::posix_spawn_file_actions_adddup2(&actions_, copy.get(), number);
        copies_.push_back(std::move(copy));
      }
      ++number;
    }
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, number);
    return OkStatus();
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
  std::vector<Descriptor> copies_;
};

class SpawnAttributes {
 public:
  // A worker ignores SIGPIPE, and what is ignored is inherited.
  explicit SpawnAttributes(bool own_group) {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_group ? POSIX_SPAWN_SETPGROUP : 0);
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<ChildProcess> ChildProcess::Start(const ChildSetup& setup) {
  const std::string what = "start " + setup.arguments.at(0);
  if (setup.paused) {
    ASSIGN_OR_RETURN(const pid_t paused, StartPaused(setup).With(what));
    return Adopt(paused, setup);
  }
  SpawnActions actions;
  RETURN_IF_ERROR(actions.Give(setup.descriptors).With(what));
  const SpawnAttributes attributes(setup.own_group);
  const std::vector<char*> argv = ArgumentPointers(setup.arguments);
  std::vector<char*> variables;
  if (setup.environment) variables = ArgumentPointers(*setup.environment);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, argv[0], actions.get(), attributes.get(), argv.data(),
                                    setup.environment ? variables.data() : environ);
  if (failure != 0) return Error::FromErrno(failure, what, Outcome::kNotApplied);
  return Adopt(pid, setup);
}

Result<ChildProcess> ChildProcess::Adopt(pid_t pid, const ChildSetup& setup) {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    // No descriptors are left: it could not be waited for. It has hardly begun.
    const int saved = errno;
    ::kill(setup.own_group ? -pid : pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return Error::FromErrno(saved, "start " + setup.arguments.at(0), Outcome::kMaybeApplied);
  }
  return ChildProcess(pid, std::move(pidfd), setup.own_group);
}

void ChildProcess::Kill() {
  if (!end_) ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
}

std::optional<ChildEnd> ChildProcess::WaitForEnd(Duration timeout) {
  if (end_) return end_;
  pollfd wait = {pidfd_.get(), POLLIN, 0};
  const auto nanoseconds = timeout.count();
  const timespec limit = {static_cast<time_t>(nanoseconds / 1000000000),
                          static_cast<long>(nanoseconds % 1000000000)};
  if (::ppoll(&wait, 1, &limit, nullptr) <= 0) return std::nullopt;
  siginfo_t info = {};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG) != 0) {
    end_ = ChildEnd{true, -1};
  } else if (info.si_pid != 0) {
    end_ = ChildEnd{info.si_code == CLD_EXITED, info.si_status};
  }
  return end_;
}

}  // namespace volumed
