#include "base/simulated_scheduler.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>

namespace volumed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Eight blocking tasks, each posting a control task; digits for the first, letters for the second.
std::string OrderWithSeed(uint64_t seed) {
  SimulatedScheduler scheduler(seed);
  std::string order;
  for (char i = 0; i < 8; ++i) {
    scheduler.RunBlocking([&, i] {
      order += static_cast<char>('0' + i);
      scheduler.Post([&, i] { order += static_cast<char>('a' + i); });
    });
  }
  EXPECT_TRUE(scheduler.RunUntilIdle(Duration::zero()));
  return order;
}

TEST(SimulatedSchedulerTest, TheSameSeedGivesTheSameRun) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::string order = OrderWithSeed(seed);
    EXPECT_EQ(order.size(), 16u);
    EXPECT_EQ(order, OrderWithSeed(seed));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 40u) << "other seeds give other runs";
}

TEST(SimulatedSchedulerTest, ControlTasksStayInOrderOfPosting) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedScheduler scheduler(seed);
    std::string order;
    for (char c = 'a'; c <= 'h'; ++c) {
      scheduler.Post([&order, c] { order += c; });
      scheduler.RunBlocking([] {});
    }
    scheduler.RunUntilIdle(Duration::zero());
    EXPECT_EQ(order, "abcdefgh");
  }
}

TEST(SimulatedSchedulerTest, TimeJumpsToTheNextTimerWhenNothingIsReady) {
  SimulatedScheduler scheduler(1);
  const TimePoint start = scheduler.clock().Now();
  TimePoint first;
  TimePoint second;
  scheduler.PostAfter(hours(5), [&] { second = scheduler.clock().Now(); });
  scheduler.PostAfter(seconds(3), [&] {
    first = scheduler.clock().Now();
    scheduler.PostAfter(seconds(4), [] {});
  });
  EXPECT_TRUE(scheduler.RunUntilIdle(hours(6)));
  EXPECT_EQ(first, start + seconds(3));
  EXPECT_EQ(second, start + hours(5));
  EXPECT_EQ(scheduler.clock().Now(), start + hours(5)) << "no further than needed";
}

TEST(SimulatedSchedulerTest, RunUntilIdleStopsAtItsLimit) {
  SimulatedScheduler scheduler(1);
  const TimePoint start = scheduler.clock().Now();
  int ticks = 0;
  std::function<void()> tick = [&] {
    ++ticks;
    scheduler.PostAfter(seconds(10), tick);
  };
  scheduler.Post(tick);
  EXPECT_FALSE(scheduler.RunUntilIdle(seconds(35)));
  EXPECT_EQ(ticks, 4);
  EXPECT_EQ(scheduler.clock().Now(), start + seconds(35));
  scheduler.RunFor(seconds(5));
  EXPECT_EQ(ticks, 5);
}

TEST(SimulatedSchedulerTest, TimersOfOneMomentRunInOrder) {
  SimulatedScheduler scheduler(3);
  std::string order;
  for (char c = 'a'; c <= 'e'; ++c) {
    scheduler.PostAfter(seconds(1), [&order, c] { order += c; });
  }
  scheduler.RunFor(milliseconds(999));
  EXPECT_EQ(order, "");
  scheduler.RunFor(milliseconds(1));
  EXPECT_EQ(order, "abcde");
}

TEST(SimulatedSchedulerTest, CancelledTimersDoNotRun) {
  SimulatedScheduler scheduler(1);
  bool ran = false;
  const TimerId timer = scheduler.PostAfter(seconds(1), [&ran] { ran = true; });
  EXPECT_TRUE(scheduler.Cancel(timer));
  EXPECT_FALSE(scheduler.Cancel(timer));
  EXPECT_FALSE(scheduler.Cancel(0));
  EXPECT_TRUE(scheduler.RunUntilIdle(seconds(2)));
  EXPECT_FALSE(ran);
}

TEST(SimulatedSchedulerTest, ADueTimerCanStillBeCancelledByATaskBeforeIt) {
  SimulatedScheduler scheduler(1);
  bool ran = false;
  bool cancelled = false;
  TimerId second = 0;
  scheduler.PostAfter(seconds(1), [&] { cancelled = scheduler.Cancel(second); });
  second = scheduler.PostAfter(seconds(1), [&ran] { ran = true; });
  scheduler.RunFor(seconds(1));
  EXPECT_TRUE(cancelled);
  EXPECT_FALSE(ran);
}

TEST(SimulatedSchedulerTest, OnControlThreadOnlyInControlTasks) {
  SimulatedScheduler scheduler(1);
  bool in_control = false;
  bool in_timer = false;
  bool in_blocking = true;
  scheduler.Post([&] { in_control = scheduler.OnControlThread(); });
  scheduler.PostAfter(seconds(1), [&] { in_timer = scheduler.OnControlThread(); });
  scheduler.RunBlocking([&] { in_blocking = scheduler.OnControlThread(); });
  scheduler.RunFor(seconds(1));
  EXPECT_TRUE(in_control);
  EXPECT_TRUE(in_timer);
  EXPECT_FALSE(in_blocking);
  EXPECT_FALSE(scheduler.OnControlThread());
}

TEST(SimulatedSchedulerTest, ABlockingTaskMayTakeVirtualTime) {
  SimulatedScheduler scheduler(1);
  std::string order;
  scheduler.PostAfter(seconds(1), [&order] { order += 't'; });
  scheduler.RunBlocking([&] {
    scheduler.manual_clock().Advance(seconds(5));
    order += 'b';
  });
  scheduler.RunFor(Duration::zero());
  EXPECT_EQ(order, "bt") << "the timer became due meanwhile";
}

TEST(SimulatedSchedulerTest, RunUntilStopsAsSoonAsItHolds) {
  SimulatedScheduler scheduler(1);
  int ticks = 0;
  std::function<void()> tick = [&] {
    ++ticks;
    scheduler.PostAfter(seconds(1), tick);
  };
  scheduler.Post(tick);
  EXPECT_TRUE(scheduler.RunUntil([&] { return ticks == 5; }, hours(1)));
  EXPECT_EQ(scheduler.clock().Now(), ManualClock::kStart + seconds(4));
  EXPECT_FALSE(scheduler.RunUntil([] { return false; }, milliseconds(500)));
  EXPECT_EQ(ticks, 5);
  EXPECT_EQ(scheduler.clock().Now(), ManualClock::kStart + milliseconds(4500));
}

TEST(SimulatedSchedulerTest, ACrashLeavesRunAndQueuedTasksAreDestroyedUnrun) {
  ManualClock clock;
  const auto held = std::make_shared<int>(0);
  int ran_after_crash = 0;
  {
    SimulatedScheduler scheduler(7, clock);
    scheduler.Post([] { throw std::runtime_error("killed"); });
    const Task later = [held, &ran_after_crash] { ++ran_after_crash; };
    scheduler.Post(later);
    scheduler.PostAfter(seconds(1), later);
    EXPECT_THROW(scheduler.RunUntilIdle(hours(1)), std::runtime_error);
    EXPECT_FALSE(scheduler.OnControlThread());
    scheduler.RunBlocking(later);
  }
  EXPECT_EQ(ran_after_crash, 0);
  EXPECT_EQ(held.use_count(), 1);
}

// Posts when it goes, as a completion that reports being dropped does.
struct PostsWhenDestroyed {
  Scheduler& scheduler;
  int& ran;
  ~PostsWhenDestroyed() {
    scheduler.Post([&counter = ran] { ++counter; });
    scheduler.PostAfter(seconds(1), [&counter = ran] { ++counter; });
    scheduler.RunBlocking([&counter = ran] { ++counter; });
  }
};

TEST(SimulatedSchedulerTest, WhatADestructorPostsIntoADroppedSchedulerIsDropped) {
  int ran = 0;
  {
    SimulatedScheduler scheduler(7);
    std::shared_ptr<PostsWhenDestroyed> poster(new PostsWhenDestroyed{scheduler, ran});
    scheduler.Post([poster] {});
    scheduler.RunBlocking([poster] {});
    scheduler.PostAfter(seconds(1), [poster] {});
    poster.reset();
  }
  EXPECT_EQ(ran, 0);
}

TEST(SimulatedSchedulerTest, ACrashInABlockingTaskLeavesTheRestRunnable) {
  SimulatedScheduler scheduler(1);
  bool ran = false;
  scheduler.RunBlocking([] { throw std::runtime_error("killed"); });
  EXPECT_THROW(scheduler.RunFor(seconds(1)), std::runtime_error);
  scheduler.Post([&ran] { ran = true; });
  scheduler.RunFor(Duration::zero());
  EXPECT_TRUE(ran);
}

TEST(SimulatedSchedulerTest, AClockGoesOnOverASimulatedRestart) {
  ManualClock clock;
  {
    SimulatedScheduler scheduler(1, clock);
    scheduler.RunFor(seconds(9));
  }
  SimulatedScheduler scheduler(1, clock);
  EXPECT_EQ(scheduler.clock().Now(), ManualClock::kStart + seconds(9));
}

}  // namespace
}  // namespace volumed
