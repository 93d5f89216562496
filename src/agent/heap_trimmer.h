// HeapTrimmer: gives memory that nobody needs any more back to the system, a moment after pods have
// come or gone: the heap would keep what a burst took, and what deleted pods had.
#pragma once

#include <functional>

#include "base/scheduler.h"

namespace volumed {

// Few large blocks are kept by the heap, and by few threads: what is large is given back at once.
// Called once, before there are threads.
void LimitHeap();

// Threads: the control thread. Blocks: never.
class HeapTrimmer {
 public:
  // `trim` blocks, and runs beside the control thread. The scheduler outlives this, and this its
  // tasks.
  HeapTrimmer(Scheduler& scheduler, std::function<void()> trim);

  // Something has come or gone. However many do, memory is given back once in a while.
  void Changed();

 private:
  Scheduler& scheduler_;
  const std::function<void()> trim_;
  bool armed_ = false;
};

// As the C library does it.
void TrimHeap();

}  // namespace volumed
