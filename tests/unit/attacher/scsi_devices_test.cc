#include "attacher/scsi_devices.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_scsi_tree.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kMap[] = "mpath-36001405a1b2c3d4e";

class ScsiDevicesTest : public ::testing::Test {
 protected:
  ScsiDevicesTest() : tree_(kernel_), scsi_(kernel_) {
    tree_.AddHost(3);
    tree_.AddHost(4);
    tree_.AddDisk({"sdb", "3:0:0:1"});
  }
  // sdb and sdc, two paths to one LUN.
  void AddMultipath() {
    tree_.AddDisk({"sdc", "3:0:1:1", "rport-3:0-1"});
    tree_.AddMap("dm-0", "mpatha", kMap, {"sdb", "sdc"});
  }
  Error RemoveError(const std::string& device) {
    const Status removed = scsi_.Remove(device, call_);
    EXPECT_FALSE(removed.ok());
    return removed.ok() ? Error::NotApplied(Code::kUnknown, "none") : removed.error();
  }

  FakeKernel kernel_;
  FakeScsiTree tree_;
  std::shared_ptr<FakeMultipathTools> tools_ = std::make_shared<FakeMultipathTools>();
  ScsiDevices scsi_;
  CallOptions call_;
};

TEST_F(ScsiDevicesTest, AHostIsScannedForOneUnitOrForAll) {
  ASSERT_TRUE(scsi_.ScanHost(3, 0, 0, 7, call_).ok());
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host3/scan"), "0 0 7");
  ASSERT_TRUE(scsi_.ScanHost(3, std::nullopt, std::nullopt, std::nullopt, call_).ok());
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host3/scan"), "- - -");
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host4/scan"), "");
  EXPECT_EQ(scsi_.ScanHost(9, 0, 0, 7, call_).error().code(), Code::kNotFound);
}

TEST_F(ScsiDevicesTest, ARefusingHostKeepsNoOtherFromBeingScanned) {
  kernel_.FailNextBelow("WriteAttribute", "/sys/class/scsi_host/host3",
                        Error::FromErrno(EIO, "write", Outcome::kNotApplied));
  const Status scanned = scsi_.RescanAllHosts(call_);
  ASSERT_FALSE(scanned.ok());
  EXPECT_THAT(scanned.error().message(), HasSubstr("host3"));
  EXPECT_EQ(tree_.Attribute("class/scsi_host/host4/scan"), "- - -");
}

TEST(ScsiDevicesWithoutHostsTest, ThatThereIsNoHostIsSaid) {
  FakeKernel kernel;
  const Status scanned = ScsiDevices(kernel).RescanAllHosts({});
  ASSERT_FALSE(scanned.ok());
  EXPECT_EQ(scanned.error().code(), Code::kNotFound);
  EXPECT_THAT(scanned.error().message(), HasSubstr("no SCSI hosts"));
}

TEST_F(ScsiDevicesTest, ADiskIsDescribedBySysfs) {
  kernel_.AddSymlink("/dev/disk/by-id/scsi-36001405a1b2c3d4e", "../../sdb");
  const auto disk = scsi_.FindDisk("/dev/disk/by-id/scsi-36001405a1b2c3d4e", call_);
  ASSERT_TRUE(disk.ok() && *disk) << disk.error().ToString();
  EXPECT_EQ((*disk)->name, "sdb");
  EXPECT_EQ((*disk)->node, "/dev/sdb");
  EXPECT_EQ((*disk)->address, "3:0:0:1");
  EXPECT_EQ((*disk)->lun, 1);
  EXPECT_EQ((*disk)->wwid, "naa.6001405a1b2c3d4e");
  EXPECT_EQ((*disk)->sysfs_path,
            "devices/pci0000:00/0000:00:03.0/host3/rport-3:0-0/target3:0:0/3:0:0:1");
  EXPECT_TRUE((*disk)->running());
  const FakeDevice device = kernel_.Device("/dev/sdb");
  EXPECT_EQ((*disk)->number.device_minor, device.identity.device_minor);
}

TEST_F(ScsiDevicesTest, WhatIsNotThereIsNothingAndWhatIsNoScsiDiskIsRefused) {
  AddMultipath();
  for (const char* gone : {"/dev/sdz", "/dev/disk/by-id/scsi-gone", "/dev/mapper/gone"}) {
    const auto disk = scsi_.FindDisk(gone, call_);
    ASSERT_TRUE(disk.ok()) << gone;
    EXPECT_FALSE(*disk) << gone;
  }
  EXPECT_EQ(scsi_.FindDisk("/dev/dm-0", call_).error().code(), Code::kFailedPrecondition);
  EXPECT_EQ(scsi_.FindDisk("/etc/passwd", call_).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(scsi_.FindDisk("/dev/../etc/x", call_).error().code(), Code::kInvalidArgument);
}

TEST_F(ScsiDevicesTest, OnlyScsiDisksAreListed) {
  AddMultipath();
  const auto disks = scsi_.ListDisks(call_);
  ASSERT_TRUE(disks.ok());
  ASSERT_EQ(disks->size(), 2u);
  EXPECT_EQ(disks->front().name, "sdb");
  EXPECT_EQ(disks->back().name, "sdc");
}

TEST_F(ScsiDevicesTest, TheMultipathDeviceOfADiskIsFoundAndItsPaths) {
  EXPECT_FALSE(scsi_.MultipathOf("/dev/sdb", call_).value());
  AddMultipath();
  EXPECT_EQ(scsi_.MultipathOf("/dev/sdc", call_).value(), "/dev/dm-0");
  EXPECT_THAT(scsi_.PathsOf("/dev/mapper/mpatha", call_).value(),
              ElementsAre("/dev/sdb", "/dev/sdc"));
  EXPECT_THAT(scsi_.PathsOf("/dev/sdb", call_).value(), IsEmpty());
  EXPECT_TRUE(scsi_.IsMultipath("/dev/mapper/mpatha", call_).value());
  EXPECT_FALSE(scsi_.IsMultipath("/dev/sdb", call_).value());
}

TEST_F(ScsiDevicesTest, ALogicalVolumeOfADiskIsNoMultipathDevice) {
  tree_.AddMap("dm-1", "vg-lv", "LVM-abc", {"sdb"});
  EXPECT_FALSE(scsi_.MultipathOf("/dev/sdb", call_).value());
  EXPECT_FALSE(scsi_.IsMultipath("/dev/dm-1", call_).value());
}

TEST_F(ScsiDevicesTest, AMapIsDescribedByItsNumberAndItsUuidOrNotAtAll) {
  AddMultipath();
  const auto map = scsi_.DescribeMap("/dev/mapper/mpatha", call_);
  ASSERT_TRUE(map.ok()) << map.error().ToString();
  EXPECT_EQ(map->uuid, kMap);
  EXPECT_EQ(map->number.device_minor, kernel_.Device("/dev/dm-0").identity.device_minor);
  EXPECT_EQ(scsi_.DescribeMap("/dev/mapper/gone", call_).error().code(), Code::kNotFound);
  kernel_.AddFile("/sys/devices/virtual/block/dm-0/dev", "253\n");
  EXPECT_EQ(scsi_.DescribeMap("/dev/dm-0", call_).error().code(), Code::kDataLoss);
}

// A disk of which sysfs says too little would be missed where disks are counted.
TEST_F(ScsiDevicesTest, ADiskThatCannotBeDescribedFailsTheList) {
  tree_.AddDisk({"sdd", "3:0:0:2"});
  kernel_.AddFile(
      "/sys/devices/pci0000:00/0000:00:03.0/host3/rport-3:0-0/target3:0:0/3:0:0:2/block/sdd/dev",
      "8\n");
  EXPECT_EQ(scsi_.ListDisks(call_).error().code(), Code::kDataLoss);
}

// ---- removal ------------------------------------------------------------------------------------

TEST_F(ScsiDevicesTest, ADiskIsFlushedAndDeleted) {
  ASSERT_TRUE(scsi_.Remove("/dev/sdb", call_).ok());
  EXPECT_FALSE(tree_.HasBlock("sdb"));
  EXPECT_EQ(kernel_.Device("/dev/sdb").flushes, 1);
  EXPECT_TRUE(scsi_.Remove("/dev/sdb", call_).ok()) << "what is gone is success";
}

TEST_F(ScsiDevicesTest, OfAMultipathDeviceTheMapGoesBeforeItsPaths) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  ASSERT_TRUE(scsi_.Remove("/dev/mapper/mpatha", call_).ok());
  EXPECT_THAT(tools_->commands, ElementsAre("/usr/sbin/multipath -f /dev/dm-0"));
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
  EXPECT_EQ(kernel_.Device("/dev/dm-0").flushes, 1);
}

TEST_F(ScsiDevicesTest, APathIsNotDeletedBelowItsMap) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  ASSERT_TRUE(scsi_.Remove("/dev/sdb", call_).ok());
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
}

TEST_F(ScsiDevicesTest, WhatSomebodyUsesStays) {
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.claimed = true; });
  const Error error = RemoveError("/dev/sdb");
  EXPECT_EQ(error.code(), Code::kFailedPrecondition);
  EXPECT_FALSE(error.maybe_applied());
  EXPECT_TRUE(tree_.HasBlock("sdb"));
  EXPECT_EQ(tree_.Attribute("block/sdb/device/delete"), "");
}

TEST_F(ScsiDevicesTest, WhoHoldsADiskIsNamed) {
  tree_.AddMap("dm-1", "vg-lv", "LVM-abc", {"sdb"});
  EXPECT_THAT(RemoveError("/dev/sdb").message(), HasSubstr("by dm-1"));
  EXPECT_TRUE(tree_.HasBlock("sdb"));
}

TEST_F(ScsiDevicesTest, AMapInUseKeepsItsPaths) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  kernel_.ChangeDevice("/dev/dm-0", [](FakeDevice& device) { device.claimed = true; });
  EXPECT_EQ(RemoveError("/dev/dm-0").code(), Code::kFailedPrecondition);
  EXPECT_THAT(tools_->commands, IsEmpty());
  kernel_.ChangeDevice("/dev/dm-0", [](FakeDevice& device) { device.claimed = false; });
  tools_->flush_status = 1;
  EXPECT_THAT(RemoveError("/dev/dm-0").message(), HasSubstr("map in use"));
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_TRUE(tree_.HasBlock(name)) << name;
}

// Seen with a real multipathd: every path was dead, nothing could be written, and the map stayed
// for as long as its target was away.
TEST_F(ScsiDevicesTest, AMapWithoutARunningPathGoesThoughItTakesNothing) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  kernel_.ChangeDevice("/dev/dm-0", [](FakeDevice& device) { device.unreadable = true; });
  tree_.SetState("sdb", "transport-offline");
  EXPECT_EQ(RemoveError("/dev/dm-0").sys_errno(), EIO) << "sdc runs: it may take it yet";
  EXPECT_THAT(tools_->commands, IsEmpty());
  tree_.SetState("sdc", "transport-offline");
  for (const char* path : {"/dev/sdb", "/dev/sdc"}) {
    kernel_.ChangeDevice(path, [](FakeDevice& device) { device.offline = true; });
  }
  const Status gone = scsi_.Remove("/dev/dm-0", call_);
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  for (const char* name : {"dm-0", "sdb", "sdc"}) EXPECT_FALSE(tree_.HasBlock(name)) << name;
}

// Seen with a real target that was away: nobody can open an offline disk, and so it stayed.
TEST_F(ScsiDevicesTest, AnOfflineDiskThatNobodyCanOpenGoes) {
  tree_.SetState("sdb", "transport-offline");
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.offline = true; });
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.claimed = true; });
  EXPECT_THAT(RemoveError("/dev/sdb").message(), HasSubstr("still in use"));
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.claimed = false; });
  const Status gone = scsi_.Remove("/dev/sdb", call_);
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_FALSE(tree_.HasBlock("sdb"));
}

TEST_F(ScsiDevicesTest, AMissingToolIsMissedOnlyForAMultipathDevice) {
  AddMultipath();
  const Error error = RemoveError("/dev/sdb");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_THAT(error.message(), HasSubstr("multipath-tools"));
  EXPECT_FALSE(error.maybe_applied());
  tree_.AddDisk({"sdd", "3:0:0:2"});
  EXPECT_TRUE(scsi_.Remove("/dev/sdd", call_).ok());
}

TEST_F(ScsiDevicesTest, WhatARunningDiskHasNotTakenKeepsIt) {
  kernel_.ChangeDevice("/dev/sdb", [](FakeDevice& device) { device.unreadable = true; });
  const Error error = RemoveError("/dev/sdb");
  EXPECT_EQ(error.sys_errno(), EIO);
  EXPECT_TRUE(tree_.HasBlock("sdb"));
  tree_.SetState("sdb", "offline");
  EXPECT_TRUE(scsi_.Remove("/dev/sdb", call_).ok()) << "it takes nothing any more";
  EXPECT_FALSE(tree_.HasBlock("sdb"));
}

TEST_F(ScsiDevicesTest, ARemovalThatEndedHalfWayIsContinuedFromAnyDiskThatIsLeft) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  kernel_.FailNextBelow("WriteAttribute", "/sys/devices/pci0000:00/0000:00:03.0/host3/rport-3:0-1",
                        Error::FromErrno(EIO, "write", Outcome::kNotApplied));
  const Error error = RemoveError("/dev/dm-0");
  EXPECT_TRUE(error.maybe_applied()) << error.ToString();
  EXPECT_FALSE(tree_.HasBlock("sdb"));
  EXPECT_TRUE(scsi_.Remove("/dev/dm-0", call_).ok());
  EXPECT_TRUE(scsi_.Remove("/dev/sdc", call_).ok());
  EXPECT_FALSE(tree_.HasBlock("sdc"));
}

TEST_F(ScsiDevicesTest, AHungFlushEndsAtItsDeadlineAndDeletesNothing) {
  kernel_.Hang("/dev/sdb");
  const Error error = RemoveError("/dev/sdb");
  EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(tree_.HasBlock("sdb"));
}

// ---- sizes --------------------------------------------------------------------------------------

TEST_F(ScsiDevicesTest, EachRunningPathIsAskedForItsSizeAndThenTheMap) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  tree_.SetState("sdc", "transport-offline");
  ASSERT_TRUE(scsi_.RescanSize("/dev/dm-0", call_).ok());
  EXPECT_EQ(tree_.Attribute("block/sdb/device/rescan"), "1");
  EXPECT_EQ(tree_.Attribute("block/sdc/device/rescan"), "");
  EXPECT_THAT(tools_->commands, ElementsAre("/usr/sbin/multipathd resize map dm-0"));
  tree_.SetState("sdb", "offline");
  EXPECT_THAT(scsi_.RescanSize("/dev/dm-0", call_).error().message(),
              HasSubstr("/dev/sdb is offline"));
}

// Seen with a real multipathd, which said "ok" and left the map as it was.
TEST_F(ScsiDevicesTest, AMapThatADeadPathKeepsSmallIsNoSuccess) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  tree_.SetState("sdb", "transport-offline");
  tree_.Grow("sdc", int64_t{2} << 30);
  const Status small = scsi_.RescanSize("/dev/dm-0", call_);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code(), Code::kUnavailable);
  EXPECT_THAT(small.error().message(), HasSubstr("/dev/dm-0 has 1073741824 bytes"));
  EXPECT_THAT(small.error().message(), HasSubstr("/dev/sdb is transport-offline"));
  tree_.SetState("sdb", "running");
  tree_.Grow("sdb", int64_t{2} << 30);
  const Status grown = scsi_.RescanSize("/dev/dm-0", call_);
  EXPECT_TRUE(grown.ok()) << grown.error().ToString();
  EXPECT_EQ(kernel_.Device("/dev/dm-0").identity.size_bytes, int64_t{2} << 30);
}

// Seen with a real multipathd, which had the dead path first and said "fail".
TEST_F(ScsiDevicesTest, AMapThatADeadPathKeepsSmallIsToldLikewiseIfMultipathdFails) {
  AddMultipath();
  tree_.AddMultipathTools(tools_);
  tree_.SetState("sdb", "transport-offline");
  tree_.Grow("sdc", int64_t{2} << 30);
  tools_->resize_status = 1;
  const Status small = scsi_.RescanSize("/dev/dm-0", call_);
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code(), Code::kUnavailable);
  EXPECT_THAT(small.error().message(), HasSubstr("once all its paths have it"));
  EXPECT_THAT(small.error().message(), HasSubstr("/dev/sdb is transport-offline"));
  EXPECT_THAT(small.error().message(), HasSubstr("ended with 1: fail"));
  tree_.SetState("sdb", "running");
  const Status failed = scsi_.RescanSize("/dev/dm-0", call_);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(failed.error().message(), Not(HasSubstr("once all its paths")));
  EXPECT_THAT(failed.error().message(), HasSubstr("ended with 1: fail"));
}

TEST_F(ScsiDevicesTest, ADiskAloneNeedsNoMultipathTool) {
  ASSERT_TRUE(scsi_.RescanSize("/dev/sdb", call_).ok());
  EXPECT_EQ(tree_.Attribute("block/sdb/device/rescan"), "1");
}

}  // namespace
}  // namespace volumed
