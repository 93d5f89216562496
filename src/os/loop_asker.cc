#include "os/loop_asker.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/strings.h"
#include "os/sysfs.h"

namespace volumed {
namespace {

constexpr int kPatienceMs = 1000;
constexpr int kMomentMs = 5;
// Somebody else has ended the child: that says nothing of the loop device.
constexpr int kTries = 4;
constexpr size_t kLongestNode = 64;
// The kernel's function that asks a file; while the loop device itself is waited for it is not on
// the stack.
constexpr std::string_view kAsksTheFile = "vfs_getattr";

// What the child sends.
struct Reply {
  bool is_open = false;
  int error = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Other threads may have held locks when the child was made, so it makes system calls alone.
[[noreturn]] void AnswerAndEnd(int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // One that waits for ever must keep nothing of ours open: not the caller's output, no lock.
  constexpr int kSocket = 0;
  if (::dup2(socket, kSocket) < 0 || ::close_range(kSocket + 1, ~0U, 0) != 0) ::_exit(1);
  char node[kLongestNode + 1];
  for (ssize_t size = 0; (size = ::recv(kSocket, node, kLongestNode, 0)) > 0;) {
    node[size] = '\0';
    Reply reply;
    loop_info64 info = {};
    const int device = ::open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    reply.is_open = device >= 0;
    if (device < 0 || ::ioctl(device, LOOP_GET_STATUS64, &info) != 0) reply.error = errno;
    reply.device = info.lo_device;
    reply.inode = info.lo_inode;
    if (device >= 0) ::close(device);
    if (::send(kSocket, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) ::_exit(1);
  }
  ::_exit(0);
}

enum class Heard { kAnswer, kNothing, kEnded };

Heard Hear(int socket, int wait_ms, Reply& reply) {
  pollfd polled = {socket, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&polled, 1, wait_ms);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return Heard::kNothing;
  return ::recv(socket, &reply, sizeof(reply), MSG_DONTWAIT) == sizeof(reply) ? Heard::kAnswer
                                                                              : Heard::kEnded;
}

// False also where the kernel does not show it.
bool IsAskingTheFile(pid_t pid) {
  std::ifstream stack("/proc/" + std::to_string(pid) + "/stack");
  const std::string text((std::istreambuf_iterator<char>(stack)), std::istreambuf_iterator<char>());
  return text.find(kAsksTheFile) != std::string::npos;
}

LoopAnswer AnswerOfOneThatWaits(pid_t pid) {
  using Kind = LoopAnswer::Kind;
  return {.kind = IsAskingTheFile(pid) ? Kind::kSilent : Kind::kBusy};
}

// On stderr, which is the agent's, once for each child that is left waiting.
void TellOfOneThatWaits(const std::string& node) {
  std::fprintf(stderr,
               "volumed-worker: %s does not say which file it has: if the filesystem of that does "
               "not answer, it is taken for no file's that does\n",
               node.c_str());
}

LoopAnswer AnswerOf(const Reply& reply) {
  using Kind = LoopAnswer::Kind;
  if (!reply.is_open) return {.kind = Kind::kNoNode, .error = reply.error};
  if (reply.error == ENXIO) return {.kind = Kind::kNone};
  if (reply.error != 0) return {.kind = Kind::kFailed, .error = reply.error};
  return {.kind = Kind::kFile, .file = {reply.device, reply.inode}};
}

// Another number each time that the loop device gets another file. Source: Linux
// Documentation/ABI/stable/sysfs-block (diskseq), since 5.15; empty before, and nothing is
// remembered then.
std::string SequenceFileOf(const std::string& name) { return SysfsOfLoop(name) + "/diskseq"; }
std::string SequenceOf(const std::string& name) {
  return ReadAttribute(SequenceFileOf(name)).value_or("");
}

// Of one loop device: the file that it has, or the child that still asks.
struct KnownLoop {
  std::string sequence;
  // Of a file that is known: where the sequence and what is shown are read again, for a tenth of
  // what it takes to open them. Of a loop device that was detached, or removed, since then they
  // cannot be read.
  Descriptor sequence_file{};
  Descriptor shown_file{};
  std::optional<LoopFile> file{};
  pid_t pid = -1;
  Descriptor socket{};
};

Descriptor OpenToRead(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Nothing if it cannot be read, or was never opened.
std::optional<std::string> ReadAgain(const Descriptor& attribute) {
  std::array<char, PATH_MAX + 16> text;
  const ssize_t size =
      attribute.valid() ? ::pread(attribute.get(), text.data(), text.size(), 0) : -1;
  if (size <= 0) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(size));
}

class KnownLoops {
 public:
  static KnownLoops& OfProcess() {
    static KnownLoops loops;
    return loops;
  }

  void PutFile(const std::string& name, const std::string& sequence, const LoopFile& file)
      EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    if (sequence.empty()) return;
    Put(name, KnownLoop{.sequence = sequence,
                        .sequence_file = OpenToRead(SequenceFileOf(name)),
                        .shown_file = OpenToRead(SysfsOfLoop(name) + "/loop/backing_file"),
                        .file = file});
  }
  void PutChild(const std::string& name, const std::string& sequence, pid_t pid, Descriptor socket)
      EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    // It ends once it has answered, as nothing more comes.
    ::shutdown(socket.get(), SHUT_WR);
    Put(name, KnownLoop{.sequence = sequence, .pid = pid, .socket = std::move(socket)});
  }
  // Kills it. It may end only once the filesystem answers.
  void PutEnded(pid_t pid) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    Kill(pid);
  }
  std::optional<LoopFile> FindFile(const std::string& name) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const auto known = loops_.find(name);
    if (known == loops_.end()) return std::nullopt;
    const auto now = ReadAgain(known->second.sequence_file);
    const bool is_same = now && TrimSpace(*now) == known->second.sequence;
    return is_same ? known->second.file : std::nullopt;
  }
  std::optional<std::string> FindShown(const std::string& name) EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    const auto known = loops_.find(name);
    return known == loops_.end() ? std::nullopt : ReadAgain(known->second.shown_file);
  }
  // Nothing if it has to be asked.
  std::optional<LoopAnswer> Find(const std::string& name, const std::string& sequence)
      EXCLUDES(mu_) {
    const MutexLock lock(mu_);
    Reap();
    const auto known = loops_.find(name);
    if (known == loops_.end() || sequence.empty() || known->second.sequence != sequence) {
      return std::nullopt;
    }
    if (known->second.file) {
      return LoopAnswer{.kind = LoopAnswer::Kind::kFile, .file = *known->second.file};
    }
    Reply reply;
    Heard heard = Hear(known->second.socket.get(), 0, reply);
    if (heard == Heard::kNothing) {
      const LoopAnswer answer = AnswerOfOneThatWaits(known->second.pid);
      if (answer.kind == LoopAnswer::Kind::kSilent) return answer;
      // It may have been answered just now.
      heard = Hear(known->second.socket.get(), kMomentMs, reply);
      if (heard == Heard::kNothing) return answer;
    }
    // What it said may be of the time before this sequence; it is asked once more.
    Kill(known->second.pid);
    loops_.erase(known);
    return std::nullopt;
  }

 private:
  void Put(const std::string& name, KnownLoop loop) REQUIRES(mu_) {
    KnownLoop& known = loops_[name];
    if (known.pid > 0) Kill(known.pid);
    known = std::move(loop);
  }
  void Kill(pid_t pid) REQUIRES(mu_) {
    ::kill(pid, SIGKILL);
    ended_.push_back(pid);
    Reap();
  }
  void Reap() REQUIRES(mu_) {
    std::erase_if(ended_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  }

  Mutex mu_;
  std::unordered_map<std::string, KnownLoop> loops_ GUARDED_BY(mu_);
  std::vector<pid_t> ended_ GUARDED_BY(mu_);  // those that were killed and have not ended yet
};

}  // namespace

LoopAsker::~LoopAsker() { End(); }

void LoopAsker::Remember(const std::string& name, const LoopFile& file) {
  KnownLoops::OfProcess().PutFile(name, SequenceOf(name), file);
}

std::optional<LoopFile> LoopAsker::Known(const std::string& name) {
  return KnownLoops::OfProcess().FindFile(name);
}

std::optional<std::string> LoopAsker::ShownFile(const std::string& name) {
  return KnownLoops::OfProcess().FindShown(name);
}

Status LoopAsker::Start() {
  if (pid_ > 0) return OkStatus();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error::FromErrno(errno, "make a socket", Outcome::kNotApplied);
  }
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno(errno, "start a process", Outcome::kNotApplied);
  if (pid == 0) AnswerAndEnd(theirs.get());
  pid_ = pid;
  socket_ = std::move(ours);
  return OkStatus();
}

void LoopAsker::End() {
  socket_ = Descriptor();
  if (pid_ > 0) KnownLoops::OfProcess().PutEnded(pid_);
  pid_ = -1;
}

Result<LoopAnswer> LoopAsker::Ask(const std::string& name) {
  KnownLoops& known = KnownLoops::OfProcess();
  const std::string sequence = SequenceOf(name);
  if (const std::optional<LoopAnswer> answer = known.Find(name, sequence)) return *answer;
  const std::string node = "/dev/" + name;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    RETURN_IF_ERROR(Start());
    Reply reply;
    Heard heard = Heard::kEnded;
    if (::send(socket_.get(), node.data(), std::min(node.size(), kLongestNode), MSG_NOSIGNAL) > 0) {
      heard = Hear(socket_.get(), kPatienceMs, reply);
    }
    if (heard == Heard::kAnswer) {
      const LoopAnswer answer = AnswerOf(reply);
      const bool is_whole = answer.kind == LoopAnswer::Kind::kFile && SequenceOf(name) == sequence;
      if (is_whole) known.PutFile(name, sequence, answer.file);
      return answer;
    }
    if (heard == Heard::kNothing) {
      const LoopAnswer answer = AnswerOfOneThatWaits(pid_);
      if (sequence.empty() || SequenceOf(name) != sequence) {
        End();
      } else {
        known.PutChild(name, sequence, std::exchange(pid_, -1), std::move(socket_));
        TellOfOneThatWaits(node);
      }
      return answer;
    }
    End();
  }
  return Error::NotApplied(Code::kUnavailable, "somebody ends each process that asks " + node);
}

}  // namespace volumed
