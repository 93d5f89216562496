#include "os/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>

#include "base/descriptor.h"

namespace volumed {
namespace {

constexpr char kPath[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";

class SpawnSetup {
 public:
  explicit SpawnSetup(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  int Spawn(const std::vector<std::string>& arguments, pid_t* pid) const {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    std::string path = kPath;
    char* const environment[] = {path.data(), nullptr};
    return ::posix_spawn(pid, argv[0], &actions_, &attributes_, argv.data(), environment);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

void KeepTail(const char* data, size_t size, std::string* output) {
  output->append(data, size);
  if (output->size() > kProgramOutputBytes) {
    output->erase(0, output->size() - kProgramOutputBytes);
  }
}

// Everything that is there now. A daemon that the program left behind may keep the pipe open, so
// its end is not waited for.
void Drain(int fd, std::string* output) {
  std::array<char, 4096> buffer;
  ssize_t got = 0;
  while ((got = ::read(fd, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) KeepTail(buffer.data(), static_cast<size_t>(got), output);
  }
}

int PollTimeout(const Clock& clock, Deadline deadline) {
  if (deadline.infinite()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining(clock)).count();
  return static_cast<int>(std::min<int64_t>(left, INT_MAX));
}

// True once the process has ended; false at the deadline.
bool WaitForEnd(int pidfd, int output_fd, const Clock& clock, Deadline deadline,
                std::string* output) {
  while (true) {
    std::array<pollfd, 2> fds{{{pidfd, POLLIN, 0}, {output_fd, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), PollTimeout(clock, deadline));
    if (ready < 0 && errno == EINTR) continue;
    Drain(output_fd, output);
    if ((fds[0].revents & POLLIN) != 0) return true;
    // Its output is closed: only its end is left to wait for.
    if ((fds[1].revents & POLLHUP) != 0) output_fd = -1;
    if (deadline.Passed(clock)) return false;
  }
}

int Reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<ProgramEnd> RunProgram(const std::vector<std::string>& arguments, const Clock& clock,
                              Deadline deadline) {
  const std::string what = "run " + arguments.at(0);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, what, Outcome::kNotApplied);
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  // Only ours: a program is not made for an output that answers EAGAIN.
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  pid_t pid = -1;
  if (const int failed = SpawnSetup(write_end.get()).Spawn(arguments, &pid); failed != 0) {
    return Error::FromErrno(failed, what, Outcome::kNotApplied);
  }
  write_end = Descriptor();
  const Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ProgramEnd end;
  // Without a pidfd (no descriptors left) its end cannot be awaited with a deadline.
  const bool ended = pidfd.valid() &&
                     WaitForEnd(pidfd.get(), read_end.get(), clock, deadline, &end.output);
  if (!ended) ::kill(-pid, SIGKILL);
  end.exit_status = Reap(pid);
  Drain(read_end.get(), &end.output);
  if (ended) return end;
  return Error::MaybeApplied(Code::kDeadlineExceeded,
                             what + ": not ended at its deadline: " + end.output);
}

}  // namespace volumed
