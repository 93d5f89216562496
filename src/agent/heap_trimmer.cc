#include "agent/heap_trimmer.h"

#include <malloc.h>

#include <utility>

namespace volumed {
namespace {

// A burst of pods is over by then, or goes on and is trimmed again.
constexpr auto kPause = std::chrono::seconds(5);
// Without a fixed one the threshold grows to 32 MiB with the first text of a scrape that is freed.
constexpr int kLargeBlock = 256 * 1024;
// What the heap keeps for what comes next, so that a burst does not ask the system at each turn.
constexpr int kKeptAtTop = 8 * 1024 * 1024;
// Each thread would have one; what executor threads free would be spread over all of them.
constexpr int kMostArenas = 4;

}  // namespace

void LimitHeap() {
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  ::mallopt(M_TRIM_THRESHOLD, kKeptAtTop);
  ::mallopt(M_ARENA_MAX, kMostArenas);
}

void TrimHeap() { ::malloc_trim(0); }

HeapTrimmer::HeapTrimmer(Scheduler& scheduler, std::function<void()> trim)
    : scheduler_(scheduler), trim_(std::move(trim)) {}

void HeapTrimmer::Changed() {
  if (std::exchange(armed_, true)) return;
  scheduler_.PostAfter(kPause, [this] {
    armed_ = false;
    scheduler_.RunBlocking(trim_);
  });
}

}  // namespace volumed
