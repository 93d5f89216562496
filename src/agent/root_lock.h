// RootLock: one agent per root directory, and no root taken over by accident.
#pragma once

#include <string>
#include <utility>

#include "agent/process_lock.h"
#include "base/result.h"

namespace volumed {

// Makes sure that the root is ours, then holds its lock for as long as the object lives:
//  - a root that is missing or empty becomes ours, marked by <root>/volumed/created-by-volumed;
//  - a root without the mark is somebody's: it needs `adopt`, and is refused while a kubelet runs
//    on it;
//  - a root whose lock is held has an agent already.
// Workers do not inherit the lock: an agent that restarts gets it although an old worker lives.
class RootLock {
 public:
  // Whether Acquire would take it, but for its lock; nothing is made. Errors: those of Acquire.
  static Status CheckMayTake(const std::string& root, bool adopt);

  // Blocks: touches the root's own filesystem only. Errors, not applied: FailedPrecondition (not
  // ours; a kubelet runs), Unavailable (another agent, with its pid), errno's code.
  static Result<RootLock> Acquire(const std::string& root, bool adopt);

  bool adopted() const { return adopted_; }

 private:
  RootLock(ProcessLock lock, bool adopted) : lock_(std::move(lock)), adopted_(adopted) {}

  ProcessLock lock_;
  bool adopted_;
};

}  // namespace volumed
