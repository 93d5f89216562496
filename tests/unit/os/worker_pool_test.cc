// The pool with workers that a test plays: who gets one, and what becomes of those that do not
// answer.
#include "os/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_workers.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr milliseconds kShort(60);  // a deadline that is to pass
constexpr int kMaxWorkers = 8;
constexpr int kMaxPerDomain = 2;

class WorkerPoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WorkerPool::Parts parts{workers_.starter(), kMaxWorkers, kMaxPerDomain, /*fast_workers=*/1,
                            [this] { ++lanes_changed_; }};
    auto pool = WorkerPool::Create(std::move(parts), clock_);
    ASSERT_TRUE(pool.ok());
    pool_ = std::move(pool).value();
  }
  void TearDown() override {
    workers_.Heal();
    pool_.reset();
  }

  Result<AnyAnswer> Ask(const std::string& lane, milliseconds timeout = seconds(20),
                        const std::vector<std::string>& keys = {}) {
    CallOptions options;
    options.domain = lane;
    options.more_keys = keys;
    options.deadline = Deadline::After(clock_, timeout);
    return pool_->Do(StatFs{SafePath{"/somewhere", ""}}, options);
  }
  // A call that is killed, and whose worker lives on.
  void Lose(const std::string& lane) {
    workers_.SetMood(WorkerMood::kHangsInTheKernel);
    const auto answer = Ask(lane, kShort);
    workers_.SetMood(WorkerMood::kAnswers);
    ASSERT_FALSE(answer.ok());
    ASSERT_TRUE(answer.error().maybe_applied()) << answer.error().ToString();
  }
  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 4000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }

  RealClock clock_;
  FakeWorkers workers_;
  std::atomic<int> lanes_changed_{0};
  std::unique_ptr<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, AnAnswerIsGivenAndItsWorkerIsKept) {
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(Ask("").ok());
    ASSERT_TRUE(Ask("disk").ok());
  }
  EXPECT_EQ(workers_.started(), 2);
  EXPECT_EQ(pool_->stats().requests, 20u);
  EXPECT_EQ(pool_->stats().busy, 0);
  EXPECT_EQ(pool_->stats().idle, 2);
}

TEST_F(WorkerPoolTest, CallsWithoutADomainGoOneAfterAnother) {
  workers_.SetMood(WorkerMood::kHangs);
  std::thread first([&] { EXPECT_TRUE(Ask("").ok()); });
  ASSERT_TRUE(Eventually([&] { return workers_.taken() == 1; }));
  std::thread second([&] { EXPECT_TRUE(Ask("").ok()); });
  ASSERT_TRUE(Eventually([&] { return pool_->stats().waiting == 1; }));
  EXPECT_EQ(workers_.taken(), 1) << "there is one fast lane, with one worker";
  workers_.Heal();
  first.join();
  second.join();
  EXPECT_EQ(workers_.taken(), 2);
  EXPECT_EQ(workers_.started(), 2);
}

TEST_F(WorkerPoolTest, AKeyIsHeldByOneCallAtATimeAndByAWorkerThatDoesNotDie) {
  workers_.SetMood(WorkerMood::kHangsInTheKernel);
  EXPECT_TRUE(Ask("disk", kShort, {"a", "b"}).error().maybe_applied());
  workers_.SetMood(WorkerMood::kAnswers);
  EXPECT_EQ(Ask("", seconds(20), {"b"}).error().code(), Code::kAborted);
  EXPECT_TRUE(Ask("", seconds(20), {"c"}).ok());
  EXPECT_TRUE(Ask("", seconds(20), {"c"}).ok()) << "it was given back";
  workers_.Heal();
  EXPECT_TRUE(Eventually([&] { return Ask("", seconds(20), {"b"}).ok(); }));
  EXPECT_TRUE(Ask("", seconds(20), {"a"}).ok());
}

TEST_F(WorkerPoolTest, ADeadIdleWorkerIsReplacedWithoutAnError) {
  workers_.EndIdle();
  ASSERT_TRUE(Eventually([&] { return workers_.alive() == 0; }));
  EXPECT_TRUE(Ask("").ok());
  EXPECT_TRUE(Ask("disk").ok());
  EXPECT_EQ(workers_.started(), 4);
  EXPECT_EQ(pool_->stats().died, 0u) << "none had a request";
}

TEST_F(WorkerPoolTest, WorkersThatAllDieAtTheirStartAreAnErrorAndNothingWasDone) {
  workers_.EndIdle();
  ASSERT_TRUE(Eventually([&] { return workers_.alive() == 0; }));
  workers_.SetMood(WorkerMood::kDiesAtItsStart);
  const auto answer = Ask("disk");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_FALSE(answer.error().maybe_applied());
  EXPECT_LT(workers_.started(), 10) << "it does not try for ever";
}

TEST_F(WorkerPoolTest, AWorkerThatDiesWithItsRequestIsMaybeApplied) {
  workers_.SetMood(WorkerMood::kDiesWithItsRequest);
  const auto answer = Ask("disk");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_TRUE(answer.error().maybe_applied());
  EXPECT_EQ(pool_->stats().died, 1u);
  workers_.SetMood(WorkerMood::kAnswers);
  EXPECT_TRUE(Ask("disk").ok());
}

TEST_F(WorkerPoolTest, AWorkerThatCannotBeStartedIsNotApplied) {
  workers_.SetMood(WorkerMood::kDiesWithItsRequest);
  ASSERT_FALSE(Ask("disk").ok());  // the warm one is gone
  workers_.FailToStart(true);
  const auto answer = Ask("disk");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_EQ(answer.error().sys_errno(), EAGAIN);
  EXPECT_FALSE(answer.error().maybe_applied());
  workers_.FailToStart(false);
  workers_.SetMood(WorkerMood::kAnswers);
  EXPECT_TRUE(Ask("disk").ok()) << "its place was given back";
}

TEST_F(WorkerPoolTest, AnAnswerThatBeatTheKillCounts) {
  workers_.SetMood(WorkerMood::kAnswersWhenKilled);
  EXPECT_TRUE(Ask("disk", kShort).ok());
  EXPECT_EQ(pool_->stats().killed, 1u);
  EXPECT_EQ(pool_->stats().deadline_exceeded, 0u);
  EXPECT_FALSE(pool_->HealthOf("disk").silent_since) << "it has answered";
}

TEST_F(WorkerPoolTest, ALostWorkerCountsForItsLaneUntilItIsDead) {
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  EXPECT_EQ(pool_->HealthOf("dead").lost, kMaxPerDomain);
  const int taken = workers_.taken();
  const auto refused = Ask("dead", kShort);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied()) << "it has waited, and done nothing";
  EXPECT_EQ(workers_.taken(), taken);
  EXPECT_TRUE(Ask("other").ok());
  workers_.Heal();
  ASSERT_TRUE(Eventually([&] { return pool_->HealthOf("dead").lost == 0; }));
  EXPECT_TRUE(Ask("dead").ok());
}

TEST_F(WorkerPoolTest, ThoseWhoWaitGoOnAsSoonAsALostWorkerIsDead) {
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  std::thread waits([&] { EXPECT_TRUE(Ask("dead").ok()); });
  ASSERT_TRUE(Eventually([&] { return pool_->stats().waiting == 1; }));
  const int before = lanes_changed_;
  workers_.Heal();
  waits.join();
  EXPECT_TRUE(Eventually([&] { return lanes_changed_ > before; }));
}

// Many dead paths took 1,300 workers.
TEST_F(WorkerPoolTest, ProcessesStayBoundedHoweverManyLanesAreDeadAndAHealthyOneGoesOn) {
  ASSERT_TRUE(Ask("healthy").ok());
  for (int lane = 0; lane < 12; ++lane) {
    workers_.SetMood(WorkerMood::kHangsInTheKernel);
    const auto answer = Ask("dead " + std::to_string(lane), kShort);
    EXPECT_FALSE(answer.ok());
    workers_.SetMood(WorkerMood::kAnswers);
    EXPECT_TRUE(Ask("healthy").ok());
    EXPECT_TRUE(Ask("").ok());
  }
  EXPECT_LE(workers_.most_alive(), kMaxWorkers + 2) << "the fast one, and the healthy lane's";
  EXPECT_EQ(pool_->stats().killed, 7u) << "six of eight, and one try of the reserve";
}

TEST_F(WorkerPoolTest, AFullLaneOfStuckWorkersIsRefusedAtOnceAndSoAreThoseWhoWaitForIt) {
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  ASSERT_NO_FATAL_FAILURE(Lose("dead"));
  // Two seconds after the kill it is known that they do not die.
  const auto waited = Ask("dead", seconds(20));
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code(), Code::kUnavailable);
  EXPECT_FALSE(waited.error().maybe_applied());
  EXPECT_THAT(waited.error().message(), HasSubstr("2 workers are stuck in dead"));
  EXPECT_EQ(pool_->stuck_operations().size(), 2u);
  const auto begin = clock_.Now();
  EXPECT_EQ(Ask("dead", seconds(20)).error().code(), Code::kUnavailable);
  EXPECT_LT(clock_.Now() - begin, seconds(1));
}

TEST_F(WorkerPoolTest, ALaneThatDoesNotAnswerGetsOneWorkerAtATimeUntilItDoes) {
  workers_.SetMood(WorkerMood::kHangs);
  ASSERT_FALSE(Ask("hung", kShort).ok());
  ASSERT_TRUE(pool_->HealthOf("hung").silent_since);
  const int taken = workers_.taken();
  std::vector<std::thread> calls;
  for (int i = 0; i < 3; ++i) calls.emplace_back([&] { EXPECT_TRUE(Ask("hung").ok()); });
  // The third call has its worker when the others wait, and takes the request a moment later.
  EXPECT_TRUE(
      Eventually([&] { return pool_->stats().waiting == 2 && workers_.taken() == taken + 1; }));
  workers_.Heal();
  for (std::thread& call : calls) call.join();
  EXPECT_FALSE(pool_->HealthOf("hung").silent_since);
}

TEST_F(WorkerPoolTest, ProgressIsAnAnswer) {
  workers_.SetMood(WorkerMood::kHangs);
  ASSERT_FALSE(Ask("slow", kShort).ok());
  workers_.SetMood(WorkerMood::kReportsProgress);
  std::thread call([&] { EXPECT_TRUE(Ask("slow").ok()); });
  EXPECT_TRUE(Eventually([&] { return !pool_->HealthOf("slow").silent_since; }));
  workers_.Heal();
  call.join();
}

TEST_F(WorkerPoolTest, AWorkerIsToldWhenItMayBeKilledAndThatItMayNot) {
  ASSERT_TRUE(Ask("disk", seconds(20)).ok());
  ASSERT_TRUE(workers_.last_time_left());
  EXPECT_LE(*workers_.last_time_left(), seconds(20));
  EXPECT_GT(*workers_.last_time_left(), seconds(10));
  CallOptions options;
  options.domain = "disk";
  options.must_finish = true;
  options.deadline = Deadline::After(clock_, seconds(20));
  ASSERT_TRUE(pool_->Do(StatFs{SafePath{"/somewhere", ""}}, options).ok());
  EXPECT_FALSE(workers_.last_time_left()) << "it must finish, also if the agent stops";
}

TEST_F(WorkerPoolTest, WhatMustFinishOutlastsItsDeadline) {
  workers_.SetMood(WorkerMood::kHangs);
  std::thread call([&] {
    CallOptions options;
    options.domain = "disk";
    options.must_finish = true;
    options.deadline = Deadline::After(clock_, kShort);
    EXPECT_TRUE(pool_->Do(StatFs{SafePath{"/somewhere", ""}}, options).ok());
  });
  EXPECT_TRUE(Eventually([&] { return pool_->stats().slow_now == 1; }));
  workers_.Heal();
  call.join();
  EXPECT_EQ(pool_->stats().killed, 0u);
}

}  // namespace
}  // namespace volumed
