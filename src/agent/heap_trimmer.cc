#include "agent/heap_trimmer.h"

#include <malloc.h>

#include <utility>

namespace volumed {
namespace {

// By then a burst of pods is over, or it goes on and the heap is trimmed again.
constexpr auto kPause = std::chrono::seconds(5);
// Without a fixed threshold, the C library would raise it to 32 MiB when the first text of a scrape
// is freed.
constexpr int kLargeBlock = 256 * 1024;
// What the heap keeps for later use, so that a burst does not ask the system all the time.
constexpr int kKeptAtTop = 8 * 1024 * 1024;
// Otherwise each thread would have an arena, and what executor threads free would be spread over
// all of them.
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
