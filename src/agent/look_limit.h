// LookLimit: how long an answer of the control API waits for a look at the node. A look that takes
// longer leaves its part out of the answer.
#pragma once

#include "base/clock.h"

namespace volumed {

// A value. Threads: any. The clock outlives it. A change of the setting concerns the limits that
// are made afterwards.
struct LookLimit {
  const Clock& clock;
  Duration patience;

  Deadline FromNow() const { return Deadline::After(clock, patience); }
};

}  // namespace volumed
