#include "os/device_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace volumed {
namespace {

constexpr char kStarting[] = "start a keeper of a device";
constexpr char kKeeps = 'k';

// It must outlive its worker, whose group it has left, and is small. That the kernel spares it is
// not asked for: one that may not have it still keeps.
void StandApart() {
  ::prctl(PR_SET_NAME, "volumed-keeper");
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  constexpr std::string_view kNever = "-1000";
  if (score >= 0) (void)!::write(score, kNever.data(), kNever.size());
  if (score >= 0) ::close(score);
}

// Other threads may have held locks when the child was made, so it makes system calls alone.
[[noreturn]] void KeepAndEnd(int socket, int device) {
  constexpr int kSocket = 0;
  constexpr int kDevice = 1;
  const bool has_both = ::dup2(socket, kSocket) >= 0 && ::dup2(device, kDevice) >= 0;
  if (!has_both || ::close_range(kDevice + 1, ~0U, 0) != 0) ::_exit(1);
  StandApart();
  char letter = kKeeps;
  if (::send(kSocket, &letter, 1, MSG_NOSIGNAL) != 1) ::_exit(1);
  while (::read(kSocket, &letter, 1) < 0 && errno == EINTR) {
  }
  // Before the socket, whose end says that it is closed.
  ::close(kDevice);
  ::_exit(0);
}

// The process that is to keep is nobody's child, so that nobody has to wait for it.
[[noreturn]] void StartKeeper(int socket, int device) {
  ::setpgid(0, 0);
  const pid_t keeper = ::_Fork();
  if (keeper == 0) KeepAndEnd(socket, device);
  ::_exit(keeper > 0 ? 0 : 1);
}

bool IsClosedWithin(int socket, std::chrono::milliseconds patience) {
  pollfd polled = {socket, 0, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

Result<Descriptor> KeepDeviceOpen(Descriptor device) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::FromErrno(errno, kStarting, Outcome::kNotApplied);
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno(errno, kStarting, Outcome::kNotApplied);
  if (pid == 0) StartKeeper(theirs.get(), device.get());
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  // Until it keeps the device it has all that this process has open, and keeps mounts busy.
  theirs.Reset();
  char letter = 0;
  while (::read(ours.get(), &letter, 1) < 0 && errno == EINTR) {
  }
  if (letter == kKeeps) return ours;
  return Error::NotApplied(Code::kUnavailable, std::string(kStarting) + ": it has ended");
}

bool IsDeviceKept(const Descriptor& keeper) {
  return !keeper.valid() || !IsClosedWithin(keeper.get(), std::chrono::milliseconds(0));
}

bool LetDeviceGo(const Descriptor& keeper, Duration patience) {
  if (!keeper.valid()) return true;
  ::shutdown(keeper.get(), SHUT_WR);
  return IsClosedWithin(keeper.get(), std::chrono::ceil<std::chrono::milliseconds>(patience));
}

}  // namespace volumed
