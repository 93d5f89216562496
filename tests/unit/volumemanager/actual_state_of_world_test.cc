#include "volumemanager/actual_state_of_world.h"

#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace volumed {
namespace {

const PodVolumeKey kKey{PodUid("a"), SpecName("data")};

OperationOutcome<MountedVolume> Mounted() {
  OperationOutcome<MountedVolume> outcome;
  outcome.value = MountedVolume{};
  return outcome;
}
template <typename T>
OperationOutcome<T> Failed(Error error) {
  OperationOutcome<T> outcome;
  outcome.failure = OperationFailure{"volume_mount", "SetUp", std::move(error)};
  return outcome;
}
const Error kNot = Error::NotApplied(Code::kInternal, "not");
const Error kMaybe = Error::MaybeApplied(Code::kDeadlineExceeded, "maybe");

class ActualStateTest : public ::testing::Test {
 protected:
  ActualStateTest() { actual_.AddPod(PodUid("a"), {"default", "a", "manifests"}); }
  const ActualVolume& Volume() { return *actual_.FindVolume(kKey); }
  void Mount(const OperationOutcome<MountedVolume>& outcome, uint64_t generation = 1) {
    actual_.MountStarted(kKey, {"p", generation});
    actual_.MountDone(kKey, outcome);
  }
  ManualClock clock_;
  ActualStateOfWorld actual_{clock_};
};

TEST_F(ActualStateTest, AMountThatWasCertainlyNotAppliedLeavesNothing) {
  EXPECT_FALSE(actual_.MountStarted(kKey, {"p", 1}));
  EXPECT_EQ(Volume().state, VolumeState::kSettingUp);
  EXPECT_TRUE(Volume().in_flight);
  actual_.MountDone(kKey, Failed<MountedVolume>(kNot));
  EXPECT_EQ(Volume().state, VolumeState::kNotSetUp);
  EXPECT_FALSE(MayBePresent(Volume()));
  EXPECT_FALSE(Volume().in_flight);
}

TEST_F(ActualStateTest, AfterMaybeAppliedALaterNotAppliedProvesNothing) {
  Mount(Failed<MountedVolume>(kMaybe));
  EXPECT_EQ(Volume().state, VolumeState::kSettingUp);
  EXPECT_TRUE(Volume().uncertain);
  Mount(Failed<MountedVolume>(kNot));
  EXPECT_EQ(Volume().state, VolumeState::kSettingUp);
  EXPECT_TRUE(MayBePresent(Volume()));
  EXPECT_EQ(Volume().failure->attempts, 2u);
  Mount(Mounted());
  EXPECT_TRUE(IsSetUp(Volume()));
  EXPECT_FALSE(Volume().uncertain);
  EXPECT_FALSE(Volume().failure.has_value());
}

TEST_F(ActualStateTest, OnlyASuccessRemembersTheInputs) {
  Mount(Mounted(), 3);
  EXPECT_EQ(Volume().applied_generation, 3u);
  EXPECT_TRUE(actual_.MountStarted(kKey, {"p", 4}));
  EXPECT_TRUE(IsSetUp(Volume()));
  actual_.MountDone(kKey, Failed<MountedVolume>(kMaybe));
  EXPECT_EQ(Volume().applied_generation, 3u);
  EXPECT_TRUE(IsSetUp(Volume()));
  EXPECT_TRUE(Volume().uncertain);
}

TEST_F(ActualStateTest, AnUnmountEndsInNothingOrInUncertainty) {
  Mount(Mounted());
  actual_.UnmountStarted(kKey);
  EXPECT_EQ(Volume().state, VolumeState::kTearingDown);
  actual_.UnmountDone(kKey, Failed<Unit>(kNot));
  EXPECT_EQ(Volume().state, VolumeState::kSetUp);
  EXPECT_EQ(Volume().applied_generation, 0u) << "its content has to be verified";
  actual_.UnmountStarted(kKey);
  actual_.UnmountDone(kKey, Failed<Unit>(kMaybe));
  EXPECT_EQ(Volume().state, VolumeState::kTearingDown);
  EXPECT_TRUE(Volume().uncertain);
  actual_.UnmountStarted(kKey);
  OperationOutcome<Unit> done;
  done.value = Unit{};
  actual_.UnmountDone(kKey, done);
  EXPECT_EQ(actual_.FindVolume(kKey), nullptr);
}

TEST_F(ActualStateTest, UsersAreFoundByTheNameThatTheirVolumeHasNow) {
  const UniqueVolumeName first("p/first");
  const UniqueVolumeName second("p/second");
  actual_.MountStarted(kKey, {.plugin_name = "p", .generation = 1, .unique_name = first});
  actual_.MountDone(kKey, Mounted());
  EXPECT_EQ(actual_.UsersOf(first), std::vector<PodVolumeKey>{kKey});
  actual_.MountStarted(kKey, {.plugin_name = "p", .generation = 2, .unique_name = second});
  EXPECT_TRUE(actual_.UsersOf(first).empty());
  EXPECT_EQ(actual_.UsersOf(second), std::vector<PodVolumeKey>{kKey});
  actual_.EraseVolume(kKey);
  EXPECT_TRUE(actual_.UsersOf(second).empty());
  // As a pod is forgotten with its volumes.
  actual_.AddReconstructed(kKey, "p", VolumeState::kSetUp, true);
  actual_.SetUniqueName(kKey, first);
  EXPECT_EQ(actual_.UsersOf(first), std::vector<PodVolumeKey>{kKey});
  actual_.TakePod(kKey.pod);
  EXPECT_TRUE(actual_.UsersOf(first).empty());
}

// Each pod has a volume of its own, of which something happens: what one event costs must not grow
// with the volumes of the others.
TEST_F(ActualStateTest, AnEventOfAVolumeCostsAsMuchWithFourTimesThePods) {
  constexpr int kFew = 100;
  double cost[2] = {};
  for (const int count : {kFew, 4 * kFew}) {
    ActualStateOfWorld actual(clock_);
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      const PodVolumeKey key{PodUid(number), SpecName("data")};
      const UniqueVolumeName name("p/" + number);
      actual.AddPod(key.pod, {"default", number, "manifests"});
      actual.MountStarted(key, {.plugin_name = "p", .generation = 1, .unique_name = name});
      actual.MountDone(key, Mounted());
    }
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(actual.UsersOf(UniqueVolumeName("p/" + std::to_string(i))).size(), 1u);
    }
    cost[count == kFew ? 0 : 1] = static_cast<double>(actual.work().visited());
  }
  EXPECT_GT(cost[0], 0);
  EXPECT_LE(cost[1], 4.2 * cost[0]);
}

TEST_F(ActualStateTest, WhatIsFoundAtStartIsUncertainInEveryState) {
  struct Case {
    VolumeState recorded;
    bool same_boot;
    VolumeState expected;
  };
  for (const Case& c : {Case{VolumeState::kSetUp, true, VolumeState::kSetUp},
                        Case{VolumeState::kSetUp, false, VolumeState::kSettingUp},
                        Case{VolumeState::kSettingUp, true, VolumeState::kSettingUp},
                        Case{VolumeState::kTearingDown, false, VolumeState::kTearingDown},
                        Case{VolumeState::kNotSetUp, true, VolumeState::kSettingUp}}) {
    actual_.AddReconstructed(kKey, "p", c.recorded, c.same_boot);
    EXPECT_EQ(Volume().state, c.expected) << VolumeStateName(c.recorded);
    EXPECT_TRUE(Volume().uncertain);
    EXPECT_TRUE(Volume().reconstructed);
    EXPECT_FALSE(IsSetUp(Volume()));
    EXPECT_TRUE(MayBePresent(Volume()));
  }
}

}  // namespace
}  // namespace volumed
