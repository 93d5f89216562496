#include "os/thawer.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "os/freeze_point.h"

namespace volumed {
namespace {

constexpr char kStarting[] = "start a thawer";

using SteadyClock = std::chrono::steady_clock;

// What it finds at its start.
constexpr int kSocket = 3;
constexpr int kRoot = 4;

constexpr char kReady = 'r';
constexpr char kFreeze = 'f';
constexpr char kDone = 'd';
constexpr char kKept = 'k';
constexpr char kThawed = 't';

constexpr std::chrono::seconds kStartLimit{5};
constexpr std::chrono::seconds kEndLimit{1};
// A freeze that waits for writers cannot be thawed yet, and does not make the thaw wait either.
constexpr std::chrono::milliseconds kRetry{5};

bool Send(int socket, char letter) { return ::send(socket, &letter, 1, MSG_NOSIGNAL) == 1; }

// Nothing if the other end is closed, or has said nothing in time.
std::optional<char> Receive(int socket, std::optional<Duration> limit) {
  const SteadyClock::time_point end = SteadyClock::now() + limit.value_or(Duration::zero());
  pollfd wait = {socket, POLLIN, 0};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - SteadyClock::now());
    const int timeout = limit ? static_cast<int>(std::max<int64_t>(0, left.count())) : -1;
    const int ready = ::poll(&wait, 1, timeout);
    if (ready < 0 && errno == EINTR) continue;
    char letter = 0;
    if (ready <= 0 || ::recv(socket, &letter, 1, 0) != 1) return std::nullopt;
    return letter;
  }
}

// Whether there is a letter, or the end, within the time.
bool Hears(std::optional<Duration> limit) {
  pollfd wait = {kSocket, POLLIN, 0};
  const auto millis = [&] {
    return std::chrono::ceil<std::chrono::milliseconds>(std::max(*limit, Duration::zero())).count();
  };
  return ::poll(&wait, 1, limit ? static_cast<int>(millis()) : -1) > 0;
}

// It must outlive its worker's group, and the memory that frozen writes pile up. Neither is asked
// for: one that may not have it still watches.
void StandApart() {
  ::prctl(PR_SET_NAME, "volumed-thawer");
  ::setsid();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const Descriptor score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kNever = "-1000";
  if (score.valid()) (void)!::write(score.get(), kNever.data(), kNever.size());
}

}  // namespace

Result<Thawer> Thawer::Start(const std::string& program, int root, Duration longest) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::FromErrno(errno, kStarting, Outcome::kNotApplied);
  }
  Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ChildSetup setup;
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(longest);
  setup.arguments = {program, kThawArgument + std::to_string(limit.count())};
  setup.descriptors = {-1, -1, STDERR_FILENO, theirs.get(), root};
  static_assert(kSocket == 3 && kRoot == 4);
  Result<ChildProcess> child = ChildProcess::Start(setup);
  if (!child.ok()) {
    return Error::NotApplied(Code::kUnavailable,
                             std::string(kStarting) + ": " + child.error().message());
  }
  theirs.Reset();
  return Thawer(std::move(ours), *std::move(child));
}

Status Thawer::AwaitReady() {
  if (Receive(socket_.get(), kStartLimit) == kReady) return OkStatus();
  child_.Kill();
  return Error::NotApplied(Code::kUnavailable,
                           std::string(kStarting) + ": it does not begin to watch");
}

Thawer::~Thawer() {
  if (!socket_.valid()) return;
  socket_.Reset();
  child_.WaitForEnd(kEndLimit);
}

Status Thawer::BeginFreeze() {
  if (Send(socket_.get(), kFreeze)) return OkStatus();
  return Error::NotApplied(Code::kUnavailable, "the thawer has died");
}

bool Thawer::End() {
  return Send(socket_.get(), kDone) && Receive(socket_.get(), std::nullopt) == kKept;
}

int RunThawer(Duration longest) {
  StandApart();
  if (!Send(kSocket, kReady) || Receive(kSocket, std::nullopt) != kFreeze) return 0;
  const SteadyClock::time_point end = SteadyClock::now() + longest;
  bool thawed = false;
  std::optional<Duration> wait = longest;
  while (!Hears(wait)) {
    if (wait && SteadyClock::now() < end) {
      wait = end - SteadyClock::now();
      continue;
    }
    thawed = thawed || ThawFrozen(kRoot) == 0;
    wait = thawed ? std::nullopt : std::optional<Duration>(kRetry);
  }
  if (Receive(kSocket, std::nullopt) == kDone) {
    Send(kSocket, thawed ? kThawed : kKept);
  } else {
    // Its freezer is dead, and so in no system call any more that could still freeze.
    ThawFrozen(kRoot);
  }
  return 0;
}

}  // namespace volumed
