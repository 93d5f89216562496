// WorkerProcess: one volumed-worker as the agent sees it, with the tools that it runs.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "os/worker_channel.h"
#include "os/worker_keys.h"

namespace volumed {

// What a worker finds at its start. The second is never written to: the worker gives it to its
// tools, and the agent's end hangs up once the worker and all of them are gone. The third is the
// page of its keys, or /dev/null.
inline constexpr int kWorkerSocket = 3;
inline constexpr int kWorkerLife = 4;
inline constexpr int kWorkerKeys = 5;

// Threads: one at a time. The destructor closes the socket, on which an idle worker ends, and waits
// for nothing.
class WorkerProcess {
 public:
  virtual ~WorkerProcess() = default;

  // The agent's end. It lives as long as this.
  virtual WorkerChannel& channel() = 0;
  virtual pid_t pid() const = 0;
  // Null for a worker without a page for its keys.
  virtual WorkerKeys* keys() { return nullptr; }
  // Readable (or hung up) when there is something new for WaitForDeath().
  virtual int death_fd() const = 0;

  // SIGKILL to the worker's process group, that is, to the tools that it runs too.
  virtual void Kill() = 0;
  // Blocks: up to `timeout`. True if the worker is dead, and reaped, and its tools are gone too.
  virtual bool WaitForDeath(Duration timeout) = 0;
  // How it ended: "killed by signal 9", "ended with status 78"; empty while it is not reaped.
  virtual const std::string& how_it_ended() const = 0;
};

// Makes a worker, with a page for its keys in the directory; without one if that is empty. Blocks:
// for the exec, about a millisecond. Errors: errno of the start, or of the page.
using WorkerStarter =
    std::function<Result<std::unique_ptr<WorkerProcess>>(const std::string& key_directory)>;

// Starts `arguments[0]` in a process group of its own. Blocks and errors: as WorkerStarter.
Result<std::unique_ptr<WorkerProcess>> SpawnWorker(const std::vector<std::string>& arguments,
                                                   const std::string& key_directory = "");

}  // namespace volumed
