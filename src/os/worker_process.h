// WorkerProcess: one volumed-worker as the agent sees it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "os/worker_channel.h"

namespace volumed {

// Threads: one at a time. The destructor closes the socket, on which an idle worker ends, and waits
// for nothing.
class WorkerProcess {
 public:
  // Starts `arguments[0]` in a process group of its own. Blocks: for the exec, about a millisecond.
  // Errors: errno of posix_spawn, not applied.
  static Result<std::unique_ptr<WorkerProcess>> Spawn(const std::vector<std::string>& arguments);

  WorkerChannel& channel() { return channel_; }
  pid_t pid() const { return pid_; }
  // Readable once the process is dead.
  int pidfd() const { return pidfd_.get(); }

  // SIGKILL to the worker's process group, that is, to the tools that it runs too.
  void Kill();
  // Blocks: up to `timeout`. True, and the process is reaped, if it is dead.
  bool WaitForDeath(Duration timeout);
  // How it ended: "killed by signal 9", "ended with status 78"; empty while it is not reaped.
  const std::string& how_it_ended() const { return how_it_ended_; }

 private:
  WorkerProcess(pid_t pid, Descriptor pidfd, Descriptor socket)
      : pid_(pid), pidfd_(std::move(pidfd)), channel_(std::move(socket)) {}

  const pid_t pid_;
  const Descriptor pidfd_;
  WorkerChannel channel_;
  std::string how_it_ended_;
};

}  // namespace volumed
