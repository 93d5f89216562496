// ProcConsumerWatch: the ConsumerWatch that asks the kernel: by a pidfd for a process, and by the
// change notification of cgroup.events for a cgroup. A cgroup of version 1 notifies only its
// release agent, so its list of tasks is read each second; this is the only polling of consumers.
// Source: pidfd_open(2), cgroups(7), Documentation/admin-guide/cgroup-v2.rst ("populated").
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/alive_guard.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/inotify.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "volumemanager/watch/consumer_watch.h"

namespace volumed {

// Where the kernel's facts are read; absolute paths.
struct ProcConsumerWatchOptions {
  std::string proc = "/proc";
  // Where a relative name of a cgroup is looked up: in version 2's hierarchy, and in the
  // directories of version 1's controllers.
  std::string cgroup_root = "/sys/fs/cgroup";
  Duration poll_period = std::chrono::seconds(1);
};

// Threads, Blocks, Errors: as ConsumerWatch; and those of epoll_ctl and inotify, not applied. A
// cgroup that cannot be asked, for another reason than that it is gone, counts as one that has
// processes.
class ProcConsumerWatch final : public ConsumerWatch {
 public:
  // `loop` is that of the control thread. Scheduler and loop outlive this object.
  ProcConsumerWatch(Scheduler& scheduler, EventLoop& loop, ProcConsumerWatchOptions options);
  ~ProcConsumerWatch() override;

  Result<WatchedConsumer> Watch(uint64_t id, const ConsumerTarget& target,
                                std::function<void()> gone) override;
  void Unwatch(uint64_t id) override;

 private:
  struct Process {
    Descriptor pidfd;
  };
  struct Cgroup {
    std::string directory;
    int wd = -1;  // -1: the cgroup is polled
  };
  // A target that is watched: either the process or the cgroup is set.
  struct Watched {
    std::function<void()> gone;
    Process process;
    Cgroup cgroup;
  };

  Result<WatchedConsumer> WatchProcess(uint64_t id, const ConsumerTarget& target, Watched& watched);
  Result<WatchedConsumer> WatchCgroup(const ConsumerTarget& target, Watched& watched);
  Status StartInotify();
  Result<std::string> FindCgroup(const std::string& cgroup) const;
  void CheckCgroups(bool polled_only);
  void SchedulePoll();
  void Gone(uint64_t id);

  Scheduler& scheduler_;
  EventLoop& loop_;
  const ProcConsumerWatchOptions options_;
  std::map<uint64_t, Watched> watched_;
  std::unique_ptr<Inotify> inotify_;
  TimerId poll_timer_ = 0;
  AliveGuard alive_;
};

// Field 22 of a /proc/PID/stat text: when the process started, in clock ticks since the boot.
// Errors: InvalidArgument, not applied, if the text has no such field.
Result<uint64_t> ParseStartTime(const std::string& stat);

}  // namespace volumed
