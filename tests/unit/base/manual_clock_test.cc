#include "base/manual_clock.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(ManualClockTest, BothTimesMoveTogetherAndNeverBack) {
  ManualClock clock;
  clock.Advance(milliseconds(1500));
  clock.Advance(milliseconds(-500));
  clock.AdvanceTo(ManualClock::kStart);
  EXPECT_EQ(clock.Now(), ManualClock::kStart + milliseconds(1500));
  EXPECT_EQ(clock.WallUnixMillis(), ManualClock::kStartUnixMillis + 1500);
  clock.AdvanceTo(ManualClock::kStart + seconds(2));
  EXPECT_EQ(clock.WallUnixMillis(), ManualClock::kStartUnixMillis + 2000);
}

TEST(ManualClockTest, SettingTheWallClockLeavesMonotonicTimeAlone) {
  ManualClock clock;
  clock.ShiftWallMillis(-3'600'000);
  EXPECT_EQ(clock.Now(), ManualClock::kStart);
  EXPECT_EQ(clock.WallUnixMillis(), ManualClock::kStartUnixMillis - 3'600'000);
}

TEST(DeadlineTest, PassesWhenItsTimeHasCome) {
  ManualClock clock;
  const Deadline deadline = Deadline::After(clock, seconds(2));
  EXPECT_EQ(deadline.Remaining(clock), seconds(2));
  clock.Advance(milliseconds(1999));
  EXPECT_FALSE(deadline.Passed(clock));
  clock.Advance(milliseconds(1));
  EXPECT_TRUE(deadline.Passed(clock));
  clock.Advance(seconds(5));
  EXPECT_EQ(deadline.Remaining(clock), Duration::zero());
}

TEST(DeadlineTest, InfiniteNeverPasses) {
  ManualClock clock;
  clock.Advance(std::chrono::hours(100000));
  EXPECT_FALSE(Deadline::Infinite().Passed(clock));
  EXPECT_EQ(Deadline::Infinite().Remaining(clock), Duration::max());
}

}  // namespace
}  // namespace volumed
