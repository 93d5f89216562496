// A driver that is absent for too long: what is done without it, what never is, and that it is made
// up for, once, when the driver is back.
#include "csi/csi_debts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/csi_figures.h"
#include "csi/csi_owing.h"
#include "unit/agent/csi_debts_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CsiDebtsTest, ARowGivesBackWhatWasWritten) {
  const CsiDebt debt{{kName, kHandle}, OwedCall::kUnstage, "/k/stage", 1'767'323'045'678};
  const Record row = EncodeRecord(debt);
  EXPECT_EQ(row.kind, "csi-debt");
  EXPECT_EQ(row.key, std::string(kName) + "/" + CsiHandleHash(kHandle) + "/unstage/" +
                         CsiHandleHash("/k/stage"));
  EXPECT_EQ(*DecodeCsiDebt(row), debt);
  Record other = row;
  other.key += "x";
  EXPECT_EQ(DecodeCsiDebt(other).error().code(), Code::kDataLoss);
}

TEST_F(CsiDebtsTest, APodThatLeavesWaitsForItsDriverUntilTheLimitAndNoLonger) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(9));
  EXPECT_EQ(PodLeaves(seconds(50)), "waits");
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
  scheduler_.RunFor(seconds(15));
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
  EXPECT_FALSE(
      kernel_.Exists(CsiPodVolumeDir(paths_, PodUid(kPodUid), SpecName("pv-1")).Display()));
  EXPECT_EQ(Rows().size(), 1u);
  EXPECT_TRUE(kernel_.IsMountPoint(Staging()));
}

TEST_F(CsiDebtsTest, WithoutALimitThePodWaits) {
  plugin_settings_.Set({});
  collector_->SettingsChanged();
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(600));
  EXPECT_EQ(PodLeaves(minutes(600)), "waits");
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  // A reload that sets one lets it go on.
  plugin_settings_.Set({.absent_limit = minutes(10)});
  collector_->SettingsChanged();
  scheduler_.RunFor(seconds(1));
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
}

// With a limit of ten minutes nobody knew that the pod leaves by itself.
TEST_F(CsiDebtsTest, ItWasNotSaidWhenTheDriverIsDoneWithout) {
  const std::string lane = std::string("csi:") + kName;
  EXPECT_EQ(lanes_->WhenTakenAwayWithout(lane), "") << "it is there";
  PutPod();
  DriverDies();
  const int64_t from = debts_->MayOweFromUnixMillis(kName).value();
  const int64_t left = from - clock_.WallUnixMillis();
  EXPECT_GT(left, 9 * 60'000);
  EXPECT_LE(left, 10 * 60'000);
  EXPECT_THAT(lanes_->WhenTakenAwayWithout(lane),
              HasSubstr("unmounted without it after " + WallTimeText(from)));
  plugin_settings_.Set({});
  EXPECT_EQ(lanes_->WhenTakenAwayWithout(lane), "");
}

TEST_F(CsiDebtsTest, WhatIsOwedIsDeliveredOnceWhenTheDriverIsBackUnpublishFirst) {
  LeaveWithout();
  EXPECT_FALSE(kernel_.IsMountPoint(Staging()));
  EXPECT_EQ(debts_->Counts().at(kName), 2);
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_EQ(Last<::csi::v1::NodeUnpublishVolumeRequest>("NodeUnpublishVolume").target_path(),
            PodMount());
  EXPECT_EQ(Last<::csi::v1::NodeUnstageVolumeRequest>("NodeUnstageVolume").staging_target_path(),
            Staging());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_TRUE(debts_->Counts().empty());
  scheduler_.RunFor(minutes(60));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(CsiDebtsTest, ARestartForgetsNothingThatIsOwed) {
  LeaveWithout();
  RestartAll();
  EXPECT_TRUE(debts_->HasOf(kName));
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
  RestartAll();
  scheduler_.RunFor(minutes(60));
  EXPECT_EQ(calls_.size(), 2u);
}

TEST_F(CsiDebtsTest, AnyOtherCallAboutTheVolumeComesAfterWhatIsOwed) {
  LeaveWithout();
  collector_.reset();  // nobody but the call itself delivers
  DriverReturns();
  ASSERT_TRUE(Stage(CsiSpec()).ok());
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume", "NodeStageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
}

// A pod's path is made of names, which another volume may have by now: drivers unmount by the path,
// and a pod was left Ready without its mount.
TEST_F(CsiDebtsTest, AnotherVolumeWasPutAtThePathOfADebt) {
  LeaveWithout();
  RestartAll();
  collector_.reset();
  ::csi::v1::NodePublishVolumeRequest publish;
  publish.set_volume_id("vol-other");
  publish.set_target_path(PodMount());
  ::csi::v1::NodeStageVolumeRequest stage;
  stage.set_volume_id("vol-other");
  stage.set_staging_target_path(Staging());
  for (const char* driver : {kName, "other.example.com"}) {
    SCOPED_TRACE(driver);
    const auto refused = AdmitCall(*with_debts_, driver, publish, Call());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::kUnavailable);
    EXPECT_FALSE(refused.error().maybe_applied());
    EXPECT_THAT(refused.error().message(),
                HasSubstr("CSI driver disk.example.com is owed NodeUnpublishVolume of volume " +
                          std::string(kHandle) + " at " + PodMount()));
    const auto unstaged = AdmitCall(*with_debts_, driver, stage, Call());
    ASSERT_FALSE(unstaged.ok());
    EXPECT_THAT(unstaged.error().message(), HasSubstr("is owed NodeUnstageVolume"));
  }
  publish.set_target_path(PodMount() + "-2");
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, publish, Call()).ok());
  DriverReturns();
  ASSERT_TRUE(DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call()).ok());
  publish.set_target_path(PodMount());
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, publish, Call()).ok());
  EXPECT_TRUE(AdmitCall(*with_debts_, kName, stage, Call()).ok());
}

TEST_F(CsiDebtsTest, ADebtWhoseRowCannotBeReadKeepsItsPathFromEverybody) {
  LeaveWithout();
  for (const Record& row : Rows()) store_.Corrupt(kCsiDebtRecordKind, row.key, "a bit has turned");
  RestartAll();
  EXPECT_THAT(debts_->WhatIsOwedAt(PodMount()), HasSubstr("whose record cannot be read"));
  EXPECT_EQ(debts_->WhatIsOwedAt(PodMount() + "-2"), "");
}

TEST_F(CsiDebtsTest, ADebtTookTheMountOfTheVolumeThatHadComeToItsPath) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Mounts(PodMount(), "/dev/sdb");
  StartCollector();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, IsEmpty());
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_EQ(Rows().size(), 2u);
  const Status held = DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call());
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(held.error().message(), HasSubstr("/dev/sdb is mounted at " + PodMount()));
  kernel_.UnmountBelow(PodMount());
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(calls_, ElementsAre("NodeUnpublishVolume", "NodeUnstageVolume"));
  EXPECT_THAT(Rows(), IsEmpty());
}

// The agent had ended between the debt and the unmount.
TEST_F(CsiDebtsTest, AVolumeThatIsMountedStillByItsDebtIsTakenAwayByItsOwnTeardown) {
  PutPod();
  collector_.reset();
  const CsiDebt debt{{kName, kHandle}, OwedCall::kUnpublish, PodMount(), 1'767'323'045'678};
  ASSERT_TRUE(debts_->Owe(debt).ok());
  EXPECT_FALSE(DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call()).ok());
  EXPECT_EQ(PodLeaves(), "");
  EXPECT_FALSE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, ACallThatIsOwedAndFailsKeepsOthersOutAndIsMadeAgain) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Says("NodeUnpublishVolume", Code::kInternal);
  StartCollector();
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Rows().size(), 2u);
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_FALSE(staged.error().maybe_applied()) << "of it nothing was sent";
  Does<::csi::v1::NodeUnpublishVolumeResponse>("NodeUnpublishVolume", [](const Message&) {});
  scheduler_.RunFor(minutes(5));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_EQ(calls_.back(), "NodeUnstageVolume");
}

TEST_F(CsiDebtsTest, ADriverThatKnowsNoSuchVolumeIsOwedNothing) {
  LeaveWithout();
  collector_.reset();
  DriverReturns();
  Says("NodeUnpublishVolume", Code::kNotFound);
  Says("NodeUnstageVolume", Code::kNotFound);
  const Status done = DeliverCsiDebts(*with_debts_, {kName, kHandle}, Call());
  EXPECT_TRUE(done.ok());
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, WhatIsNoPlainMountOfTheStagedDiskWaitsAndSaysWhy) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  kernel_.UnmountBelow(PodMount());
  kernel_.AddMount("fuse.sshfs", "host:/", PodMount());
  std::string left = PodLeaves();
  EXPECT_THAT(left, HasSubstr("CSI driver disk.example.com is gone since"));
  EXPECT_THAT(left, HasSubstr("cannot be taken away without it: what is mounted at " + PodMount() +
                              " is a fuse.sshfs"));
  // Of a driver that is gone for good nothing said how its inline volumes go.
  EXPECT_THAT(left, HasSubstr("if nobody uses it, `umount " + PodMount() + "` by hand"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  kernel_.UnmountBelow(PodMount());
  Mounts(PodMount(), "/dev/sdb");
  left = PodLeaves();
  EXPECT_THAT(left, HasSubstr("is not what is mounted at " + Staging()));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

// The texts sent an administrator to driver-absent-limit, by which it never went.
TEST_F(CsiDebtsTest, AStagingMountThatIsADirectoryStayedForEverAndNothingSaidHowItGoes) {
  Mounts("/srv/vols", "/dev/sdb");
  kernel_.AddDirectory("/srv/vols/v1");
  Does<::csi::v1::NodeStageVolumeResponse>("NodeStageVolume", [this](const Message& request) {
    Must(kernel_.Call(BindMount{.source = HostPathOf("/srv/vols/v1"),
                                .target = HostPathOf(Field(request, "staging_target_path"))},
                      {}));
  });
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  ASSERT_EQ(PodLeaves(), "");
  const std::string left = DeviceGoes();
  EXPECT_THAT(left, HasSubstr("is the directory /v1 of /dev/sdb"));
  EXPECT_THAT(left, HasSubstr("`umount " + Staging() + "` by hand lets it go on"));
  EXPECT_TRUE(kernel_.IsMountPoint(Staging()));
  EXPECT_THAT(operations_->VolumesOf(std::string("csi:") + kName),
              ElementsAre(VolumeOnRecord{SpecName("pv-1"), PodUid(), "", "",
                                         devices_->Find(Device())->state, Staging()}));
  kernel_.UnmountBelow(Staging());
  EXPECT_EQ(DeviceGoes(), "");
  EXPECT_EQ(Rows().size(), 2u) << "the driver is owed both calls";
}

TEST_F(CsiDebtsTest, WhatIsNotCertainlyStagedByItsRecordWaits) {
  PutPod();
  DeviceRecord device = *devices_->Find(Device());
  device.uncertain = true;
  devices_->Restore(device);
  DriverDies();
  scheduler_.RunFor(minutes(11));
  EXPECT_THAT(PodLeaves(), HasSubstr("which is not certain"));
  device.uncertain = false;
  device.staged = StagedState::kNot;
  devices_->Restore(device);
  EXPECT_THAT(PodLeaves(), HasSubstr("the driver has not staged it"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(CsiDebtsTest, AnUnmountThatHadNoEffectOwesNothing) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  kernel_.FailNext("Unmount", Error::NotApplied(Code::kFailedPrecondition, "busy"));
  EXPECT_THAT(PodLeaves(), HasSubstr("busy"));
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_EQ(PodLeaves(), "");
  EXPECT_EQ(Rows().size(), 1u);
}

TEST_F(CsiDebtsTest, NothingIsUnmountedUnlessTheDebtIsOnRecord) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(11));
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk is full"), 1,
                  kCsiDebtRecordKind);
  EXPECT_THAT(PodLeaves(), HasSubstr("disk is full"));
  EXPECT_TRUE(kernel_.IsMountPoint(PodMount()));
}

TEST_F(CsiDebtsTest, AVolumeIsNeverDetachedWithoutItsDriver) {
  PutPod(/*attachable=*/true);
  DriverDies();
  scheduler_.RunFor(minutes(11));
  ASSERT_EQ(PodLeaves(), "");
  ASSERT_EQ(DeviceGoes(), "");
  EXPECT_EQ(devices_->Find(Device())->state, VolumeState::kAttached);
  const std::string detached = Run(DetachVolume(
      DetachRequest{.device = Device(), .plugin_name = kCsiPluginName, .spec = SpecName("pv-1")}));
  EXPECT_NE(detached, "");
  EXPECT_EQ(detached.find("maybe"), std::string::npos) << detached;
  EXPECT_EQ(devices_->Find(Device())->state, VolumeState::kAttached);
  EXPECT_EQ(Rows().size(), 2u);
}

TEST_F(CsiDebtsTest, ARowThatCannotBeReadKeepsTheVolumeFromEverybody) {
  LeaveWithout();
  store_.Corrupt(kCsiDebtRecordKind, Rows().front().key, "a bit has turned");
  RestartAll();
  DriverReturns();
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(calls_, IsEmpty());
  const Status staged = Stage(CsiSpec());
  ASSERT_FALSE(staged.ok());
  EXPECT_THAT(staged.error().message(), HasSubstr("a bit has turned"));
  EXPECT_THAT(calls_, IsEmpty());
}

TEST_F(CsiDebtsTest, ADriverThatComesAndGoesIsAbsentFromItsLastConnectionOn) {
  PutPod();
  DriverDies();
  scheduler_.RunFor(minutes(9));
  DriverReturns();
  EXPECT_FALSE(debts_->MayOwe(kName));
  DriverDies();
  scheduler_.RunFor(minutes(9));
  EXPECT_FALSE(debts_->MayOwe(kName));
  scheduler_.RunFor(minutes(2));
  EXPECT_TRUE(debts_->MayOwe(kName));
  EXPECT_FALSE(debts_->MayOwe("other.example.com")) << "it was never here";
}

TEST_F(CsiDebtsTest, TheMetricCountsWhatEachDriverIsOwed) {
  LeaveWithout();
  CsiFigures figures(families_);
  figures.CollectDebts(debts_->Counts());
  std::string text;
  families_.AppendTo(text);
  EXPECT_THAT(text, HasSubstr("volumed_csi_debts{driver=\"disk.example.com\"} 2"));
  figures.CollectDebts({});
  text.clear();
  families_.AppendTo(text);
  EXPECT_EQ(text.find("volumed_csi_debts{"), std::string::npos);
}

}  // namespace
}  // namespace volumed
