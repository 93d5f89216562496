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
