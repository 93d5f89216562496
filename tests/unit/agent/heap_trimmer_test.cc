#include "agent/heap_trimmer.h"

#include <gtest/gtest.h>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

using std::chrono::seconds;

TEST(HeapTrimmerTest, MemoryIsGivenBackOnceForManyChangesAndNotAtRest) {
  SimulatedScheduler scheduler{1};
  int trimmed = 0;
  HeapTrimmer trimmer(scheduler, [&] {
    ++trimmed;
    EXPECT_FALSE(scheduler.OnControlThread());
  });
  scheduler.RunFor(seconds(60));
  EXPECT_EQ(trimmed, 0);
  for (int i = 0; i < 1000; ++i) trimmer.Changed();
  scheduler.RunFor(seconds(60));
  EXPECT_EQ(trimmed, 1);
  trimmer.Changed();
  scheduler.RunFor(seconds(60));
  EXPECT_EQ(trimmed, 2);
}

}  // namespace
}  // namespace volumed
