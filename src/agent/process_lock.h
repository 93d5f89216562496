// ProcessLock: a lock file that one process at a time holds, with its pid in it.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// Held for as long as the object lives; the file stays. Children that were executed do not inherit
// it. Source: flock(2).
class ProcessLock {
 public:
  // How long Take() waits for the lock of a process that is dead, or about to be: it has it until
  // the kernel has taken it apart, and a child that it forked a moment ago has it until it execs.
  enum class Patience { kNone, kForTheDead };

  // Errors, not applied: Unavailable (another process has it: its pid), errno's code. Blocks: for a
  // dead owner at most five seconds, for a living one at most one; with kNone, never for an owner.
  static Result<ProcessLock> Take(const std::string& path, Patience patience);

  // Whether the file that is locked is still the one at `path`: if it was removed, another process
  // may have made and locked another one.
  bool IsAt(const std::string& path) const;

 private:
  explicit ProcessLock(Descriptor lock) : lock_(std::move(lock)) {}

  Descriptor lock_;
};

}  // namespace volumed
