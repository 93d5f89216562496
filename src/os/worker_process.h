// WorkerProcess: one volumed-worker as the agent sees it, with the tools that it runs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "os/child_process.h"
#include "os/worker_channel.h"

namespace volumed {

// What a worker finds at its start. The second is never written to: the worker gives it to its
// tools, and the agent's end hangs up once the worker and all of them are gone.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kWorkerLife = 4;

// Threads: one at a time. The destructor closes the socket, on which an idle worker ends, and waits
// for nothing.
class WorkerProcess {
 public:
  // Starts `arguments[0]` in a process group of its own. Blocks: for the exec, about a millisecond.
  // Errors: errno of the start.
  static Result<std::unique_ptr<WorkerProcess>> Spawn(const std::vector<std::string>& arguments);

  WorkerChannel& channel() { return channel_; }
  pid_t pid() const { return child_.pid(); }
  // Readable (or hung up) when there is something new for WaitForDeath().
  int death_fd() const { return how_it_ended_.empty() ? child_.pidfd() : life_.get(); }

  // SIGKILL to the worker's process group, that is, to the tools that it runs too.
  void Kill() { child_.Kill(); }
  // Blocks: up to `timeout`. True if the worker is dead, and reaped, and its tools are gone too.
  bool WaitForDeath(Duration timeout);
  // How it ended: "killed by signal 9", "ended with status 78"; empty while it is not reaped.
  const std::string& how_it_ended() const { return how_it_ended_; }

 private:
  WorkerProcess(ChildProcess child, Descriptor life, Descriptor socket)
      : child_(std::move(child)), life_(std::move(life)), channel_(std::move(socket)) {}

  ChildProcess child_;
  const Descriptor life_;
  WorkerChannel channel_;
  std::string how_it_ended_;
};

}  // namespace volumed
