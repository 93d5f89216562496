// How wide the lanes of CSI drivers are, and when they are closed.
#include "agent/driver_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/csi/drivers_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

class KernelLanes final : public FaultDomains {
 public:
  FaultDomain Locate(const std::string& domain) override { return {"of " + domain, "kernel"}; }
  LaneHealth HealthOf(const std::string&) const override { return {.lost = 7}; }
};

class DriverLanesTest : public CsiDriversFixture {
 protected:
  LaneHealth Health() { return DriverLanes(kernel_, *drivers_).HealthOf(Lane()); }
  static std::string Lane() { return std::string("csi:") + kName; }

  KernelLanes kernel_;
};

TEST_F(DriverLanesTest, OtherLanesAreTheKernels) {
  DriverLanes lanes(kernel_, *drivers_);
  EXPECT_EQ(lanes.HealthOf("nfs:nas").lost, 7);
  EXPECT_EQ(lanes.Locate("/mnt").lane, "of /mnt");
  EXPECT_EQ(lanes.Locate(Lane()).lane, Lane());
  EXPECT_EQ(lanes.Locate(Lane()).name, "CSI driver disk.example.com");
  EXPECT_EQ(lanes.WhyClosed("nfs:nas"), "");
}

TEST_F(DriverLanesTest, ADriverThatWasNeverHereHasAClosedLaneThatSaysSo) {
  EXPECT_TRUE(Health().closed);
  EXPECT_TRUE(Health().closed_to_teardown);
  EXPECT_THAT(DriverLanes(kernel_, *drivers_).WhyClosed(Lane()),
              HasSubstr("not found in the list of registered CSI drivers"));
}

TEST_F(DriverLanesTest, ADriverStartsWithFewCallsAndGetsOneMoreForEachAnswerUpToItsLimit) {
  settings_.driver.most_calls = 6;
  Restart();
  const auto process = Serve();
  ASSERT_TRUE(Register()->ok());
  EXPECT_FALSE(Health().closed);
  EXPECT_EQ(Health().width, 4);
  ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(Health().width, 5);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(CallStage().ok());
  EXPECT_EQ(Health().width, 6);
}

TEST_F(DriverLanesTest, ADriverThatFellSilentHasOneCallAtATime) {
  const auto process = Serve();
  ASSERT_TRUE(Register()->ok());
  process->Hang("NodeStageVolume");
  process->Hang("Probe");
  ASSERT_FALSE(CallStage(seconds(5)).ok());
  scheduler_.RunFor(seconds(11));
  EXPECT_EQ(Health().width, 1);
  EXPECT_TRUE(Health().silent_since.has_value());
  EXPECT_FALSE(Health().closed) << "one operation at a time learns whether it answers again";
}

TEST_F(DriverLanesTest, AnUnregisteredDriverStillTakesAwayAndADeadOneDoesNot) {
  const auto process = Serve();
  ASSERT_TRUE(Register()->ok());
  drivers_->Unregister(kName);
  EXPECT_TRUE(Health().closed);
  EXPECT_FALSE(Health().closed_to_teardown);
  dialer_.Kill(process);
  scheduler_.RunFor(milliseconds(10));
  EXPECT_TRUE(Health().closed_to_teardown);
  EXPECT_NE(DriverLanes(kernel_, *drivers_).WhyClosed(Lane()), "");
}

}  // namespace
}  // namespace volumed
