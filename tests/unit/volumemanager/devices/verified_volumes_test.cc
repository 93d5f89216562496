// Volumes that are attached, and what their plugin says of them later.
#include <gmock/gmock.h>

#include "unit/volumemanager/devices/attached_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class VerifiedVolumesTest : public AttachedTest {
 protected:
  // A pod whose volume was set up by the agent before. Claims are bound already.
  void Leave(const std::string& pod, const std::string& volume) {
    LeaveDevice(volume, VolumeState::kDeviceMounted);
    LeavePodVolume(pod, volume);
    node.present.insert(Key(pod, volume));
    node.devices.insert(Device(volume));
  }
  static OperationKey Ask() { return VerifyAttachedKey(kPlugin); }
};

TEST_F(VerifiedVolumesTest, AllVolumesOfAPluginAreAskedForInOneCall) {
  BindBefore(Volume("one") + Volume("two"));
  Leave("a", "one");
  Leave("b", "two");
  node.attached = {Device("one"), Device("two")};
  Restart();
  Deliver(Volume("one") + Volume("two") + User("a", "one") + User("b", "two"));
  ASSERT_EQ(operations().Count("verify"), 1u);
  EXPECT_EQ(operations().Last("verify", Ask())->verify->volumes.size(), 2u);
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "Ready");
  Pass(kVerifyAttachedPeriod - seconds(1));
  EXPECT_EQ(operations().Count("verify"), 1u);
  Pass(seconds(2));
  EXPECT_EQ(operations().Count("verify"), 2u);
}

TEST_F(VerifiedVolumesTest, WithoutAnAnswerNothingIsMounted) {
  BindBefore(Volume("disk"));
  Leave("a", "disk");
  node.attached = {Device("disk")};
  Restart();
  operations().FailNext("verify", Ask(), NotApplied(), 2);
  Deliver(Volume("disk") + User("a", "disk"));
  EXPECT_EQ(Done(), (Lines{"verify array"}));
  EXPECT_EQ(StepOf("a"), "VolumesAreAttached");
  EXPECT_EQ(ViewOf("a").problem->message, "the array");
  EXPECT_GT(ViewOf("a").problem->next_try_unix_ms, 0);
  Pass(seconds(10));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("unmount_device"), 0u);
}

TEST_F(VerifiedVolumesTest, WhatIsMissingAtStartIsLeftToThePodsThatHaveIt) {
  BindBefore(Volume("disk"));
  Leave("a", "disk");
  Restart();
  Deliver(Volume("disk") + User("a", "disk"));
  Pass(seconds(200));
  EXPECT_EQ(operations().Count("unmount") + operations().Count("unmount_device"), 0u);
  EXPECT_EQ(operations().Count("attach") + operations().Count("detach"), 0u);
  EXPECT_EQ(StepOf("a"), "VolumesAreAttached");
  EXPECT_NE(ViewOf("a").problem->message.find("not attached to this node any more"),
            std::string::npos);
  EXPECT_EQ(Events("a VolumeNotAttached"), 1);
}

TEST_F(VerifiedVolumesTest, AMissingVolumeIsAttachedAgainWhenNoPodHasItMounted) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  node.attached.clear();
  Pass(kVerifyAttachedPeriod + seconds(1));
  EXPECT_EQ(StepOf("a"), "VolumesAreAttached");
  EXPECT_EQ(Events("a VolumeNotAttached"), 1);
  (void)Done();
  Deliver(Volume("disk") + User("a", "disk") + User("b", "disk"));
  EXPECT_EQ(Done(), Lines());  // a new bind would show what is gone
  EXPECT_EQ(StepOf("b"), "VolumesAreAttached");
  Deliver(Volume("disk") + User("b", "disk"));
  Pass(seconds(1));
  const Lines done = Done();
  ASSERT_GE(done.size(), 5u);
  EXPECT_EQ(done[0], "unmount disk for a");
  EXPECT_EQ(std::count(done.begin(), done.end(), "detach disk"), 0);
  const auto at = std::find(done.begin(), done.end(), "unmount_device disk");
  ASSERT_NE(at, done.end());
  EXPECT_LT(at, std::find(done.begin(), done.end(), "attach disk"));
  EXPECT_EQ(done.back(), "mount disk for b");
  EXPECT_EQ(StepOf("b"), "");
}

// The unmount was begun again and again, and the volume was never detached.
TEST_F(VerifiedVolumesTest, AMissingVolumeIsUnmountedOnceAndDetachedWhenItsLastPodLeaves) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  node.attached.clear();
  Pass(kVerifyAttachedPeriod + seconds(1));
  ASSERT_EQ(StepOf("a"), "VolumesAreAttached");
  Deliver(Volume("disk"));
  Pass(seconds(1));
  EXPECT_EQ(operations().Count("unmount_device"), 1u);
  EXPECT_EQ(operations().Count("detach"), 1u);
}

TEST_F(VerifiedVolumesTest, AVolumeThatIsBackIsUsedAsItIs) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  node.attached.clear();
  Pass(kVerifyAttachedPeriod + seconds(1));
  EXPECT_EQ(StepOf("a"), "VolumesAreAttached");
  node.attached.insert(Device("disk"));
  Pass(kVerifyAttachedPeriod + seconds(1));
  EXPECT_EQ(StepOf("a"), "");
  EXPECT_EQ(operations().Count("attach"), 1u);
  EXPECT_EQ(operations().Count("unmount_device"), 0u);
}

TEST_F(VerifiedVolumesTest, AnAnswerFromBeforeADetachIsNotBelieved) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  operations().Hang(Ask());
  Pass(kVerifyAttachedPeriod + seconds(1));  // the plugin has seen it attached
  Deliver(Volume("disk"));
  Deliver(Volume("disk") + User("b", "disk"));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(operations().Count("attach"), 2u);
  node.attached.clear();  // and now it is gone: the old answer must not hide that for long
  operations().Release(Ask());
  Settle();
  EXPECT_EQ(StepOf("b"), "");
  Pass(kVerifyAttachedPeriod + seconds(1));
  EXPECT_EQ(StepOf("b"), "VolumesAreAttached");
}

// One that sees its disks alone says "missing" between an unmount and the next mount.
TEST_F(VerifiedVolumesTest, AnAnswerFromBeforeAMountIsNotBelieved) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  operations().Hang(Ask());
  node.attached.clear();
  Pass(kVerifyAttachedPeriod + seconds(1));  // the plugin has not seen it
  (void)Done();
  operations().FailNext("unmount_device", OperationKey(Device("disk")), MaybeApplied(), 1);
  Deliver(Volume("disk"));
  Deliver(Volume("disk") + User("b", "disk"));
  EXPECT_EQ(Phase("b"), "Ready");
  for (const std::string& done : Done()) EXPECT_NE(done, "attach disk") << "mounted again only";
  operations().Release(Ask());
  Settle();
  EXPECT_EQ(StepOf("b"), "");
}

TEST_F(VerifiedVolumesTest, APluginThatCannotTellIsNotAskedAgainAndAgain) {
  attach->verifies = false;
  BindBefore(Volume("disk"));
  Leave("a", "disk");
  node.attached = {Device("disk")};
  Restart();
  Deliver(Volume("disk") + User("a", "disk"));
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("verify"), 1u);
}

TEST_F(VerifiedVolumesTest, ThePeriodCanBeChangedAndTurnedOff) {
  StartAgent();
  Deliver(Volume("disk") + User("a", "disk"));
  manager().SetVerifyAttachedPeriod(seconds(5));
  Pass(seconds(11));
  EXPECT_EQ(operations().Count("verify"), 2u);
  manager().SetVerifyAttachedPeriod(Duration::zero());
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("verify"), 2u);
  Deliver("");
  manager().SetVerifyAttachedPeriod(seconds(5));
  Pass(seconds(60));
  EXPECT_EQ(operations().Count("verify"), 2u);  // there is nothing to ask about
}

}  // namespace
}  // namespace volumed
