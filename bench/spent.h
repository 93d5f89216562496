// Spent: what a bench, its workers and its udevd used of the processors. Wall time depends on what
// else a machine does; this does so much less.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace volumed {

struct Spent {
  double agent_ms = 0;    // this process
  double workers_ms = 0;  // workers and tools, dead or alive
  double udevd_ms = 0;    // udevd and its workers
  uint64_t switches = 0;  // of this process, voluntary or not

  double all_ms() const { return agent_ms + workers_ms + udevd_ms; }
};
Spent operator-(const Spent& after, const Spent& before);

// Since the start. Reads /proc: each tool that a worker runs counts once the worker has waited for
// it. Of udevd only one that this process started counts.
Spent SpentUntilNow();

}  // namespace volumed
