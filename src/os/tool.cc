#include "os/tool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/descriptor.h"
#include "base/strings.h"

namespace volumed {
namespace {

constexpr int kDeviceFd = 3;
constexpr int kLockFd = 4;
constexpr size_t kOutputTail = 4096;
// How often the tool's own count is looked at; as WorkMeter::kInterval.
constexpr int kProgressMillis = 200;

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  // A worker ignores SIGPIPE, and what is ignored is inherited.
  SpawnAttributes() {
    sigset_t none;
    sigset_t all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// A copy above every number that the child gives away, so that no dup2 hits another's source.
Result<Descriptor> OutOfTheWay(int fd) {
  return DescriptorFrom(::fcntl(fd, F_DUPFD_CLOEXEC, 16), "duplicate descriptor");
}

Result<std::string> FindTool(const ToolRun& run, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) {
    const std::string path = directory + "/" + run.program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return Error::NotApplied(Code::kNotFound,
                           run.program + " is missing: install the package " + run.package);
}

// Backspaces and escapes are for terminals.
std::string Printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\b') continue;
    const auto byte = static_cast<unsigned char>(c);
    shown += (byte < 0x20 && c != '\n') || byte == 0x7F ? ' ' : c;
  }
  return std::string(TrimSpace(shown));
}

// Source: proc_pid_io(5).
int64_t BytesDone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/io");
  std::string name;
  int64_t value = 0;
  int64_t sum = 0;
  while (file >> name >> value) {
    if (name == "rchar:" || name == "wchar:") sum += value;
  }
  return sum;
}

// Until the tool has closed it, which it does by ending.
std::string ReadOutput(int pipe, pid_t pid, const CallOptions& options) {
  std::string output;
  std::array<char, 4096> chunk;
  while (true) {
    pollfd wait = {pipe, POLLIN, 0};
    const int ready = ::poll(&wait, 1, kProgressMillis);
    if (ready <= 0) {
      if (ready == 0 && options.progress) options.progress(BytesDone(pid));
      continue;
    }
    const ssize_t size = ::read(pipe, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return output;
    output.append(chunk.data(), static_cast<size_t>(size));
    if (output.size() > kOutputTail) output.erase(0, output.size() - kOutputTail);
  }
}

Result<pid_t> Spawn(const std::string& path, const ToolRun& run, int output, int kept) {
  ASSIGN_OR_RETURN(const Descriptor device, OutOfTheWay(run.device));
  ASSIGN_OR_RETURN(const Descriptor out, OutOfTheWay(output));
  Descriptor lock;
  if (kept >= 0) {
    ASSIGN_OR_RETURN(lock, OutOfTheWay(kept));
  }
  SpawnActions actions;
  ::posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions.get(), out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), out.get(), STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(actions.get(), device.get(), kDeviceFd);
  if (lock.valid()) {
    ::posix_spawn_file_actions_adddup2(actions.get(), lock.get(), kLockFd);
  }
  ::posix_spawn_file_actions_addclosefrom_np(actions.get(), lock.valid() ? kLockFd + 1 : kLockFd);

  std::vector<std::string> words = {path};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  // LC_ALL for texts that are the same everywhere; E2FSPROGS_LIBMAGIC_SUPPRESS so that no library
  // besides blkid judges the device.
  std::array<std::string, 3> variables = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C",
                                          "E2FSPROGS_LIBMAGIC_SUPPRESS=1"};
  std::array<char*, 4> environment = {variables[0].data(), variables[1].data(), variables[2].data(),
                                      nullptr};
  SpawnAttributes attributes;
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, path.c_str(), actions.get(), attributes.get(),
                                    argv.data(), environment.data());
  if (failure != 0) return Error::FromErrno(failure, "start " + path, Outcome::kNotApplied);
  return pid;
}

}  // namespace

std::vector<std::string> SystemToolDirectories() {
  return {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};
}

Result<ToolResult> RunTool(const ToolRun& run, const std::vector<std::string>& directories,
                           const CallOptions& options) {
  ASSIGN_OR_RETURN(const std::string path, FindTool(run, directories));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return Error::FromErrno(errno, "pipe for " + path, Outcome::kNotApplied);
  }
  const Descriptor ours(ends[0]);
  Descriptor theirs(ends[1]);
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(path, run, theirs.get(), options.kept_by_tools));
  theirs.Reset();
  ToolResult result;
  result.output = Printable(ReadOutput(ours.get(), pid, options));
  int status = 0;
  while (::waitpid(pid, &status, 0) != pid) {
    if (errno == EINTR) continue;
    return Error::FromErrno(errno, "wait for " + run.program, Outcome::kMaybeApplied);
  }
  if (!WIFEXITED(status)) {
    return Error::MaybeApplied(Code::kUnavailable, run.program + " was killed by signal " +
                                                       std::to_string(WTERMSIG(status)) + ": " +
                                                       result.output);
  }
  result.exit_code = WEXITSTATUS(status);
  return result;
}

}  // namespace volumed
