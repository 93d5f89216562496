#include "agent/root_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "base/strings.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

constexpr char kAgentDir[] = "/volumed";
constexpr char kMark[] = "/volumed/created-by-volumed";
constexpr char kLock[] = "/volumed/lock";
constexpr char kDefaultKubeletRoot[] = "/var/lib/kubelet";
constexpr auto kLeftOverLock = std::chrono::seconds(5);
constexpr auto kPredecessorsEnd = std::chrono::milliseconds(1000);
constexpr auto kLookAgain = std::chrono::milliseconds(5);

std::optional<std::string> RootOfKubelet(const std::vector<std::string>& arguments) {
  if (arguments.empty() || fs::path(arguments[0]).filename() != "kubelet") return std::nullopt;
  for (size_t i = 1; i < arguments.size(); ++i) {
    if (const auto value = StripPrefix(arguments[i], "--root-dir=")) return std::string(*value);
    if (arguments[i] == "--root-dir" && i + 1 < arguments.size()) return arguments[i + 1];
  }
  return kDefaultKubeletRoot;
}

// The pid of a kubelet whose root directory is `root`, or 0.
int FindKubeletOn(const std::string& root) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    const std::optional<int64_t> pid = ParseInt64(entry.path().filename().string());
    if (!pid) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::optional<std::string> found = RootOfKubelet(Split(line, '\0'));
    if (found && fs::equivalent(*found, root, error)) return static_cast<int>(*pid);
  }
  return 0;
}

Status MakeDir(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return OkStatus();
  return Error::FromErrno(errno, "make directory " + path, Outcome::kNotApplied);
}

// True when the root has, or was now given, our mark.
Result<bool> CheckOwnership(const std::string& root, bool adopt) {
  std::error_code error;
  if (fs::exists(root + kMark, error)) return true;
  const bool empty = !fs::exists(root, error) || fs::is_empty(root, error);
  if (error) return Error::FromErrno(error.value(), "look into " + root, Outcome::kNotApplied);
  if (empty) return true;
  if (!adopt) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             root + " was not created by volumed; adopt-root takes it over");
  }
  if (const int kubelet = FindKubeletOn(root); kubelet != 0) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "a kubelet (pid " + std::to_string(kubelet) + ") runs on " + root);
  }
  return false;
}

std::string PidIn(int lock) {
  char pid[32] = {};
  const ssize_t size = ::pread(lock, pid, sizeof(pid) - 1, 0);
  return std::string(TrimSpace(std::string_view(pid, size > 0 ? static_cast<size_t>(size) : 0)));
}

// True when the process is gone, or goes within `patience`: one that was killed a moment ago still
// has its lock until the kernel has taken it apart.
bool IsGone(const std::string& pid, std::chrono::milliseconds patience) {
  const std::optional<int64_t> number = ParseInt64(pid);
  if (!number || *number <= 0) return true;
  const Descriptor process(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(*number), 0)));
  if (!process.valid()) return errno == ESRCH;
  pollfd wait = {process.get(), POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) == 1;
}

// A worker that an agent had just forked when it was killed has the lock too, until it execs: then
// the lock's owner is dead, and the lock is free in a moment.
Result<Descriptor> TakeLock(const std::string& path) {
  ASSIGN_OR_RETURN(
      Descriptor lock,
      DescriptorFrom(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open " + path));
  const auto give_up = std::chrono::steady_clock::now() + kLeftOverLock;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return Error::FromErrno(errno, "lock " + path, Outcome::kNotApplied);
    }
    const std::string owner = PidIn(lock.get());
    if (!IsGone(owner, kPredecessorsEnd) || std::chrono::steady_clock::now() > give_up) {
      return Error::NotApplied(Code::kUnavailable,
                               "another volumed (pid " + owner + ") owns " + path);
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.get(), 0) != 0 ||
      ::pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // Only the message for a second agent would lack the pid: a full disk must not stop this one.
    errno = 0;
  }
  return lock;
}

}  // namespace

Result<RootLock> RootLock::Acquire(const std::string& root, bool adopt) {
  ASSIGN_OR_RETURN(const bool ours, CheckOwnership(root, adopt));
  std::error_code error;
  fs::create_directories(fs::path(root).parent_path(), error);
  if (error) {
    return Error::FromErrno(error.value(), "make the parent of " + root, Outcome::kNotApplied);
  }
  RETURN_IF_ERROR(MakeDir(root, 0750));
  RETURN_IF_ERROR(MakeDir(root + kAgentDir, 0700));
  ASSIGN_OR_RETURN(Descriptor lock, TakeLock(root + kLock));
  if (ours) {
    ASSIGN_OR_RETURN(
        const Descriptor mark,
        DescriptorFrom(::open((root + kMark).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
                       "mark " + root + " as ours"));
  }
  return RootLock(std::move(lock), !ours);
}

}  // namespace volumed
