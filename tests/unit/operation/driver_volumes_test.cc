// Operations on the volumes of a driver: who has a volume is known by its handle, the way down is
// told what the record says, and a restart asks no driver. The driver is a script.
#include <gmock/gmock.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/operation/driver_volumes_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- the way down, by the record ----------------------------------------------------------------

TEST_F(DriverVolumesTest, TheWayDownIsToldWhatTheRecordSaysThoughNothingElseTellsIt) {
  ASSERT_EQ(All({Attach(), Stage(true), Publish("a")}), "");
  Restart();
  EXPECT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Unstage(), "");
  EXPECT_EQ(Detach(), "");
  EXPECT_THAT(script_.calls, ElementsAre("unpublish vol-1", "unstage vol-1", "detach vol-1"));
  EXPECT_THAT(store_.All(), IsEmpty());
}

TEST_F(DriverVolumesTest, ABlockVolumesWayDownIsToldToo) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  Restart();
  EXPECT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Unstage(), "");
  EXPECT_THAT(script_.calls, ElementsAre("unpublish vol-1", "unstage vol-1"));
}

// The row was written over: nobody knew of the mount any more, and the disk was detached under it.
TEST_F(DriverVolumesTest, ABlockVolumeOfTheHandleMadeTheMountOfAnotherForgotten) {
  ASSERT_EQ(All({Attach(), Stage(true)}), "");
  const std::string place = Device().device_mount_path;
  is_block_ = true;
  const std::string refused = Stage(true);
  EXPECT_THAT(refused, HasSubstr("CheckPlace: "));
  EXPECT_THAT(refused, HasSubstr("is still DeviceMounted at " + place + " for volume disk"));
  EXPECT_THAT(Publish("a"), HasSubstr("CheckDevice: "));
  EXPECT_EQ(Device().device_mount_path, place);
  EXPECT_FALSE(Device().is_block);
  EXPECT_FALSE(Device().uncertain);
  EXPECT_EQ(Unstage(), "");
  EXPECT_EQ(All({Stage(true), Publish("a")}), "");
  EXPECT_TRUE(Device().is_block);
  is_block_ = false;
  EXPECT_THAT(Stage(true), HasSubstr("CheckPlace: "));
  EXPECT_TRUE(Device().is_block);
}

TEST_F(DriverVolumesTest, WithoutARecordThePluginLooksWhatIsOnDisk) {
  EXPECT_EQ(Unpublish("a"), "");
  EXPECT_THAT(script_.calls, ElementsAre("unpublish ?"));
}

// ---- who has a volume ---------------------------------------------------------------------------

TEST_F(DriverVolumesTest, AVolumeIsNotDeletedAsLongAsAnythingOfItIsOnTheNode) {
  ASSERT_EQ(Attach(), "");
  // It said that it has the storage of persistent volume disk, which is in use.
  EXPECT_EQ(Delete("disk", "vol-1"),
            "Delete: its device is still on this node; nothing is deleted before it has left");
  ASSERT_EQ(All({Stage(true), Publish("a")}), "");
  EXPECT_NE(Delete("disk", "vol-1"), "");
  ASSERT_EQ(All({Unpublish("a"), Unstage()}), "");
  EXPECT_NE(Delete("disk", "vol-1"), "") << "it is attached";
  ASSERT_EQ(Detach(), "");
  EXPECT_EQ(Delete("disk", "vol-1"), "");
  EXPECT_EQ(script_.calls.back(), "delete vol-1");
}

TEST_F(DriverVolumesTest, AVolumeThatIsNotAttachedIsFreeOnceItIsUnstaged) {
  ASSERT_EQ(Stage(false), "");
  EXPECT_NE(Delete("disk", "vol-1"), "");
  ASSERT_EQ(Unstage(), "");
  EXPECT_EQ(Delete("disk", "vol-1"), "");
}

TEST_F(DriverVolumesTest, ABlockVolumeKeepsItsHandleWhileAPodHasItsDevice) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  EXPECT_NE(Delete("disk", "vol-1"), "");
  Restart();
  EXPECT_NE(Delete("disk", "vol-1"), "");
  ASSERT_EQ(All({Unpublish("a"), Unstage()}), "");
  EXPECT_EQ(Delete("disk", "vol-1"), "");
}

TEST_F(DriverVolumesTest, AnotherPersistentVolumeWithTheHandleKeepsIt) {
  disk_is_known_ = true;
  EXPECT_THAT(Delete("other", "vol-1"), HasSubstr("persistent volume disk"));
  EXPECT_EQ(Delete("other", "vol-2"), "");
  disk_is_known_ = false;
  EXPECT_EQ(Delete("other", "vol-1"), "");
}

TEST_F(DriverVolumesTest, NothingIsAttachedWhileItsVolumeMayBeBeingDeleted) {
  script_.failures.emplace("delete", Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"));
  ASSERT_NE(Delete("disk", "vol-1"), "");
  EXPECT_THAT(Attach(), HasSubstr("whose content is being deleted"));
  EXPECT_FALSE(devices_->Find(kDriversVolume));
  Restart();
  EXPECT_THAT(Stage(false), HasSubstr("whose content is being deleted"));
  EXPECT_EQ(Delete("disk", "vol-1"), "");
  EXPECT_EQ(Attach(), "");
}

// A volume stays attached, and a driver may keep what it has staged.
TEST_F(DriverVolumesTest, ARestartAndARebootGiveNoVolumeFree) {
  ASSERT_EQ(Attach(), "");
  Restart();
  EXPECT_NE(Delete("disk", "vol-1"), "");
  Restart("boot-b");
  EXPECT_NE(Delete("disk", "vol-1"), "");
  ASSERT_EQ(All({Attach(), Detach()}), "");
  EXPECT_EQ(Delete("disk", "vol-1"), "");
}

TEST_F(DriverVolumesTest, AnAttachThatWasRefusedGivesTheVolumeFreeAndAnUncertainOneDoesNot) {
  script_.failures.emplace("attach", Error::NotApplied(Code::kNotFound, "no such node"));
  ASSERT_NE(Attach(), "");
  ASSERT_EQ(Delete("disk", "vol-1"), "");
  script_.failures.emplace("attach", Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"));
  ASSERT_NE(Attach(), "");
  EXPECT_NE(Delete("disk", "vol-1"), "");
}

// ---- lost records ----------------------------------------------------------------------------

// It was detached while the pod of an earlier agent wrote to it.
TEST_F(DriverVolumesTest, AVolumeIsNotDetachedUnderAMountOfWhichTheRecordWasLost) {
  ASSERT_EQ(Attach(), "");
  unrecorded_->Set({LeftBy("lost")});
  EXPECT_EQ(Detach(),
            "CheckDeviceUnused: volume disk is mounted in pod lost, of which no record tells: "
            "/var/lib/volumed/pods/lost/volumes/kubernetes.io~csi/disk/mount; an administrator has "
            "to look at it, and to unmount it");
  EXPECT_THAT(script_.calls, ElementsAre("attach vol-1"));
  UnmountLeftBy("lost");
  EXPECT_EQ(Detach(), "");
}

TEST_F(DriverVolumesTest, AVolumeIsNotUnstagedUnderAMountOfWhichTheRecordWasLost) {
  ASSERT_EQ(Stage(false), "");
  unrecorded_->Set({LeftBy("lost")});
  EXPECT_THAT(Unstage(), HasSubstr("GetDeviceMountRefs: volume disk is mounted in pod lost"));
  UnmountLeftBy("lost");
  EXPECT_EQ(Unstage(), "");
}

TEST_F(DriverVolumesTest, AMountThatDoesNotSayItsVolumeKeepsTheOneOfItsNameAttached) {
  ASSERT_EQ(Attach(), "");
  unrecorded_->Set({LeftBy("lost", UniqueVolumeName())});
  EXPECT_THAT(Detach(), HasSubstr("volume disk is mounted in pod lost"));
}

// Its own staging mount, which a start found, is on record once the volume is staged again.
TEST_F(DriverVolumesTest, TheMountOfTheDeviceItselfDoesNotHoldItsUnmountUp) {
  ASSERT_EQ(All({Attach(), Stage(true)}), "");
  UnrecordedMount device;
  device.plugin = kDriverPlugin;
  device.volume = kDriversVolume;
  device.places = {Device().device_mount_path};
  node_.AddDirectory(device.places.front());
  ASSERT_TRUE(node_.Call(Mount{"tmpfs", "tmpfs", {device.places.front(), ""}, {}}, {}).ok());
  unrecorded_->Set({device});
  ASSERT_EQ(Unstage(), "");
  EXPECT_THAT(Detach(), HasSubstr("the device is still mounted at"));
  node_.UnmountBelow(device.places.front());
  EXPECT_EQ(Detach(), "");
}

// ---- a restart ----------------------------------------------------------------------------------

TEST_F(DriverVolumesTest, ARestartIsNoCallAndWaitsForNoDriver) {
  ASSERT_EQ(All({Attach(), Stage(true), Publish("a")}), "");
  Restart();
  DriverIsAway();
  EXPECT_EQ(Stage(true, /*reconstructed=*/true), "");
  EXPECT_EQ(Publish("a", /*reconstructed=*/true), "");
  EXPECT_THAT(script_.calls, ElementsAre("prove stage vol-1", "prove publish vol-1"));
  EXPECT_EQ(Publish("b"), "waits") << "what is new is the driver's";
}

TEST_F(DriverVolumesTest, ARestartIsNoCallForABlockVolumeEither) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  Restart();
  DriverIsAway();
  EXPECT_EQ(Stage(false, /*reconstructed=*/true), "");
  EXPECT_EQ(Publish("a", /*reconstructed=*/true), "");
  EXPECT_THAT(script_.calls, ElementsAre("prove stage vol-1", "prove publish vol-1"));
}

TEST_F(DriverVolumesTest, AfterAFailedProofTheNextTryIsTheWholeCall) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  Restart();
  script_.failures.emplace("stage", Error::NotApplied(Code::kInternal, "nothing is mounted"));
  EXPECT_NE(Stage(false, /*reconstructed=*/true), "");
  EXPECT_TRUE(Device().uncertain);
  EXPECT_EQ(Stage(false, /*reconstructed=*/true), "");
  script_.failures.emplace("publish", Error::NotApplied(Code::kInternal, "nothing is mounted"));
  EXPECT_NE(Publish("a", /*reconstructed=*/true), "");
  EXPECT_TRUE(operations_->FindRecord(Key("a", "disk"))->uncertain);
  EXPECT_EQ(Publish("a", /*reconstructed=*/true), "");
  EXPECT_THAT(script_.calls, ElementsAre("prove stage vol-1", "stage vol-1", "prove publish vol-1",
                                         "publish vol-1"));
}

TEST_F(DriverVolumesTest, WhatIsPublishedAnewNowAndThenGetsItsCall) {
  script_.republishes = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  Restart();
  EXPECT_EQ(All({Stage(false, /*reconstructed=*/true), Publish("a", /*reconstructed=*/true)}), "");
  EXPECT_THAT(script_.calls, ElementsAre("stage vol-1", "publish vol-1"));
}

TEST_F(DriverVolumesTest, AfterARebootNothingIsProvenByTheRecord) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  Restart("boot-b");
  EXPECT_EQ(All({Stage(false, /*reconstructed=*/true), Publish("a", /*reconstructed=*/true)}), "");
  EXPECT_THAT(script_.calls, ElementsAre("stage vol-1", "publish vol-1"));
}

// ---- figures ------------------------------------------------------------------------------------

// All drivers had one series.
TEST_F(DriverVolumesTest, MetricsNameThePluginWithItsDriverOnTheWayDownToo) {
  ASSERT_EQ(All({Attach(), Stage(true), Publish("a")}), "");
  Restart();
  ASSERT_EQ(All({Unpublish("a"), Unstage(), Detach()}), "");
  std::vector<std::string> operations;
  for (const FinishedOperation& finished : observer_.finished) {
    operations.push_back(finished.operation);
    EXPECT_EQ(finished.plugin_name, "kubernetes.io/csi:disks.test.io") << finished.operation;
    EXPECT_FALSE(finished.migrated) << finished.operation;
  }
  EXPECT_THAT(operations, ElementsAre("volume_attach", "mount_device", "volume_mount",
                                      "volume_unmount", "unmount_device", "volume_detach"));
}

TEST_F(DriverVolumesTest, MetricsSayOfATranslatedVolumeThatItIsMigratedByItsRecordToo) {
  MountDeviceRequest stage{kDriversVolume, Spec().WithCsiMigration(), {PodUid("a")}};
  ASSERT_EQ(Start(MountDevice(std::move(stage))), "");
  MountRequest publish = MountOf("a");
  publish.spec = publish.spec.WithCsiMigration();
  ASSERT_EQ(Start(MountVolume(std::move(publish))), "");
  Restart();
  ASSERT_EQ(All({Unpublish("a"), Unstage()}), "");
  EXPECT_EQ(observer_.finished.size(), 4u);
  for (const FinishedOperation& finished : observer_.finished) {
    EXPECT_TRUE(finished.migrated) << finished.operation;
    EXPECT_EQ(finished.plugin_name, "kubernetes.io/csi:disks.test.io") << finished.operation;
  }
}

TEST_F(DriverVolumesTest, AVolumeOfADriverCountsOnceHoweverManyPodsHaveIt) {
  EXPECT_THAT(operations_->CountByDriver(), IsEmpty());
  ASSERT_EQ(All({Stage(false), Publish("a"), Publish("b")}), "");
  const std::map<std::string, int> one = {{kLane, 1}};
  EXPECT_EQ(operations_->CountByDriver(), one);
  Restart();
  EXPECT_EQ(operations_->CountByDriver(), one);
  ASSERT_EQ(All({Unpublish("a"), Unpublish("b")}), "");
  EXPECT_EQ(operations_->CountByDriver(), one) << "it is staged";
  ASSERT_EQ(Unstage(), "");
  EXPECT_THAT(operations_->CountByDriver(), IsEmpty());
}

// ---- one pod only -------------------------------------------------------------------------------

class OnlyPodTest : public DriverVolumesTest {
 protected:
  OnlyPodTest() { one_pod_only_ = true; }
  std::string Holder() const { return Device().only_pod.str(); }
  static constexpr char kRefused[] =
      "TakeOnlyPod: volume uses the ReadWriteOncePod access mode and is already in use by another "
      "pod: ";
};

TEST_F(OnlyPodTest, OnePodHasTheVolumeUntilItIsTakenFromIt) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  EXPECT_EQ(Holder(), "a");
  EXPECT_EQ(Publish("b"), std::string(kRefused) + "default/a");
  EXPECT_FALSE(operations_->FindRecord(Key("b", "disk")));
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Holder(), "");
  EXPECT_EQ(Publish("b"), "");
}

TEST_F(OnlyPodTest, SoItIsForABlockVolume) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  EXPECT_EQ(Publish("b"), std::string(kRefused) + "default/a");
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Publish("b"), "");
}

// The row of the pod's volume is lost with the power, and the other pod is the first to come.
TEST_F(OnlyPodTest, APowerLossDoesNotChangeWhoHasIt) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  store_.PowerLoss();
  Restart("boot-b");
  ASSERT_FALSE(operations_->FindRecord(Key("a", "disk")));
  ASSERT_EQ(Stage(false), "");
  EXPECT_EQ(Publish("b"), std::string(kRefused) + "a");
  EXPECT_EQ(Publish("a"), "");
}

TEST_F(OnlyPodTest, AfterAPowerLossThePodsRemovalGivesItFreeAlsoOnceItIsUnstaged) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  store_.PowerLoss();
  Restart("boot-b");
  ASSERT_EQ(All({Stage(false), Unstage()}), "");
  EXPECT_EQ(Holder(), "a");
  ASSERT_EQ(Stage(false), "");
  EXPECT_NE(Publish("b"), "");
  ASSERT_EQ(Remove("a"), "");
  EXPECT_EQ(Publish("b"), "");
}

// The other pod was ready at once, on the volume that the first one had mounted.
TEST_F(OnlyPodTest, LostRecordsGiveTheVolumeToNobodyButThePodThatHasItMounted) {
  unrecorded_->Set({LeftBy("a")});
  ASSERT_EQ(Stage(false), "");
  EXPECT_THAT(Publish("b"),
              HasSubstr("TakeOnlyPod: volume disk is mounted in pod a, of which no record tells: "
                        "/var/lib/volumed/pods/a/volumes/kubernetes.io~csi/disk/mount"));
  EXPECT_EQ(Holder(), "");
  EXPECT_EQ(Publish("a"), "") << "it goes on";
  EXPECT_EQ(Publish("b"), std::string(kRefused) + "default/a") << "a record tells it now";
  UnmountLeftBy("a");
  ASSERT_EQ(Unpublish("a"), "");
  EXPECT_EQ(Publish("b"), "");
}

TEST_F(OnlyPodTest, LostRecordsGiveABlockVolumeToNobodyElseEither) {
  is_block_ = true;
  UnrecordedMount map;
  map.plugin = kDriverPlugin;
  map.volume = kDriversVolume;
  map.spec = kSpec;
  map.is_map = true;
  map.is_block = true;
  map.places = {paths_.GetBlockMapDir(kDriverPlugin, kSpec).Display()};
  map.device_place = map.places.front();
  const std::string node = map.places.front() + "/a";
  node_.AddDirectory(node);
  ASSERT_TRUE(node_.Call(Mount{"tmpfs", "tmpfs", {node, ""}, {}}, {}).ok());
  unrecorded_->Set({map});
  ASSERT_EQ(Stage(false), "");
  EXPECT_THAT(Publish("b"), HasSubstr("TakeOnlyPod: volume disk is mounted in pod a"));
  node_.UnmountBelow(node);
  node_.Remove(node);
  EXPECT_EQ(Publish("b"), "");
}

TEST_F(OnlyPodTest, ASetUpThatCertainlyFailedGivesItBack) {
  ASSERT_EQ(Stage(false), "");
  script_.failures.emplace("publish", Error::NotApplied(Code::kNotFound, "no such volume"));
  ASSERT_NE(Publish("a"), "");
  EXPECT_EQ(Holder(), "");
  script_.failures.emplace("publish", Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"));
  ASSERT_NE(Publish("a"), "");
  EXPECT_EQ(Holder(), "a");
}

}  // namespace
}  // namespace volumed
