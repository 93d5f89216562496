// Starts a program that waits, before it begins, until something has been done with its process: it
// was put into a cgroup. Private to ChildProcess, which starts all others by posix_spawn(3): that
// returns only once the program has begun.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "os/child_process.h"

namespace volumed {

// As exec wants them, with null at the end. Valid as long as `words`.
std::vector<char*> ArgumentPointers(const std::vector<std::string>& words);

// Calls setup.paused while the child waits. Threads: any; the child makes system calls alone
// between fork and exec. Blocks: for setup.paused and the exec. Errors: errno of the start, not
// applied; the child is reaped then.
Result<pid_t> StartPaused(const ChildSetup& setup);

}  // namespace volumed
