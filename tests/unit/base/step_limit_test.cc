#include "base/step_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct StepLimitTest : testing::Test {
  StepLimitTest() { scheduler.set_step_limits({.at_one_time = 2000, .in_one_call = 5000}); }

  void PostsItself() {
    scheduler.Post([this] { PostsItself(); });
  }
  void ComesEachMillisecond() {
    scheduler.PostAfter(milliseconds(1), [this] { ComesEachMillisecond(); });
  }
  std::string FailureOf(const std::function<void()>& run) {
    try {
      run();
    } catch (const StepLimitReached& reached) {
      return reached.what();
    }
    return "";
  }

  SimulatedScheduler scheduler{1};
};

TEST_F(StepLimitTest, TasksThatGoInCirclesAreNamed) {
  for (int i = 0; i < 900; ++i) scheduler.Post([] {});
  PostsItself();
  EXPECT_THAT(
      FailureOf([this] { scheduler.RunUntilIdle(milliseconds(1)); }),
      AllOf(HasSubstr("more than 2000 tasks were run while time stood still"),
            HasSubstr("PostsItself"), HasSubstr("(1000 times)"), Not(HasSubstr("TestBody"))));
}

TEST_F(StepLimitTest, EachKindOfRunEnds) {
  PostsItself();
  EXPECT_NE(FailureOf([this] { scheduler.RunFor(milliseconds(1)); }), "");
  PostsItself();
  EXPECT_NE(FailureOf([this] { scheduler.RunUntil([] { return false; }, milliseconds(1)); }), "");
}

TEST_F(StepLimitTest, BlockingTasksCount) {
  const std::function<void()> again = [&] { scheduler.RunBlocking(again); };
  scheduler.RunBlocking(again);
  EXPECT_NE(FailureOf([this] { scheduler.RunUntilIdle(milliseconds(1)); }), "");
}

TEST_F(StepLimitTest, ACallHasALimitThoughTimeMoves) {
  ComesEachMillisecond();
  EXPECT_EQ(FailureOf([this] { scheduler.RunFor(milliseconds(4000)); }), "");
  EXPECT_EQ(FailureOf([this] { scheduler.RunFor(milliseconds(4000)); }), "") << "another call";
  EXPECT_THAT(FailureOf([this] { scheduler.RunFor(milliseconds(6000)); }),
              AllOf(HasSubstr("more than 5000 tasks were run in one call"),
                    HasSubstr("ComesEachMillisecond")));
}

TEST_F(StepLimitTest, ExactlyAsManyAsAllowedAreRun) {
  int ran = 0;
  for (int i = 0; i < 2000; ++i) scheduler.Post([&] { ++ran; });
  EXPECT_EQ(FailureOf([this] { scheduler.RunFor(milliseconds(1)); }), "");
  EXPECT_EQ(ran, 2000);
  for (int i = 0; i < 2001; ++i) scheduler.Post([&] { ++ran; });
  EXPECT_NE(FailureOf([this] { scheduler.RunFor(milliseconds(1)); }), "");
  EXPECT_EQ(ran, 4000);
}

}  // namespace
}  // namespace volumed
