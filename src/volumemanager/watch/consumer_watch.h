// ConsumerWatch: reports that a process has ended, or that a cgroup has no process left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace volumed {

// Exactly one of pid and cgroup is set.
struct ConsumerTarget {
  int64_t pid = 0;
  // Field 22 of /proc/PID/stat; a process that reuses the pid has another value. 0: the process
  // that has the pid now, whichever it is.
  uint64_t pid_start_time = 0;
  std::string
      cgroup;  // "/kubepods/pod1", or the absolute path of a directory in a cgroup filesystem
};

// What a watch has found out about its target.
struct WatchedConsumer {
  uint64_t pid_start_time = 0;
  std::string label;  // "pid 4711 (runc)", "cgroup /kubepods/pod1"
};

// Threads: the control thread, for every method; `gone` is called there, but never from within
// Watch. Blocks: never (procfs and cgroupfs are memory of the kernel).
class ConsumerWatch {
 public:
  virtual ~ConsumerWatch() = default;

  // Calls `gone` once, when the process has ended, or the cgroup is empty or removed. `id` is
  // chosen by the caller and not in use. Errors, not applied: FailedPrecondition if there is no
  // such process (or another one has its pid), or no such cgroup, or an empty one; Unimplemented if
  // the kernel lacks what is needed.
  virtual Result<WatchedConsumer> Watch(uint64_t id, const ConsumerTarget& target,
                                        std::function<void()> gone) = 0;
  // No call of `gone` begins after this. Has no effect for an unknown id.
  virtual void Unwatch(uint64_t id) = 0;
};

}  // namespace volumed
