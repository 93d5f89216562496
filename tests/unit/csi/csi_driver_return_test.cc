// CsiDrivers: drivers that go and come back. How soon one is used again, how often one that stays
// away is dialled, and what of it is asked anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "csi/csi_drivers.h"
#include "unit/csi/registered_driver_fixture.h"

namespace volumed {
namespace {

using CsiDriversTest = RegisteredDriverFixture;

TEST_F(CsiDriversTest, ARestoredDriverThatNobodyRegistersIsDialledToTakeVolumesAway) {
  RegisterWell();
  Restart();
  scheduler_.RunFor(seconds(5));
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
  scheduler_.RunFor(seconds(10));
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_EQ(State(), CsiDriverState::kUnregistered);
}

TEST_F(CsiDriversTest, ADriverThatDiesIsGoneAtOnceAndItsLaneIsClosed) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(State(), CsiDriverState::kGone);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_EQ(Count(DriverEvent::kAway), 1);
}

TEST_F(CsiDriversTest, ACallToADriverThatIsAwayIsNotSentAndSaysWhy) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  const auto answer = CallStage();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_EQ(answer.error().outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(answer.error().IsAbout(kCsiNeverSent));
  EXPECT_NE(answer.error().message().find("nobody listens at /kubelet/plugins/disk/csi.sock"),
            std::string::npos)
      << answer.error().message();
}

TEST_F(CsiDriversTest, ADriverThatComesBackAtTheSamePathIsUsedWithinAQuarterOfASecond) {
  RegisterWell();
  scheduler_.RunFor(minutes(1));
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(30));
  process_ = Serve();  // nobody tells of it
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_LE(*time, milliseconds(250));
}

TEST_F(CsiDriversTest, ADriverThatWasAwayForLongIsDialledAtOnceWhenItsSocketIsMade) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(10));
  process_ = Serve();
  drivers_->EndpointChanged(kEndpoint);
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_EQ(*time, Duration::zero());
}

TEST_F(CsiDriversTest, ASocketAtWhichSomebodyListensALittleLaterIsFound) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(10));
  dialer_.Bind(kEndpoint);
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(milliseconds(20));
  process_ = Serve();
  const std::optional<Duration> time = TimeUntilOpen();
  ASSERT_TRUE(time.has_value());
  EXPECT_LE(*time, milliseconds(250));
}

TEST_F(CsiDriversTest, ADriverThatStaysAwayIsDialledEveryFiveSecondsAtMost) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(1));
  const int before = dialer_.opened(kEndpoint);
  scheduler_.RunFor(minutes(10));
  const int tries = dialer_.opened(kEndpoint) - before;
  EXPECT_GE(tries, 119);
  EXPECT_LE(tries, 121);
}

TEST_F(CsiDriversTest, ADriverThatFlapsAThousandTimesIsUsableWithinASecondEachTime) {
  RegisterWell();
  std::vector<Duration> times;
  for (int i = 0; i < 1000; ++i) {
    dialer_.Kill(process_);
    scheduler_.RunFor(milliseconds(i % 40));
    process_ = Serve();
    drivers_->EndpointChanged(kEndpoint);
    const std::optional<Duration> time = TimeUntilOpen();
    ASSERT_TRUE(time.has_value());
    times.push_back(*time);
  }
  std::sort(times.begin(), times.end());
  EXPECT_LE(times[989], seconds(1));
  scheduler_.RunFor(seconds(10));
  // The one that is used, and none of those that went.
  EXPECT_EQ(dialer_.callers(), 1);
}

TEST_F(CsiDriversTest, AListenerThatTakesConnectionsAndBreaksThemOffIsNotDialledAllTheTime) {
  RegisterWell();
  const int before = dialer_.dialled();
  for (int i = 0; i < 6000; ++i) {
    dialer_.BreakConnections(process_);
    scheduler_.RunFor(milliseconds(10));
  }
  // A minute: 50, 100 .. 3200 ms, then every 5 s.
  EXPECT_LE(dialer_.dialled() - before, 25);
}

TEST_F(CsiDriversTest, AnotherProcessAtThePathIsUsedEvenIfTheConnectionToTheOldOneIsStillGood) {
  RegisterWell();
  auto fresh = Serve();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  const int before = process_->calls("NodeStageVolume");
  ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(fresh->calls("NodeStageVolume"), 1);
  EXPECT_EQ(process_->calls("NodeStageVolume"), before);
  EXPECT_EQ(Count(DriverEvent::kAway), 0);
}

TEST_F(CsiDriversTest, AnEventAtTheSameSocketDialsNothing) {
  RegisterWell();
  const int before = dialer_.dialled();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(dialer_.dialled(), before);
}

TEST_F(CsiDriversTest, WhatADriverCanDoIsAskedAnewWhenItComesBack) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve();
  process_->Answer("NodeGetCapabilities", ::csi::v1::NodeGetCapabilitiesResponse());
  ASSERT_TRUE(TimeUntilOpen().has_value());
  EXPECT_TRUE(drivers_->FactsOf(kName)->node_capabilities.empty());
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(Count(DriverEvent::kFactsChanged), 2);
  const auto row = store_.Find(kCsiDriverRecordKind, kName);
  ASSERT_TRUE(row.has_value());
  EXPECT_TRUE(DecodeCsiDriverRecord(*row)->facts.node_capabilities.empty());
}

TEST_F(CsiDriversTest, ADriverThatCallsTheNodeOtherwiseWhileVolumesAreAttachedOnlyTakesThemAway) {
  RegisterWell();
  has_attached_ = true;
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve(kEndpoint, kName, "node-b");
  scheduler_.RunFor(seconds(10));
  EXPECT_EQ(State(), CsiDriverState::kOtherNode);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  const std::string why = drivers_->WhyAway(kName);
  EXPECT_NE(why.find("calls this node \"node-b\""), std::string::npos) << why;
  EXPECT_NE(why.find("attached as \"node-a\""), std::string::npos) << why;
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-a");
  // Also over a restart of the agent.
  Restart();
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kOtherNode);
  has_attached_ = false;
  drivers_->VolumesDetached(kName);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-b");
}

TEST_F(CsiDriversTest, ADriverThatCallsTheNodeOtherwiseIsUsedIfNothingIsAttached) {
  RegisterWell();
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  process_ = Serve(kEndpoint, kName, "node-b");
  ASSERT_TRUE(TimeUntilOpen().has_value());
  EXPECT_EQ(drivers_->FactsOf(kName)->node_id, "node-b");
}

TEST_F(CsiDriversTest, ADriverThatIsUnregisteredStillTakesVolumesAwayAndSetsUpNone) {
  RegisterWell();
  drivers_->Unregister(kName);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(State(), CsiDriverState::kUnregistered);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
  EXPECT_TRUE(CallStage().ok());  // who asks decides what for
  ASSERT_TRUE(drivers_->FactsOf(kName).ok());
  dialer_.Kill(process_);
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(CsiDriversTest, AnUnregisteredDriverThatIsGoneIsDialledForAWhileAndThenOnlyAtAnEvent) {
  RegisterWell();
  drivers_->Unregister(kName);
  dialer_.Kill(process_);
  scheduler_.RunFor(minutes(1));
  EXPECT_NE(drivers_->WhyAway(kName).find("; the driver and its registrar have to be started"),
            std::string::npos)
      << drivers_->WhyAway(kName);
  const int before = dialer_.opened(kEndpoint);
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(dialer_.opened(kEndpoint), before);
  process_ = Serve();
  drivers_->EndpointChanged(kEndpoint);
  scheduler_.RunFor(seconds(1));
  EXPECT_FALSE(drivers_->LaneOf(kName).closed_to_teardown);
}

TEST_F(CsiDriversTest, TheErrorsOfTheTimeBeforeADriverWasConnectedAreForgottenWithThat) {
  RegisterWell();
  Restart();
  EXPECT_NE(drivers_->LastError(kName), "");
  ASSERT_TRUE(Register().has_value());
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->LastError(kName), "");
  process_->Fail("Probe", Code::kFailedPrecondition, "a helper is missing");
  scheduler_.RunFor(minutes(1));
  EXPECT_GT(drivers_->Find(kName)->health().last_error_unix_ms, 0);
}

}  // namespace
}  // namespace volumed
