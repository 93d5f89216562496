#include "base/task_limit.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

TEST(TaskLimitTest, TheFirstPieceMayAlwaysBeDoneAndNoOtherOnceTheTimeHasPassed) {
  ManualClock clock;
  TaskLimit limit(clock);
  clock.Advance(TaskLimit::kLongest);
  EXPECT_FALSE(limit.IsReached());
  EXPECT_TRUE(limit.TakeOne());
  EXPECT_TRUE(limit.IsReached());
  EXPECT_FALSE(limit.TakeOne());
}

TEST(TaskLimitTest, AClockThatStandsStillLetsNoTaskGoOnForEver) {
  const ManualClock clock;
  TaskLimit limit(clock, 2);
  EXPECT_TRUE(limit.TakeOne());
  EXPECT_FALSE(limit.IsReached());
  EXPECT_TRUE(limit.TakeOne());
  EXPECT_TRUE(limit.IsReached());
  EXPECT_FALSE(limit.TakeOne());
}

}  // namespace
}  // namespace volumed
