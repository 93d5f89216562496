// ProcessLock: a lock file that one process at a time holds; the file contains that process's pid.
#pragma once

#include <string>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/result.h"

namespace volumed {

// The lock is held for as long as the object lives; the file stays. Children lose it at execve.
// Threads: any.
// Source: flock(2).
class ProcessLock {
 public:
  // Whether Take() waits for the lock of a process that is dead or about to end. Such a process has
  // the lock until the kernel has taken it apart, and a child that it has just forked until it
  // execs.
  enum class Patience { kNone, kForTheDead };

  // Locks the file at `path`, which is made with the mode 0600 if it is missing and is not followed
  // if it is a link; its directory exists. A full disk does not keep the lock from being taken:
  // only the pid is not in the file then. Errors, not applied: Unavailable (another process has the
  // lock; the message has its pid); errno's code. Blocks: with kForTheDead, five seconds at most
  // for an owner that is dead, one second at most for an owner that lives; with kNone, never for an
  // owner. A file without a pid counts as a dead owner's.
  static Result<ProcessLock> Take(const std::string& path, Patience patience);

  // Whether the locked file is still the one at `path`; false also if that cannot be found out. If
  // it was removed, another process may have made and locked a new file there.
  bool IsAt(const std::string& path) const;

 private:
  explicit ProcessLock(Descriptor lock) : lock_(std::move(lock)) {}

  Descriptor lock_;
};

}  // namespace volumed
