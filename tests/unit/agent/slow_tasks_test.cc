#include "agent/slow_tasks.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Longest = std::map<std::string, Duration>;

TEST(SlowTasksTest, EachOfSeveralWhoAskSeesTheLongestRunOfEachTask) {
  ManualClock clock;
  SlowTasks tasks(clock);
  tasks.Ran("Load", milliseconds(7));
  tasks.Ran("Load", milliseconds(30));
  tasks.Ran("Load", milliseconds(9));
  tasks.Ran("Wake", milliseconds(6));
  const Longest expected = {{"Load", milliseconds(30)}, {"Wake", milliseconds(6)}};
  EXPECT_EQ(tasks.Longest(), expected);
  EXPECT_EQ(tasks.Longest(), expected);
}

TEST(SlowTasksTest, ATaskIsToldForAMinuteAndForgottenAfterTwo) {
  ManualClock clock;
  SlowTasks tasks(clock);
  clock.Advance(seconds(59));
  tasks.Ran("Load", milliseconds(30));
  clock.Advance(seconds(60));
  EXPECT_EQ(tasks.Longest().size(), 1u);
  clock.Advance(seconds(61));
  EXPECT_EQ(tasks.Longest(), Longest{});
}

TEST(SlowTasksTest, NothingOfLongAgoIsLeftAfterARest) {
  ManualClock clock;
  SlowTasks tasks(clock);
  tasks.Ran("Load", milliseconds(30));
  clock.Advance(seconds(121));
  EXPECT_EQ(tasks.Longest(), Longest{});
}

}  // namespace
}  // namespace volumed
