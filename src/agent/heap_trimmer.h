// HeapTrimmer: gives free memory of the heap back to the system, a moment after pods have come or
// gone. The heap would otherwise keep what a burst took, and what deleted pods had.
#pragma once

#include <functional>

#include "base/scheduler.h"

namespace volumed {

// Limits what the C library's heap keeps: large blocks go back to the system when they are freed,
// and few arenas are used. REQUIRES: it is called once, before there are threads.
void LimitHeap();

// Threads: the control thread. Blocks: never.
class HeapTrimmer {
 public:
  // `trim` blocks, and runs on an executor thread. The scheduler outlives this object, and this
  // object outlives the tasks that it posts.
  HeapTrimmer(Scheduler& scheduler, std::function<void()> trim);

  // Says that pods or objects have come or gone. Memory is given back five seconds later, at once
  // for all calls until then.
  void Changed();

 private:
  Scheduler& scheduler_;
  const std::function<void()> trim_;
  bool armed_ = false;
};

// Gives the C library's free memory back (malloc_trim). Threads: any. Blocks: while it walks the
// heap, whose arenas it locks.
void TrimHeap();

}  // namespace volumed
