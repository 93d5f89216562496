// RootLock: makes sure that a root directory has one agent at a time, and that no root is taken
// over by accident.
#pragma once

#include <string>
#include <utility>

#include "base/process_lock.h"
#include "base/result.h"

namespace volumed {

// Makes sure that this agent may have the root, then holds its lock for as long as the object
// lives:
//  - a root that is missing or empty is taken, and marked by <root>/volumed/created-by-volumed;
//  - a root without the mark may belong to a kubelet: taking it needs `adopt`, and is refused while
//    a kubelet runs on it;
//  - a root whose lock is held has an agent already.
// Workers do not inherit the lock: an agent that restarts gets it even if an old worker lives.
class RootLock {
 public:
  // Whether Acquire would take the root, if its lock were free; nothing is changed. Blocks: as long
  // as the root's filesystem takes to answer. Errors: those of Acquire.
  static Status CheckMayTake(const std::string& root, bool adopt);

  // Makes the root (0750), its parents and <root>/volumed (0700) if they are missing. An adopted
  // root gets no mark, so it has to be adopted at each start. Blocks: uses the root's own
  // filesystem only, for as long as that takes to answer; for the lock as ProcessLock::Take, which
  // waits for the lock of a process that is dead. Errors, not applied: FailedPrecondition (the root
  // lacks the mark, or a kubelet runs on it); Unavailable (another agent, with its pid); errno's
  // code.
  static Result<RootLock> Acquire(const std::string& root, bool adopt);

  // Whether the root is a kubelet's or somebody else's, and lacks the mark.
  bool adopted() const { return adopted_; }

 private:
  RootLock(ProcessLock lock, bool adopted) : lock_(std::move(lock)), adopted_(adopted) {}

  ProcessLock lock_;
  bool adopted_;
};

}  // namespace volumed
