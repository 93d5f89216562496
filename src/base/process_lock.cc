#include "base/process_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>

#include "base/strings.h"

namespace volumed {
namespace {

constexpr auto kLeftOverLock = std::chrono::seconds(5);
constexpr auto kPredecessorsEnd = std::chrono::milliseconds(1000);
constexpr auto kLookAgain = std::chrono::milliseconds(5);

std::string PidIn(int lock) {
  char pid[32] = {};
  const ssize_t size = ::pread(lock, pid, sizeof(pid) - 1, 0);
  return std::string(TrimSpace(std::string_view(pid, size > 0 ? static_cast<size_t>(size) : 0)));
}

// True if the process is gone, or ends within `patience`.
bool IsGone(const std::string& pid, std::chrono::milliseconds patience) {
  const std::optional<int64_t> number = ParseInt64(pid);
  if (!number || *number <= 0) return true;
  const Descriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*number), 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd wait = {process.get(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) == 1;
}

Status WaitForLock(int lock, const std::string& path, ProcessLock::Patience patience) {
  const auto give_up = std::chrono::steady_clock::now() + kLeftOverLock;
  while (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return Error::FromErrno(errno, "lock " + path, Outcome::kNotApplied);
    }
    const std::string owner = PidIn(lock);
    if (patience == ProcessLock::Patience::kNone || !IsGone(owner, kPredecessorsEnd) ||
        std::chrono::steady_clock::now() > give_up) {
      return Error::NotApplied(Code::kUnavailable,
                               "another volumed (pid " + owner + ") owns " + path);
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return OkStatus();
}

}  // namespace

Result<ProcessLock> ProcessLock::Take(const std::string& path, Patience patience) {
  for (;;) {
    ASSIGN_OR_RETURN(
        Descriptor file,
        DescriptorFrom(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600),
                       "open " + path));
    RETURN_IF_ERROR(WaitForLock(file.get(), path, patience));
    ProcessLock lock(std::move(file));
    if (!lock.IsAt(path)) continue;  // it was removed while this process waited
    const std::string pid = std::to_string(::getpid()) + "\n";
    if (::ftruncate(lock.lock_.get(), 0) != 0 ||
        ::pwrite(lock.lock_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      // A full disk must not stop this process: only the message for a second one would lack the
      // pid.
      errno = 0;
    }
    return lock;
  }
}

bool ProcessLock::IsAt(const std::string& path) const {
  struct stat held {};
  struct stat there {};
  return ::fstat(lock_.get(), &held) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace volumed
