#include "operation/operation_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/simulated_scheduler.h"
#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "unit/operation/recording_parts.h"
#include "unit/operation/test_domains.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr LaneLimits kLimits{.places = 8, .per_lane = 2, .own_lane = 3};

const LaneHealth kAnswers{.lost = 0, .silent_since = std::nullopt, .has_answered = true};

class OperationLanesTest : public ::testing::Test {
 protected:
  static PodVolumeKey Of(int pod) {
    return {PodUid("uid-" + std::to_string(pod)), SpecName("data")};
  }
  // An operation that goes on until End().
  void Start(int pod, const std::string& domain, bool takes_away = false, bool with_many = false) {
    OperationTraits traits = TraitsFor(pod, domain, takes_away);
    traits.with_many = with_many;
    ASSERT_EQ(Start(pod, traits), StartResult::kStarted);
  }
  static OperationTraits TraitsFor(int pod, const std::string& domain, bool takes_away) {
    return {.key = Of(pod),
            .name = takes_away ? "volume_unmount" : "volume_mount",
            .plugin_name = "test.io/p",
            .pod_display_name = "default/web",
            .domain = {domain, domain == "nfs:nas" ? "NFS server nas" : ""},
            .on_own_filesystem = domain.empty(),
            .takes_away = takes_away};
  }
  StartResult Start(int pod, const OperationTraits& traits) {
    return executor_->Start(
        traits,
        [this, pod](OperationProgress&) -> std::optional<OperationFailure> {
          begun_.push_back(pod);
          return fails_ ? std::optional(OperationFailure{"any", "Step", *fails_}) : std::nullopt;
        },
        [this, pod](const std::optional<OperationFailure>& failure) {
          ended_[pod] = failure ? failure->error.message() : "done";
          steps_[pod] = failure ? failure->step : "";
        });
  }
  void RunAll() { scheduler_.RunFor(Duration::zero()); }
  std::string WaitText(int pod) const {
    for (const RunningOperation& operation : executor_->Running()) {
      if (operation.key == OperationKey(Of(pod)) && operation.waits_for) {
        return operation.step + ": " + operation.waits_for->text +
               (operation.waits_for->does_not_answer ? " (hangs)" : "");
      }
    }
    return "";
  }
  void Hangs(const std::string& lane, int lost) {
    domains_.health[lane] = {.lost = lost, .silent_since = scheduler_.clock().Now()};
  }

  SimulatedScheduler scheduler_{1};
  LogLines log_;
  Logger logger_{log_.Options(), scheduler_.clock()};
  RecordingObserver observer_;
  TestDomains domains_;
  std::unique_ptr<OperationExecutor> executor_ =
      std::make_unique<OperationExecutor>(scheduler_, logger_, observer_, &domains_, kLimits);
  std::optional<Error> fails_;
  std::vector<int> begun_;
  std::map<int, std::string> ended_;
  std::map<int, std::string> steps_;  // in which those failed that have ended
};

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

// ---- lanes of drivers ---------------------------------------------------------------------------

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
