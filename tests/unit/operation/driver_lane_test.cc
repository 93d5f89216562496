// Lanes of drivers: they are closed while the driver is away, and as wide as it can take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/operation/operation_lanes_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class DriverLaneTest : public OperationLanesTest {
 protected:
  static constexpr char kLane[] = "csi:disks.test.io";

  DriverLaneTest() {
    domains_.why_closed[kLane] = "CSI driver disks.test.io is gone since 10:00: connection refused";
  }
  void Be(LaneHealth health) {
    domains_.health[kLane] = health;
    executor_->LanesChanged();
  }
  static LaneHealth Open(int width) { return {.has_answered = true, .width = width}; }
  // Registered no more, but connected still.
  static LaneHealth OpenToTeardown() { return {.has_answered = true, .width = 4, .closed = true}; }
  static LaneHealth Away() {
    return {.has_answered = true, .width = 4, .closed = true, .closed_to_teardown = true};
  }
  // An operation that has the volume's device for itself.
  StartResult StartAlone(int pod, bool takes_away) {
    OperationTraits traits = TraitsFor(pod, kLane, takes_away);
    traits.device = device_;
    traits.use = DeviceUse::kExclusive;
    return Start(pod, traits);
  }

  const UniqueVolumeName device_{"test.io/p/disk"};
};

TEST_F(DriverLaneTest, WhileItIsClosedNobodyHasAThreadAndThenAllGoOn) {
  Be(Away());
  for (int pod = 0; pod < 300; ++pod) Start(pod, kLane);
  EXPECT_EQ(WaitText(17),
            "WaitForDriver: CSI driver disks.test.io is gone since 10:00: connection refused "
            "(hangs)");
  Start(1000, "other");
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{1000});
  scheduler_.RunFor(std::chrono::hours(48));
  EXPECT_EQ(begun_.size(), 1u) << "there is nothing to try, and no back-off to wait for";
  Be(Open(4));
  RunAll();
  EXPECT_EQ(begun_.size(), 301u);
  EXPECT_EQ(ended_.size(), 301u);
}

// One did not know that waiting was enough.
TEST_F(DriverLaneTest, WhatTakesAwayDidNotSayWhenItGoesOnWithoutTheDriver) {
  domains_.taken_away_without[kLane] = "it is unmounted without it after 10:10";
  Be(Away());
  Start(0, kLane);
  Start(1, kLane, /*takes_away=*/true);
  EXPECT_EQ(WaitText(0).find("unmounted without it"), std::string::npos) << WaitText(0);
  EXPECT_THAT(WaitText(1), HasSubstr("; it is unmounted without it after 10:10"));
}

TEST_F(DriverLaneTest, WhoWaitsIsCountedByDriverWhetherItSetsUpOrTakesAway) {
  Be(Away());
  Start(1, kLane);
  Start(2, kLane, /*takes_away=*/true);
  Start(3, "other");
  EXPECT_EQ(executor_->WaitingForDrivers(), (std::map<std::string, int>{{kLane, 2}}));
  Be(Open(4));
  RunAll();
  EXPECT_TRUE(executor_->WaitingForDrivers().empty());
}

TEST_F(DriverLaneTest, OneThatHasWaitedIsToldBeforeItBeginsAndNoOtherIs) {
  std::vector<std::string> trace;
  const auto start = [&](int pod) {
    executor_->Start(
        TraitsFor(pod, kLane, /*takes_away=*/false),
        [&trace, pod](OperationProgress&) -> std::optional<OperationFailure> {
          trace.push_back("run " + std::to_string(pod));
          return std::nullopt;
        },
        [](const std::optional<OperationFailure>&) {},
        [this, &trace, pod] {
          EXPECT_TRUE(scheduler_.OnControlThread());
          trace.push_back("waited " + std::to_string(pod));
        });
  };
  Be(Away());
  start(1);
  RunAll();
  EXPECT_TRUE(trace.empty());
  scheduler_.Post([this, &start] {
    Be(Open(4));
    start(2);
  });
  RunAll();
  ASSERT_EQ(trace.size(), 3u) << "the second one began at once";
  EXPECT_EQ(trace[0], "waited 1");
}

TEST_F(DriverLaneTest, OneThatIsGivenUpNamesTheStepAndFreesItsKey) {
  Be(Away());
  Start(1, kLane);
  executor_->GiveUpWaiting(OperationKey(Of(1)));
  EXPECT_FALSE(executor_->IsPending(OperationKey(Of(1))));
  RunAll();
  EXPECT_EQ(ended_[1], "given up while it waited for its driver");
  EXPECT_EQ(steps_[1], "WaitForDriver");
  EXPECT_FALSE(executor_->NextTry(OperationKey(Of(1))));
  Be(Open(4));
  RunAll();
  EXPECT_TRUE(begun_.empty());
}

TEST_F(DriverLaneTest, ADriverOfWhichNobodyKnowsWhyIsAwayAllTheSame) {
  domains_.why_closed.clear();
  Be(Away());
  Start(1, kLane);
  EXPECT_EQ(WaitText(1), "WaitForDriver: CSI driver disks.test.io is away (hangs)");
}

TEST_F(DriverLaneTest, ItMayBeClosedToNewWorkAndOpenToTeardown) {
  Be(OpenToTeardown());
  Start(1, kLane);
  Start(2, kLane, /*takes_away=*/true);
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{2});
  EXPECT_NE(WaitText(1), "");
}

TEST_F(DriverLaneTest, WhatTakesAwayWaitsToDoSoAndIsNotGivenUp) {
  Be(Away());
  Start(1, kLane, /*takes_away=*/true);
  executor_->GiveUpWaiting(OperationKey(Of(1)));
  RunAll();
  EXPECT_TRUE(ended_.empty());
  EXPECT_THAT(WaitText(1), HasSubstr("WaitForDriver: CSI driver disks.test.io is gone"));
  Be(OpenToTeardown());
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{1});
}

TEST_F(DriverLaneTest, ItsWidthGrowsAndShrinks) {
  Be(Open(2));
  for (int pod = 0; pod < 9; ++pod) Start(pod, kLane);
  EXPECT_EQ(WaitText(1), "");
  EXPECT_EQ(WaitText(2),
            "WaitForDriver: CSI driver disks.test.io has 2 operations under way, as many as it may "
            "have now");
  Be(Open(5));
  EXPECT_EQ(WaitText(4), "");
  EXPECT_THAT(WaitText(5), HasSubstr("has 5 operations under way"));
  Be(Open(1));
  EXPECT_EQ(WaitText(4), "") << "what has begun goes on";
  EXPECT_NE(WaitText(5), "");
  RunAll();
  EXPECT_EQ(begun_.size(), 9u);
}

TEST_F(DriverLaneTest, ASilentDriverIsTriedByOneAtATimeAndByOneThatTakesAway) {
  domains_.health[kLane] = {.silent_since = scheduler_.clock().Now(), .width = 1};
  for (int pod = 0; pod < 4; ++pod) Start(pod, kLane, /*takes_away=*/pod % 2 == 1);
  EXPECT_EQ(WaitText(0), "");
  EXPECT_EQ(WaitText(1), "");
  EXPECT_THAT(WaitText(2), HasSubstr("CSI driver disks.test.io does not answer since"));
  EXPECT_THAT(WaitText(3), HasSubstr("does not answer since")) << "nothing forces a driver";
}

TEST_F(DriverLaneTest, OneThatWaitsForRoomSaysSoOnceItsDriverIsAway) {
  Be(Open(1));
  Start(1, kLane);
  Start(2, kLane);
  EXPECT_THAT(WaitText(2), HasSubstr("as many as it may have now"));
  Be(Away());
  EXPECT_THAT(WaitText(2), HasSubstr("is gone since"));
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{1}) << "what has begun goes on";
}

TEST_F(DriverLaneTest, AllDriversTogetherHaveABoundOfTheirOwn) {
  executor_->SetLimits({.places = 8, .per_lane = 2, .own_lane = 3, .driver_places = 4});
  Be(Open(64));
  domains_.health["csi:second"] = Open(64);
  for (int pod = 0; pod < 4; ++pod) Start(pod, kLane);
  EXPECT_EQ(WaitText(2), "");
  EXPECT_EQ(WaitText(3),
            "WaitForDriver: as many operations are under way as all drivers together may have; "
            "this one is for CSI driver disks.test.io");
  Start(8, "csi:second");
  EXPECT_EQ(WaitText(8), "") << "the reserve is for who has few";
  Start(9, "nfs:nas");
  EXPECT_EQ(WaitText(9), "");
}

// None of the calls of these drivers ever ends.
TEST_F(DriverLaneTest, SixtyFourDriversThatHangHaveFourThreadsEachAndAllElseGoesOn) {
  executor_ = std::make_unique<OperationExecutor>(scheduler_, logger_, observer_, &domains_,
                                                  OperationSettings().lanes);
  const auto has_a_thread = [this](int pod) {
    const auto running = executor_->FindRunning(OperationKey(Of(pod)));
    return running && !running->waits_for;
  };
  int threads = 0;
  for (int pod = 0; pod < 1024; ++pod) {
    const std::string lane = "csi:hangs-" + std::to_string(pod % 64);
    domains_.health[lane] = {.width = 4};
    Start(pod, lane);
    if (has_a_thread(pod)) ++threads;
  }
  EXPECT_EQ(threads, 64 * 4);
  Be(Open(4));
  const std::vector<std::string> others = {kLane, kLane, kLane, kLane, "nfs:nas", "", kUnboundLane};
  for (size_t number = 0; number < others.size(); ++number) {
    const int pod = 2000 + static_cast<int>(number);
    Start(pod, others[number]);
    EXPECT_TRUE(has_a_thread(pod)) << number;
  }
}

// A pod could not go, though its driver would have answered, since another one's mount waited.
TEST_F(DriverLaneTest, WhatWaitsForAClosedLaneKeepsTheDeviceFromNoTeardown) {
  Be(OpenToTeardown());
  ASSERT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kStarted);
  EXPECT_EQ(StartAlone(2, /*takes_away=*/false), StartResult::kPending);
  EXPECT_EQ(StartAlone(3, /*takes_away=*/true), StartResult::kStarted);
  EXPECT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kPending) << "it is next";
  RunAll();
  EXPECT_EQ(begun_, std::vector<int>{3});
  EXPECT_EQ(ended_[1], "given up while it waited for its driver");
  EXPECT_EQ(ended_[3], "done");
  EXPECT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kStarted);
}

TEST_F(DriverLaneTest, WhatWaitsForRoomKeepsItsDevice) {
  Be(Open(1));
  Start(7, kLane);
  ASSERT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kStarted);
  EXPECT_NE(WaitText(1), "");
  EXPECT_EQ(StartAlone(3, /*takes_away=*/true), StartResult::kPending);
  RunAll();
  EXPECT_EQ(begun_, (std::vector<int>{7, 1}));
}

TEST_F(DriverLaneTest, NobodyMakesWayForATeardownThatBacksOff) {
  Be(OpenToTeardown());
  fails_ = Error::NotApplied(Code::kInternal, "still mounted");
  ASSERT_EQ(StartAlone(3, /*takes_away=*/true), StartResult::kStarted);
  RunAll();
  ASSERT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kStarted);
  EXPECT_NE(StartAlone(3, /*takes_away=*/true), StartResult::kStarted);
  RunAll();
  EXPECT_FALSE(ended_.contains(1));
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(StartAlone(3, /*takes_away=*/true), StartResult::kStarted);
  EXPECT_EQ(ended_.size(), 1u);
  RunAll();
  EXPECT_TRUE(ended_.contains(1));
}

TEST_F(DriverLaneTest, WhoHasADeviceForItselfIsFound) {
  EXPECT_FALSE(executor_->FindOwner(device_));
  Be(Away());
  ASSERT_EQ(StartAlone(1, /*takes_away=*/false), StartResult::kStarted);
  const std::optional<RunningOperation> owner = executor_->FindOwner(device_);
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->key, OperationKey(Of(1)));
  EXPECT_EQ(owner->step, "WaitForDriver");
  EXPECT_TRUE(owner->waits_for);
  Be(Open(4));
  RunAll();
  EXPECT_FALSE(executor_->FindOwner(device_));
  OperationTraits shared = TraitsFor(2, kLane, /*takes_away=*/true);
  shared.device = device_;
  shared.use = DeviceUse::kShared;
  ASSERT_EQ(Start(2, shared), StartResult::kStarted);
  EXPECT_FALSE(executor_->FindOwner(device_)) << "it has the device beside others";
}

}  // namespace
}  // namespace volumed
