#include "operation/operation_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/operation/operation_lanes_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const LaneHealth kAnswers{.lost = 0, .silent_since = std::nullopt, .has_answered = true};

// 300 operations on one dead mount took a thread each, for as long as their deadline was.
TEST_F(OperationLanesTest, AFilesystemThatHangsTakesNoThreadForThoseWhoWait) {
  for (int pod = 0; pod < 300; ++pod)
    domains_.lanes["/mnt/" + std::to_string(pod)] = "filesystem 0:7";
  Hangs("filesystem 0:7", 2);
  for (int pod = 0; pod < 300; ++pod) Start(pod, "/mnt/" + std::to_string(pod));
  RunAll();
  EXPECT_TRUE(begun_.empty());
  EXPECT_EQ(WaitText(17),
            "WaitForWorker: filesystem 0:7 (test at /mnt) has 2 workers that do not answer since " +
                WallTimeText(scheduler_.clock().WallUnixMillis()) + " (hangs)");
  Start(1000, "other");
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{1000}) << "the healthy one is not concerned";

  domains_.health["filesystem 0:7"] = kAnswers;
  executor_->LanesChanged();
  RunAll();
  EXPECT_EQ(begun_.size(), 301u) << "one after another, as each ends";
  EXPECT_EQ(ended_.size(), 301u);
  EXPECT_EQ(WaitText(17), "");
}

TEST_F(OperationLanesTest, AsManyBeginAsTheLaneHasRoomForAndTheNextWhenOneEnds) {
  for (int pod = 0; pod < 4; ++pod) Start(pod, "nfs:nas");
  EXPECT_EQ(WaitText(0), "");
  EXPECT_EQ(WaitText(1), "");
  EXPECT_THAT(WaitText(2), HasSubstr("NFS server nas has 2 operations under way"));
  EXPECT_TRUE(executor_->IsPending(OperationKey(Of(2)))) << "its key is taken all the same";
  RunAll();
  EXPECT_EQ(begun_.size(), 4u);
}

// Of a thousand volumes of one driver no pod was ready before the last of them was staged.
TEST_F(OperationLanesTest, WhatFinishesGoesBeforeWhatBegins) {
  for (int pod = 0; pod < 5; ++pod) Start(pod, "nfs:nas");
  OperationTraits finishes = TraitsFor(9, "nfs:nas", false);
  finishes.finishes = true;
  ASSERT_EQ(Start(9, finishes), StartResult::kStarted);
  RunAll();
  EXPECT_EQ(begun_, (std::vector<int>{0, 1, 9, 2, 3, 4}));
}

TEST_F(OperationLanesTest, TheOwnFilesystemHasALimitOfItsOwn) {
  for (int pod = 0; pod < 5; ++pod) Start(pod, "");
  EXPECT_EQ(WaitText(2), "");
  EXPECT_THAT(WaitText(3), HasSubstr("the agent's own filesystem has 3 operations under way"));
  Start(9, "nfs:nas");
  EXPECT_EQ(WaitText(9), "");
  RunAll();
  EXPECT_EQ(begun_.size(), 6u);
}

// One more pod beside a burst of a thousand was ready after all of them.
TEST_F(OperationLanesTest, OneMoreDoesNotWaitForABurst) {
  for (int pod = 0; pod < 50; ++pod) Start(pod, "");
  scheduler_.manual_clock().Advance(std::chrono::seconds(1));
  Start(99, "");
  RunAll();
  ASSERT_EQ(begun_.size(), 51u);
  const auto one_more = std::find(begun_.begin(), begun_.end(), 99);
  EXPECT_LT(one_more - begun_.begin(), 10) << "as soon as one of the three that run has ended";
}

// It waited for all of them if it came in the first hundred milliseconds.
TEST_F(OperationLanesTest, OneMoreDoesNotWaitForABurstThatComesAtThisMoment) {
  for (int pod = 0; pod < 50; ++pod) Start(pod, "", /*takes_away=*/false, /*with_many=*/true);
  for (int pod = 90; pod < 95; ++pod) Start(pod, "");
  RunAll();
  ASSERT_EQ(begun_.size(), 55u);
  const auto last = std::find(begun_.begin(), begun_.end(), 94);
  EXPECT_LT(last - begun_.begin(), 20) << "every other place is for those who come alone";
}

// Three hundred operations that wait for a device would else keep every pod from its emptyDirs.
TEST_F(OperationLanesTest, WhatWaitsForADeviceTakesNoPlaceOfTheOwnFilesystem) {
  for (int pod = 0; pod < 5; ++pod) Start(pod, kUnboundLane);
  Start(9, "");
  EXPECT_EQ(WaitText(9), "");
  RunAll();
  EXPECT_EQ(begun_.size(), 6u);
}

TEST_F(OperationLanesTest, OneThatWaitsIsGivenUpAndItsKeyIsFreeAtOnce) {
  Hangs("nfs:nas", 2);
  Start(1, "nfs:nas");
  RunAll();
  executor_->GiveUpWaiting(OperationKey(Of(1)));
  EXPECT_TRUE(ended_.empty()) << "not while the caller is in the midst of something";
  RunAll();
  EXPECT_EQ(ended_[1], "given up while it waited for a worker");
  EXPECT_FALSE(executor_->IsPending(OperationKey(Of(1))));
  EXPECT_FALSE(executor_->NextTry(OperationKey(Of(1)))) << "it failed at nothing";
  domains_.health["nfs:nas"] = kAnswers;
  executor_->LanesChanged();
  RunAll();
  EXPECT_TRUE(begun_.empty());
}

TEST_F(OperationLanesTest, OneWhoseFilesystemIsLookedForIsGivenUpToo) {
  domains_.lanes["/mnt/a"] = "filesystem 0:7";
  Start(1, "/mnt/a");
  EXPECT_THAT(WaitText(1), HasSubstr("which filesystem its path lies on"));
  executor_->GiveUpWaiting(OperationKey(Of(1)));
  RunAll();
  EXPECT_EQ(domains_.located, 1);
  EXPECT_EQ(ended_[1], "given up while it waited for a worker");
  EXPECT_TRUE(begun_.empty());
}

// Pods of filesystems that hung were deleted; what those had lost was counted for ever after.
TEST_F(OperationLanesTest, ALaneThatNobodyWaitsForAnyMoreTakesNoPlacesFromOthers) {
  for (int pod = 0; pod < 20; ++pod) {
    const std::string lane = "filesystem 0:" + std::to_string(pod);
    Hangs(lane, 2);
    Start(pod, lane);
    EXPECT_NE(WaitText(pod), "");
    executor_->GiveUpWaiting(OperationKey(Of(pod)));
  }
  Start(1000, "nfs:nas");
  EXPECT_EQ(WaitText(1000), "");
}

// Hundreds of pods that come at once had a thread each for the moment of the look-up.
TEST_F(OperationLanesTest, PathsAreLookedUpByOneThreadHoweverManyComeAtOnce) {
  for (int pod = 0; pod < 300; ++pod) Start(pod, "/mnt/" + std::to_string(pod));
  int look_ups = 0;
  for (int before = 0; scheduler_.RunOne(); before = domains_.located) {
    if (domains_.located > before) ++look_ups;
  }
  EXPECT_EQ(look_ups, 2) << "one for the first, and one for all that came meanwhile";
  EXPECT_EQ(domains_.located, 300);
  EXPECT_EQ(begun_.size(), 300u);
}

TEST_F(OperationLanesTest, OneThatRunsGoesOn) {
  Start(1, "nfs:nas");
  executor_->GiveUpWaiting(OperationKey(Of(1)));
  RunAll();
  EXPECT_EQ(ended_[1], "done");
}

// A dead server's volume is taken away by force, beside the workers that are lost with it.
TEST_F(OperationLanesTest, WhatTakesAwayDoesNotWaitForLostWorkersAndIsNotGivenUp) {
  Hangs("nfs:nas", 2);
  Start(1, "nfs:nas", true);
  Start(2, "nfs:nas", true);
  Start(3, "nfs:nas", true);
  EXPECT_EQ(WaitText(1), "");
  EXPECT_NE(WaitText(3), "") << "but no more of them at once than the lane may have";
  executor_->GiveUpWaiting(OperationKey(Of(3)));
  RunAll();
  EXPECT_EQ(begun_.size(), 3u);
}

TEST_F(OperationLanesTest, ASilentLaneIsTriedByOneOperationAtATime) {
  domains_.health["nfs:nas"] = {.lost = 0, .silent_since = scheduler_.clock().Now()};
  Start(1, "nfs:nas");
  Start(2, "nfs:nas");
  EXPECT_EQ(WaitText(1), "");
  EXPECT_THAT(WaitText(2), HasSubstr("does not answer since"));
  EXPECT_THAT(WaitText(2), HasSubstr("one operation at a time tries it (hangs)"));
}

// Else the last of the places would be kept for lanes that have answered, of which there are none.
TEST_F(OperationLanesTest, WithoutFaultDomainsEachLaneIsHealthyAndAllPlacesAreUsed) {
  executor_ = std::make_unique<OperationExecutor>(scheduler_, logger_, observer_, nullptr, kLimits);
  for (int pod = 0; pod < 9; ++pod) Start(pod, "lane " + std::to_string(pod));
  for (int pod = 0; pod < 8; ++pod) EXPECT_EQ(WaitText(pod), "") << pod;
  EXPECT_THAT(WaitText(8), HasSubstr("as many operations are under way"));
  RunAll();
  EXPECT_EQ(begun_.size(), 9u);
}

TEST_F(OperationLanesTest, HigherLimitsAdmitAtOnce) {
  for (int pod = 0; pod < 3; ++pod) Start(pod, "nfs:nas");
  EXPECT_NE(WaitText(2), "");
  executor_->SetLimits({.places = 8, .per_lane = 3, .own_lane = 3});
  EXPECT_EQ(WaitText(2), "");
}

TEST_F(OperationLanesTest, AnAgentThatEndsLeavesThoseWhoWaitAlone) {
  domains_.lanes["/mnt/a"] = "filesystem 0:7";
  Hangs("nfs:nas", 2);
  Start(1, "nfs:nas");
  Start(2, "/mnt/a");
  executor_.reset();
  RunAll();
  EXPECT_TRUE(begun_.empty());
  EXPECT_TRUE(ended_.empty());
}

}  // namespace
}  // namespace volumed
