// Whether a place on the node answers at all: asked in a worker, before this process itself goes
// where it could wait for ever.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// How long a place may take, if the caller knows no other limit.
inline constexpr Duration kAnswerPatience = std::chrono::seconds(3);

// The end of that time, from now on; or `deadline`, if that is earlier.
inline Deadline AnswerBy(const Clock& clock, const Deadline& deadline) {
  const Deadline patience = Deadline::After(clock, kAnswerPatience);
  return patience.when() < deadline.when() ? patience : deadline;
}

// OK if the place answers, well or not: also one that is missing or says EIO.
// Threads: any. Blocks: for `patience` at most, and a worker.
// Errors: DeadlineExceeded, not applied: "/mnt/far does not answer".
Status CheckAnswers(Kernel& kernel, const Clock& clock, const std::string& path,
                    Duration patience = kAnswerPatience);

}  // namespace volumed
