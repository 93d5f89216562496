#include "os/paused_start.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"

extern char** environ;

namespace volumed {
namespace {

// Everything that the child needs, made before the fork: it must not allocate.
struct PausedChild {
  std::vector<int> descriptors;  // copies that lie above every number that the child gets
  std::vector<char*> arguments;
  std::vector<char*> environment;
  char** variables = nullptr;
  bool own_group = false;
  int gate = -1;    // a byte: begin; an end: the parent is gone
  int report = -1;  // the errno of an exec that failed; closed by one that did not
};

[[noreturn]] void GiveUp(int report) {
  const int failure = errno;
  const ssize_t written = ::write(report, &failure, sizeof(failure));
  ::_exit(written == sizeof(failure) ? 127 : 126);
}

void ResetSignals() {
  struct sigaction normal = {};
  normal.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &normal, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the child. Source: of what may be called here, signal-safety(7).
[[noreturn]] void RunChild(const PausedChild& child) {
  if (child.own_group) ::setpgid(0, 0);
  char begin = 0;
  ssize_t size = 0;
  do {
    size = ::read(child.gate, &begin, 1);
  } while (size < 0 && errno == EINTR);
  if (size != 1) ::_exit(127);
  ResetSignals();
  int number = 0;
  for (const int descriptor : child.descriptors) {
    if (::dup2(descriptor, number++) < 0) GiveUp(child.report);
  }
  // What remains open ends with the exec.
  ::close_range(static_cast<unsigned>(number), ~0u, CLOSE_RANGE_CLOEXEC);
  ::execve(child.arguments[0], child.arguments.data(), child.variables);
  GiveUp(child.report);
}

Result<Descriptor> Copy(int descriptor, int above) {
  if (descriptor >= 0) {
    return DescriptorFrom(::fcntl(descriptor, F_DUPFD_CLOEXEC, above), "duplicate descriptor");
  }
  ASSIGN_OR_RETURN(const Descriptor null,
                   DescriptorFrom(::open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null"));
  return DescriptorFrom(::fcntl(null.get(), F_DUPFD_CLOEXEC, above), "duplicate descriptor");
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> MakePipe(int above) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error::FromErrno(errno, "pipe", Outcome::kNotApplied);
  }
  const Descriptor first(ends[0]);
  const Descriptor second(ends[1]);
  Pipe made;
  ASSIGN_OR_RETURN(made.read, Copy(first.get(), above));
  ASSIGN_OR_RETURN(made.write, Copy(second.get(), above));
  return made;
}

// 0: the program has begun.
int AwaitExec(int report) {
  int failure = 0;
  ssize_t size = 0;
  do {
    size = ::read(report, &failure, sizeof(failure));
  } while (size < 0 && errno == EINTR);
  return size == sizeof(failure) ? failure : 0;
}

}  // namespace

std::vector<char*> ArgumentPointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> StartPaused(const ChildSetup& setup) {
  const int above = static_cast<int>(setup.descriptors.size()) + STDERR_FILENO + 1;
  std::vector<Descriptor> copies;
  PausedChild child;
  for (const int descriptor : setup.descriptors) {
    ASSIGN_OR_RETURN(Descriptor copy, Copy(descriptor, above));
    child.descriptors.push_back(copy.get());
    copies.push_back(std::move(copy));
  }
  ASSIGN_OR_RETURN(Pipe gate, MakePipe(above));
  ASSIGN_OR_RETURN(Pipe report, MakePipe(above));
  child.arguments = ArgumentPointers(setup.arguments);
  if (setup.environment) child.environment = ArgumentPointers(*setup.environment);
  child.variables = setup.environment ? child.environment.data() : environ;
  child.own_group = setup.own_group;
  child.gate = gate.read.get();
  child.report = report.write.get();
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno(errno, "fork", Outcome::kNotApplied);
  if (pid == 0) {
    // Else it would hold its own gate open, should the parent end.
    ::close(gate.write.get());
    RunChild(child);
  }
  report.write.Reset();
  gate.read.Reset();
  setup.paused(pid);
  const char begin = 1;
  // A child that is gone is noticed by the report.
  const bool told = ::write(gate.write.get(), &begin, 1) == 1;
  const int failure = told ? AwaitExec(report.read.get()) : errno;
  if (failure == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  return Error::FromErrno(failure, "exec", Outcome::kNotApplied);
}

}  // namespace volumed
