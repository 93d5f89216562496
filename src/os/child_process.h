// ChildProcess: a program that this process has started: a worker, or a tool. Every start goes
// through here, so that none inherits a descriptor, a signal mask or an ignored signal by mistake.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// What is started, and what it inherits: nothing else.
struct ChildSetup {
  std::vector<std::string> arguments;  // the first is the program's absolute path
  // "NAME=value". Nothing: the environment of this process.
  std::optional<std::vector<std::string>> environment = std::nullopt;
  // What the child has as 0, 1, 2 ...; it has no others. -1: /dev/null.
  std::vector<int> descriptors;
  // A process group of its own; else the caller's.
  bool own_group = false;
  // Called with the child's id before its program begins, which waits for the return. Empty: the
  // program begins at once.
  std::function<void(pid_t pid)> paused = nullptr;
};

struct ChildEnd {
  bool exited = false;  // else a signal ended it
  int status = 0;       // the exit status, or the signal's number; -1: somebody else heard of it
};

// Threads: one at a time. The destructor neither ends the process nor waits for it: one that is not
// reaped by then stays a zombie until its parent ends.
class ChildProcess {
 public:
  // Blocks: for the exec, about a millisecond. Errors: errno of the start, not applied;
  // maybe applied when it was started and had to be killed at once, for want of descriptors.
  static Result<ChildProcess> Start(const ChildSetup& setup);

  pid_t pid() const { return pid_; }
  // Readable once the process is dead, and also after it was reaped.
  int pidfd() const { return pidfd_.get(); }

  // SIGKILL to the process, or to its group where it has its own. Not once it is reaped: the number
  // may belong to somebody else then.
  void Kill();
  // Blocks: up to `timeout`. Set, and the process is reaped, if it is dead.
  std::optional<ChildEnd> WaitForEnd(Duration timeout);

 private:
  // Nobody else reaps our children, so the id is still this child's.
  static Result<ChildProcess> Adopt(pid_t pid, const ChildSetup& setup);

  ChildProcess(pid_t pid, Descriptor pidfd, bool own_group)
      : pid_(pid), pidfd_(std::move(pidfd)), own_group_(own_group) {}

  pid_t pid_;
  Descriptor pidfd_;
  bool own_group_;
  std::optional<ChildEnd> end_;
};

}  // namespace volumed
