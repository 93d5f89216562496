// What is left of a volume whose rows are lost keeps its device from being staged for another
// PersistentVolume of the same handle, or as what it is not.
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "operation/device_facts.h"
#include "unit/operation/driver_volumes_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LostDeviceRowsTest : public DriverVolumesTest {
 protected:
  static std::string MapOf(const std::string& name) {
    return "/var/lib/volumed/plugins/kubernetes.io~csi/volumeDevices/" + name;
  }
  static std::string TargetsOf(const std::string& name) {
    return "/var/lib/volumed/plugins/kubernetes.io/csi/volumeDevices/publish/" + name;
  }
  // What a start finds of this block volume of the handle; the mount is there.
  UnrecordedMount LostRaw(const std::string& name, const std::string& mount_point) {
    MountAt(mount_point);
    UnrecordedMount left;
    left.plugin = kDriverPlugin;
    left.volume = kDriversVolume;
    left.spec = SpecName(name);
    left.places = {MapOf(name), TargetsOf(name)};
    left.is_map = true;
    left.is_block = true;
    left.device_place = MapOf(name);
    return left;
  }
  UnrecordedMount LostMount(const std::string& place) {
    MountAt(place);
    UnrecordedMount left;
    left.plugin = kDriverPlugin;
    left.volume = kDriversVolume;
    left.places = {place};
    left.device_place = place;
    return left;
  }
  void MountAt(const std::string& path) {
    node_.AddDirectory(path);
    ASSERT_TRUE(node_.Call(Mount{"tmpfs", "tmpfs", {path, ""}, {}}, {}).ok());
  }
  // The agent ends, and the rows of devices are lost with it.
  void LoseDeviceRows() {
    ASSERT_TRUE(
        store_.Remove(kDeviceRecordKind, RecordKey(kDriversVolume), kDeviceRecordDurability).ok());
    Restart();
    ASSERT_FALSE(devices_->Find(kDriversVolume));
  }
};

// It was formatted while the pod of an earlier agent wrote to it, and mounted for another one.
TEST_F(LostDeviceRowsTest, ADeviceThatALostPodHasRawWasStagedAsAFilesystem) {
  const std::string node = MapOf("raw") + "/lost";
  unrecorded_->Set({LostRaw("raw", node)});
  const std::string why =
      "CheckPlace: volume disk has the storage of volume raw: volume raw is mounted in pod lost, "
      "of which no record tells: " +
      node + "; an administrator has to look at it, and to unmount it";
  EXPECT_EQ(Attach(), why);
  EXPECT_EQ(Stage(false), why);
  EXPECT_THAT(script_.calls, IsEmpty());
  EXPECT_FALSE(devices_->Find(kDriversVolume)) << "nothing was begun";
  node_.UnmountBelow(node);
  EXPECT_EQ(All({Attach(), Stage(true), Publish("a")}), "");
}

TEST_F(LostDeviceRowsTest, SoItWasIfTheDeviceWasAtTheTargetPathOfTheDriverAlone) {
  const std::string target = TargetsOf("raw") + "/lost";
  unrecorded_->Set({LostRaw("raw", target)});
  EXPECT_THAT(Stage(false),
              HasSubstr("volume raw is mounted in pod lost, of which no record tells: " + target));
  EXPECT_THAT(script_.calls, IsEmpty());
}

// The driver was called twice before the kernel refused to give the device away.
TEST_F(LostDeviceRowsTest, AFilesystemThatALostPodHasWasStagedAsARawDevice) {
  unrecorded_->Set({LeftBy("lost")});
  is_block_ = true;
  spec_ = SpecName("raw");
  EXPECT_THAT(Attach(), HasSubstr("CheckPlace: volume raw has the storage of volume disk: "));
  EXPECT_THAT(Stage(false), HasSubstr("CheckPlace: volume raw has the storage of volume disk: "));
  EXPECT_THAT(script_.calls, IsEmpty());
  UnmountLeftBy("lost");
  EXPECT_EQ(All({Stage(false), Publish("a")}), "");
}

TEST_F(LostDeviceRowsTest, AStagingMountOfWhichTheRecordWasLostKeepsTheDeviceFromBeingRaw) {
  const std::string place = "/var/lib/volumed/plugins/csi/vol-1";
  unrecorded_->Set({LostMount(place)});
  is_block_ = true;
  EXPECT_THAT(Stage(false), HasSubstr("CheckPlace: volume disk is mounted on this node, of which "
                                      "no record tells: " +
                                      place));
  node_.UnmountBelow(place);
  EXPECT_EQ(Stage(false), "");
}

// The second pod had it beside the first one.
TEST_F(LostDeviceRowsTest, ADeviceThatALostPodHasRawWasGivenUnderAnotherName) {
  is_block_ = true;
  unrecorded_->Set({LostRaw("raw", MapOf("raw") + "/lost")});
  EXPECT_THAT(Stage(false), HasSubstr("CheckPlace: volume disk has the storage of volume raw: "));
  EXPECT_THAT(script_.calls, IsEmpty());
  spec_ = SpecName("raw");
  EXPECT_EQ(All({Stage(false), Publish("a")}), "") << "the very volume goes on";
}

TEST_F(LostDeviceRowsTest, WhatIsAtTheVeryPlaceGoesOnBesideAMountOfTheLostPod) {
  unrecorded_->Set({LeftBy("lost"), LostMount("/var/lib/volumed/plugins/csi/vol-1")});
  EXPECT_EQ(All({Stage(false), Publish("lost"), Publish("a")}), "");
  EXPECT_THAT(script_.calls, ElementsAre("stage vol-1", "publish vol-1", "publish vol-1"));
}

// One disk may be two devices of the kernel by two ways to it, and be mounted from each.
TEST_F(LostDeviceRowsTest, AMountAtAnotherPlaceIsInTheWayUnlessADriversKubeletHadItThere) {
  const std::string place = "/var/lib/volumed/plugins/one/mounts/disk";
  unrecorded_->Set({LostMount(place)});
  OperationParts parts{plugins_, host_, logger_, store_, *devices_, *storage_};
  parts.unrecorded = unrecorded_;
  parts.volumes =
      std::make_shared<VolumeRecordKeeper>(store_, clock_, logger_, observer_, BootId("boot-a"));
  DeviceRecord wanted;
  wanted.key = kDriversVolume;
  wanted.plugin_name = kDriverPlugin;
  wanted.spec = kSpec;
  wanted.device_mount_path = "/var/lib/volumed/plugins/other/mounts/disk";
  wanted.fault_domain = "iscsi:portal";
  const Status refused = CheckNotHadOtherwise(parts, wanted, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(), HasSubstr(place));
  wanted.fault_domain = kLane;
  EXPECT_TRUE(CheckNotHadOtherwise(parts, wanted, nullptr).ok());
  wanted.fault_domain = "iscsi:portal";
  wanted.device_mount_path = place;
  EXPECT_TRUE(CheckNotHadOtherwise(parts, wanted, nullptr).ok());
}

// ---- rows of devices alone ----------------------------------------------------------------------

TEST_F(LostDeviceRowsTest, ADeviceThatAPodOnRecordHasRawWasStagedAsAFilesystem) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  ASSERT_NO_FATAL_FAILURE(LoseDeviceRows());
  const std::string why = ": it has to leave that pod first";
  const std::string of_a = " is still Mapped for pod default/a as volume disk, a block volume";
  spec_ = SpecName("other");
  EXPECT_EQ(Stage(false), "CheckPlace: volume other" + of_a + why);
  is_block_ = false;
  EXPECT_EQ(Stage(false), "CheckPlace: volume other" + of_a + why);
  EXPECT_EQ(Attach(), "CheckPlace: volume other" + of_a + why);
  EXPECT_THAT(script_.calls, IsEmpty());
  is_block_ = true;
  spec_ = kSpec;
  EXPECT_EQ(Unpublish("a"), "");
  is_block_ = false;
  EXPECT_THAT(Stage(false), Not(HasSubstr("CheckPlace")));
}

TEST_F(LostDeviceRowsTest, TheVeryVolumeOfAPodOnRecordIsSetUpAgain) {
  is_block_ = true;
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  ASSERT_NO_FATAL_FAILURE(LoseDeviceRows());
  EXPECT_EQ(Stage(false), "");
  EXPECT_EQ(Device().spec, kSpec);
}

TEST_F(LostDeviceRowsTest, AFilesystemThatAPodOnRecordHasWasStagedAsARawDevice) {
  ASSERT_EQ(All({Stage(false), Publish("a")}), "");
  ASSERT_NO_FATAL_FAILURE(LoseDeviceRows());
  is_block_ = true;
  EXPECT_THAT(Stage(false), HasSubstr("CheckPlace: volume disk is still SetUp for pod default/a as "
                                      "volume disk, a filesystem"));
  EXPECT_THAT(script_.calls, IsEmpty());
  is_block_ = false;
  spec_ = SpecName("other");
  EXPECT_EQ(All({Stage(false), Publish("b")}), "") << "pods share a mount under several names";
}

}  // namespace
}  // namespace volumed
