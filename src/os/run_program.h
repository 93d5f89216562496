// RunProgram: runs a program to its end, with a deadline, and keeps what it printed last.
//
// For tools that are not part of an effect: what a worker runs for the agent is a Kernel effect.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace volumed {

struct ProgramEnd {
  int exit_status = 0;  // 128 + the signal's number when a signal ended it
  std::string output;   // the end of what it wrote to stdout and stderr
};

// At most this much of the output is kept.
inline constexpr size_t kProgramOutputBytes = 4096;

// `arguments[0]` is the absolute path of the program. It gets a process group of its own, an empty
// environment but for PATH, no descriptors but 0, 1 and 2, and /dev/null as its input. When it has
// not ended at the deadline, its group is killed and waited for.
// Threads: any. Blocks: until it has ended, or the deadline.
// Errors: NotFound or PermissionDenied, not applied, when it cannot be started; DeadlineExceeded,
// maybe applied, with what it printed.
Result<ProgramEnd> RunProgram(const std::vector<std::string>& arguments, const Clock& clock,
                              Deadline deadline);

}  // namespace volumed
