// LookLimit: how long an answer of the control API waits for a look at the node.
#pragma once

#include "base/clock.h"

namespace volumed {

// A value. Threads: any. The clock outlives it.
struct LookLimit {
  const Clock& clock;
  Duration patience;

  Deadline FromNow() const { return Deadline::After(clock, patience); }
};

}  // namespace volumed
