// What CopyFile and CopyTree have in common: how fast bytes are copied, and which bytes of a file
// are to be copied at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "os/work_meter.h"

namespace volumed {

// Keeps a copy to its rate, tells how far it is, and hears that it shall stop. `options` outlive
// it. Threads: one.
class CopyPace {
 public:
  // 0: no limit.
  CopyPace(const CallOptions& options, int64_t bytes_per_second)
      : options_(options), bytes_per_second_(bytes_per_second) {}

  // Waits until the rate allows more than these `copied` bytes; `told` is what whoever wants to
  // know is told now and then. Cheap; call it for every step. Blocks: as long as that takes; a
  // cancel is seen within a tenth of a second. Errors: Cancelled, maybe applied.
  Status Wait(int64_t copied, int64_t told);

 private:
  using SteadyClock = std::chrono::steady_clock;

  const CallOptions& options_;
  const int64_t bytes_per_second_;
  const SteadyClock::time_point begin_ = SteadyClock::now();
  SteadyClock::time_point tell_at_ = begin_ + WorkMeter::kInterval;
};

// Copies up to `bytes` of an open file, behind `at`, and answers how many; 0: it ends there.
using CopyStep = std::function<Result<int64_t>(int64_t at, int64_t bytes)>;

// Takes steps through those bytes of an open file, from `from` to `end`, that lie in no hole, until
// one answers 0. Blocks: as the filesystem does. Errors: those of the steps; errno of lseek(2),
// maybe applied, with `what` before it.
Status CopyData(int file, int64_t from, int64_t end, const std::string& what, const CopyStep& step);

// A step by way of this process, in `buffer`, which is its caller's to keep. Errors: errno, maybe
// applied, with `what` before it.
Result<int64_t> CopyBytes(int from, int to, int64_t at, int64_t bytes, std::vector<char>& buffer,
                          const std::string& what);

}  // namespace volumed
