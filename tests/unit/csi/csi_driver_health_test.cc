// CsiDriver: how a driver is that does not answer, or says that it cannot, and how wide its lane
// is.
#include <gtest/gtest.h>

#include "csi/csi_drivers.h"
#include "unit/csi/registered_driver_fixture.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using CsiDriverHealthTest = RegisteredDriverFixture;

TEST_F(CsiDriverHealthTest, ACallAndAProbeThatAreNotAnsweredInTimeMakeTheDriverSilentAndNarrow) {
  RegisterWell();
  process_->Hang("NodeStageVolume");
  process_->Hang("Probe");
  const auto answer = CallStage(seconds(10));
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(answer.error().maybe_applied());
  EXPECT_EQ(State(), CsiDriverState::kReady);
  scheduler_.RunFor(seconds(11));
  EXPECT_EQ(State(), CsiDriverState::kSilent);
  const CsiLane lane = drivers_->LaneOf(kName);
  EXPECT_FALSE(lane.closed);
  EXPECT_EQ(lane.width, 1);
  EXPECT_TRUE(lane.health.silent_since.has_value());
  EXPECT_NE(drivers_->WhyAway(kName).find("does not answer since "), std::string::npos);
  EXPECT_EQ(Count(DriverEvent::kSilent), 1);
}

// Others waited for each of its deadlines, and were told that the driver does not answer.
TEST_F(CsiDriverHealthTest, OneVolumeThatHungHeldUpAllOthersOfADriverThatAnswersProbes) {
  RegisterWell();
  process_->Hang("NodeStageVolume");
  const auto hung = CallStage(seconds(10));
  ASSERT_FALSE(hung.ok());
  EXPECT_TRUE(hung.error().IsAbout(kDriverAway)) << "whoever runs the driver has to act";
  scheduler_.RunFor(seconds(11));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(Count(DriverEvent::kSilent), 0);
  EXPECT_EQ(drivers_->WhyAway(kName), "");
  const int width = drivers_->LaneOf(kName).width;
  EXPECT_EQ(width, 8) << "four may hang";
  // The driver falls silent for all.
  process_->Hang("Probe");
  ASSERT_FALSE(CallStage(seconds(10)).ok());
  scheduler_.RunFor(seconds(11));
  EXPECT_EQ(State(), CsiDriverState::kSilent);
}

// A pod said DeadlineExceeded and that nobody has to act, while its driver answered nobody.
TEST_F(CsiDriverHealthTest, TheErrorOfACallDidNotSayThatTheDriverIsSilentOrAway) {
  RegisterWell();
  process_->Hang("NodeStageVolume");
  process_->Hang("Probe");
  ASSERT_FALSE(CallStage(seconds(10)).ok());
  scheduler_.RunFor(seconds(11));
  const auto silent = CallStage(seconds(10));
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().message().find(std::string("CSI driver ") + kName + " is silent since "),
            0u)
      << silent.error().message();
  EXPECT_TRUE(silent.error().IsAbout(kDriverAway));
  EXPECT_TRUE(silent.error().maybe_applied());
  dialer_.Kill(process_);
  scheduler_.RunFor(milliseconds(1));
  const auto away = CallStage(seconds(10));
  ASSERT_FALSE(away.ok());
  EXPECT_TRUE(away.error().IsAbout(kDriverAway));
}

TEST_F(CsiDriverHealthTest, TheWindowBeginsSmallGrowsByEachAnswerAndBeginsAnewAfterSilence) {
  settings_.driver.most_calls = 8;
  settings_.driver.probe_period = Duration::zero();
  Restart();
  RegisterWell();
  EXPECT_EQ(drivers_->LaneOf(kName).width, 4);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(drivers_->LaneOf(kName).width, 8);
  process_->Hang("NodeStageVolume");
  ASSERT_FALSE(CallStage(seconds(10)).ok());
  EXPECT_EQ(drivers_->LaneOf(kName).width, 1);
  process_->Unhang("NodeStageVolume");
  ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->LaneOf(kName).width, 1);
  ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(drivers_->LaneOf(kName).width, 2);
}

TEST_F(CsiDriverHealthTest, AnErrorIsAnAnswer) {
  RegisterWell();
  process_->Fail("NodeStageVolume", Code::kInternal, "broken");
  ASSERT_FALSE(CallStage().ok());
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_EQ(drivers_->LaneOf(kName).width, 5);
}

TEST_F(CsiDriverHealthTest, ADriverThatNobodyCallsIsProbedAndTwoMissedProbesAreSilence) {
  RegisterWell();
  process_->Hang("Probe");
  scheduler_.RunFor(seconds(45));
  EXPECT_EQ(State(), CsiDriverState::kReady);  // one is missed
  scheduler_.RunFor(seconds(45));
  EXPECT_EQ(State(), CsiDriverState::kSilent);
  process_->Unhang("Probe");
  scheduler_.RunFor(seconds(45));
  EXPECT_EQ(State(), CsiDriverState::kReady);
  EXPECT_GE(Count(DriverEvent::kReady), 2);
}

TEST_F(CsiDriverHealthTest, ADriverThatAnswersCallsIsNotProbed) {
  RegisterWell();
  const int before = process_->calls("Probe");
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(CallStage().ok());
    scheduler_.RunFor(seconds(10));
  }
  EXPECT_EQ(process_->calls("Probe"), before);
  scheduler_.RunFor(minutes(2));
  EXPECT_GT(process_->calls("Probe"), before);
}

TEST_F(CsiDriverHealthTest, ADriverWhoseProbeFailsIsUnhealthyAndIsUsedAllTheSame) {
  RegisterWell();
  process_->Fail("Probe", Code::kFailedPrecondition, "a helper is missing");
  scheduler_.RunFor(minutes(1));
  EXPECT_EQ(State(), CsiDriverState::kUnhealthy);
  EXPECT_FALSE(drivers_->LaneOf(kName).closed);
  EXPECT_NE(drivers_->WhyAway(kName).find("a helper is missing"), std::string::npos);
}

TEST_F(CsiDriverHealthTest, ADriverThatSaysThatItIsNotReadyIsAskedEachSecondAndNotUsedUntilThen) {
  RegisterWell();
  ::csi::v1::ProbeResponse not_ready;
  not_ready.mutable_ready()->set_value(false);
  process_->Answer("Probe", not_ready);
  scheduler_.RunFor(seconds(31));
  EXPECT_EQ(State(), CsiDriverState::kStarting);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed);
  EXPECT_TRUE(drivers_->LaneOf(kName).closed_to_teardown);
  process_->Answer("Probe", ::csi::v1::ProbeResponse());
  scheduler_.RunFor(milliseconds(1100));
  EXPECT_EQ(State(), CsiDriverState::kReady);
}

}  // namespace
}  // namespace volumed
