#include "volumemanager/watch/proc_consumer_watch.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "base/strings.h"

namespace volumed {
namespace {

// glibc 2.36 has a wrapper, but only with GNU extensions in a header of its own.
int PidfdOpen(int64_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0));
}

// Reads small files of procfs and cgroupfs. They are memory of the kernel, so reading them does not
// wait.
Result<std::string> ReadSmall(const std::string& path) {
  ASSIGN_OR_RETURN(Descriptor file,
                   DescriptorFrom(::open(path.c_str(), O_RDONLY | O_CLOEXEC), "open " + path));
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got == 0) return content;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno(errno, "read " + path, Outcome::kNotApplied);
    content.append(buffer, static_cast<size_t>(got));
  }
}

Error NotThere(std::string message) {
  return Error::NotApplied(Code::kFailedPrecondition, std::move(message));
}

// Version 2 answers for the whole subtree; version 1 lists the processes of the cgroup itself.
Result<bool> CgroupPopulated(const std::string& directory) {
  const Result<std::string> events = ReadSmall(directory + "/cgroup.events");
  if (events.ok()) {
    for (const std::string& line : SplitNonEmpty(*events, '\n')) {
      if (const auto value = StripPrefix(line, "populated ")) return *value != "0";
    }
    return Error::NotApplied(Code::kInternal, directory + "/cgroup.events does not say populated");
  }
  if (events.error().code() != Code::kNotFound) return events.error();
  ASSIGN_OR_RETURN(const std::string processes, ReadSmall(directory + "/cgroup.procs"));
  return !processes.empty();
}

bool IsVersion2(const std::string& directory) {
  return ::access((directory + "/cgroup.events").c_str(), F_OK) == 0;
}

}  // namespace

Result<uint64_t> ParseStartTime(const std::string& stat) {
  // The second field is the command in parentheses and may contain any character, even ')'.
  const size_t command_end = stat.rfind(')');
  if (command_end != std::string::npos) {
    const std::vector<std::string> fields =
        SplitNonEmpty(TrimSpace(std::string_view(stat).substr(command_end + 1)), ' ');
    constexpr size_t kStartTime = 22 - 3;  // fields[0] is field 3 of the line
    if (fields.size() > kStartTime) {
      if (const auto value = ParseUint64(fields[kStartTime])) return *value;
    }
  }
  return Error::NotApplied(Code::kInvalidArgument, "no start time in a process's stat");
}

ProcConsumerWatch::ProcConsumerWatch(Scheduler& scheduler, EventLoop& loop,
                                     ProcConsumerWatchOptions options)
    : scheduler_(scheduler), loop_(loop), options_(std::move(options)) {}

ProcConsumerWatch::~ProcConsumerWatch() {
  for (const auto& [id, watched] : watched_) {
    if (watched.process.pidfd) loop_.UnwatchFd(watched.process.pidfd.get());
  }
  if (inotify_) loop_.UnwatchFd(inotify_->fd());
  if (poll_timer_ != 0) scheduler_.Cancel(poll_timer_);
}

Result<WatchedConsumer> ProcConsumerWatch::Watch(uint64_t id, const ConsumerTarget& target,
                                                 std::function<void()> gone) {
  Watched watched{std::move(gone), {}, {}};
  Result<WatchedConsumer> result =
      target.pid != 0 ? WatchProcess(id, target, watched) : WatchCgroup(target, watched);
  if (result.ok()) {
    const bool polled = target.pid == 0 && watched.cgroup.wd < 0;
    watched_.emplace(id, std::move(watched));
    if (polled) SchedulePoll();
  }
  return result;
}

Result<WatchedConsumer> ProcConsumerWatch::WatchProcess(uint64_t id, const ConsumerTarget& target,
                                                        Watched& watched) {
  const std::string name = "pid " + std::to_string(target.pid);
  const int fd = PidfdOpen(target.pid);
  if (fd < 0 && errno == ENOSYS) {
    return Error::NotApplied(Code::kUnimplemented, "this kernel has no pidfd_open (Linux 5.3)");
  }
  if (fd < 0 && (errno == ESRCH || errno == EINVAL)) {
    return NotThere("there is no process with " + name);
  }
  ASSIGN_OR_RETURN(Descriptor pidfd, DescriptorFrom(fd, "pidfd_open " + name));
  // This is read after the pidfd was opened: if the process ends meanwhile, the pidfd reports it.
  const std::string directory = options_.proc + "/" + std::to_string(target.pid);
  const Result<std::string> stat = ReadSmall(directory + "/stat");
  if (!stat.ok()) return NotThere("there is no process with " + name);
  ASSIGN_OR_RETURN(const uint64_t start_time, ParseStartTime(*stat));
  if (target.pid_start_time != 0 && target.pid_start_time != start_time) {
    return NotThere("another process has " + name + " now");
  }
  RETURN_IF_ERROR(loop_.WatchFd(pidfd.get(), EPOLLIN, [this, id](uint32_t) { Gone(id); }));
  watched.process.pidfd = std::move(pidfd);
  const Result<std::string> command = ReadSmall(directory + "/comm");
  return WatchedConsumer{
      start_time, command.ok() ? name + " (" + PrintableText(TrimSpace(*command)) + ")" : name};
}

Result<std::string> ProcConsumerWatch::FindCgroup(const std::string& cgroup) const {
  if (!cgroup.starts_with('/') || cgroup.find("/../") != std::string::npos ||
      cgroup.ends_with("/..")) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "cgroup \"" + cgroup + "\" is no absolute path without \"..\"");
  }
  std::vector<std::string> candidates;
  if (cgroup.starts_with(options_.cgroup_root + "/")) {
    candidates = {cgroup};
  } else {
    // The candidates are version 2, the hybrid layout, and version 1, where systemd's own hierarchy
    // has every container.
    for (const char* hierarchy : {"", "/unified", "/systemd", "/pids", "/memory"}) {
      candidates.push_back(options_.cgroup_root + hierarchy + cgroup);
    }
  }
  for (const std::string& candidate : candidates) {
    if (::access((candidate + "/cgroup.procs").c_str(), F_OK) == 0) return candidate;
  }
  return NotThere("there is no cgroup " + cgroup + " below " + options_.cgroup_root);
}

Result<WatchedConsumer> ProcConsumerWatch::WatchCgroup(const ConsumerTarget& target,
                                                       Watched& watched) {
  ASSIGN_OR_RETURN(watched.cgroup.directory, FindCgroup(target.cgroup));
  if (IsVersion2(watched.cgroup.directory)) {
    RETURN_IF_ERROR(StartInotify());
    // cgroup.events is in this directory, and the directory's watch also reports changes of its
    // files.
    ASSIGN_OR_RETURN(watched.cgroup.wd, inotify_->AddWatch(watched.cgroup.directory,
                                                           IN_MODIFY | IN_DELETE_SELF | IN_DELETE));
  }
  // The question comes after the watch is set, so that no change is missed.
  ASSIGN_OR_RETURN(const bool populated, CgroupPopulated(watched.cgroup.directory));
  if (!populated) return NotThere("cgroup " + target.cgroup + " has no process");
  return WatchedConsumer{0, "cgroup " + target.cgroup};
}

Status ProcConsumerWatch::StartInotify() {
  if (inotify_) return OkStatus();
  ASSIGN_OR_RETURN(Inotify inotify, Inotify::Create());
  auto made = std::make_unique<Inotify>(std::move(inotify));
  RETURN_IF_ERROR(loop_.WatchFd(made->fd(), EPOLLIN, [this](uint32_t) {
    // The events are only read in order to remove them; the cgroups themselves are asked.
    (void)inotify_->ReadEvents();
    CheckCgroups(/*polled_only=*/false);
  }));
  inotify_ = std::move(made);
  return OkStatus();
}

void ProcConsumerWatch::CheckCgroups(bool polled_only) {
  std::vector<uint64_t> gone;
  for (const auto& [id, watched] : watched_) {
    if (watched.cgroup.directory.empty() || (polled_only && watched.cgroup.wd >= 0)) continue;
    const Result<bool> populated = CgroupPopulated(watched.cgroup.directory);
    // A cgroup that cannot be asked for another reason than its end counts as populated.
    const bool removed = !populated.ok() && (populated.error().code() == Code::kNotFound ||
                                             populated.error().sys_errno() == ENODEV);
    if (removed || (populated.ok() && !*populated)) gone.push_back(id);
  }
  for (const uint64_t id : gone) Gone(id);
}

void ProcConsumerWatch::SchedulePoll() {
  if (poll_timer_ != 0) return;
  poll_timer_ = scheduler_.PostAfter(options_.poll_period, alive_.Guarded([this] {
    poll_timer_ = 0;
    CheckCgroups(/*polled_only=*/true);
    for (const auto& [id, watched] : watched_) {
      if (!watched.cgroup.directory.empty() && watched.cgroup.wd < 0) return SchedulePoll();
    }
  }));
}

void ProcConsumerWatch::Gone(uint64_t id) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  const std::function<void()> gone = std::move(found->second.gone);
  Unwatch(id);
  gone();
}

void ProcConsumerWatch::Unwatch(uint64_t id) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  if (found->second.process.pidfd) loop_.UnwatchFd(found->second.process.pidfd.get());
  const int wd = found->second.cgroup.wd;
  watched_.erase(found);
  if (wd < 0) return;
  for (const auto& [other, watched] : watched_) {
    if (watched.cgroup.wd == wd) return;  // all watches of one directory have the same number
  }
  (void)inotify_->RemoveWatch(wd);  // a removed cgroup has taken its watch along
}

}  // namespace volumed
