#include "attacher/device_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr DeviceEventSource kUdev = DeviceEventSource::kUdev;
constexpr DeviceEventSource kKernel = DeviceEventSource::kKernel;

CatalogDevice Disk() {
  CatalogDevice record;
  record.number = {8, 16};
  record.name = "sdb";
  record.node = "/dev/sdb";
  record.sysfs_path = "/sys/devices/pci0/block/sdb";
  record.disk_sequence = 7;
  record.described = true;
  record.links = {"/dev/disk/by-id/scsi-a"};
  record.serials = {"A_vol-1", "vol-1"};
  record.wwids = {"0x600a"};
  return record;
}

DeviceFacts Facts() {
  DeviceFacts facts;
  facts.identity = {1000, 8, 16, 7, "wwid:naa.600a", ""};
  facts.wwid = "naa.600a";
  facts.serial = "vol-1";
  return facts;
}

DeviceQuery Link(const std::string& path) {
  DeviceQuery query;
  query.links = {path};
  return query;
}

TEST(DeviceQuery, NeedsAWayToFindADeviceAndCleanPaths) {
  DeviceQuery query;
  query.size_bytes = 5;
  EXPECT_THAT(ValidateDeviceQuery(query).error().message(), HasSubstr("no link, number"));
  EXPECT_TRUE(ValidateDeviceQuery(Link("/dev/disk/by-id/a")).ok());
  for (const char* bad : {"/mnt/nfs/disk", "dev/sdb", "/dev/../etc/x", "/dev//sdb", "/dev"}) {
    EXPECT_EQ(ValidateDeviceQuery(Link(bad)).error().code(), Code::kInvalidArgument) << bad;
  }
  query.sysfs_path = "/proc/x";
  EXPECT_FALSE(ValidateDeviceQuery(query).ok());
  query.sysfs_path = "/sys/block/sdb";
  EXPECT_TRUE(ValidateDeviceQuery(query).ok());
  query.size_bytes = -1;
  EXPECT_FALSE(ValidateDeviceQuery(query).ok());
}

TEST(DeviceQuery, IsSaidInWords) {
  DeviceQuery query = Link("/dev/a");
  query.links.push_back("/dev/b");
  query.number = DeviceNumber{8, 16};
  query.sysfs_path = "/sys/block/sdb";
  query.serial = "s";
  query.wwid = "w";
  query.size_bytes = 5;
  query.disk_sequence = 6;
  query.stable_id = "serial:s";
  EXPECT_EQ(DeviceQueryText(query),
            "link /dev/a, link /dev/b, number 8:16, sysfs path /sys/block/sdb, serial s, WWID w, "
            "size 5, disk sequence 6, identity serial:s");
}

TEST(DeviceQuery, AWwidIsOneHoweverItIsSpelt) {
  const std::string normal = NormalWwid("naa.600508B400105E210000900000490000");
  EXPECT_EQ(NormalWwid("0x600508b400105e210000900000490000"), normal);
  EXPECT_EQ(NormalWwid("3600508b400105e210000900000490000"), normal);
  EXPECT_EQ(NormalWwid("wwn-0x600508b400105e210000900000490000"), normal);
  EXPECT_EQ(NormalWwid(" 600508b400105e210000900000490000\n"), normal);
  EXPECT_EQ(NormalWwid("eui.0025385b01234567"), "eui.0025385b01234567");
  // A name that merely begins so is not cut.
  EXPECT_EQ(NormalWwid("3par-volume-12345"), "3par-volume-12345");
}

TEST(DeviceQuery, SharesAKeyWithEachRecordThatItCouldMean) {
  const std::vector<std::string> record = DeviceKeys(Disk());
  const auto meets = [&record](const DeviceQuery& query) {
    for (const std::string& key : DeviceKeys(query)) {
      if (std::find(record.begin(), record.end(), key) != record.end()) return true;
    }
    return false;
  };
  EXPECT_TRUE(meets(Link("/dev/disk/by-id/scsi-a")));
  EXPECT_TRUE(meets(Link("/dev/sdb")));
  EXPECT_FALSE(meets(Link("/dev/disk/by-id/scsi-b")));
  DeviceQuery query;
  query.number = DeviceNumber{8, 16};
  EXPECT_TRUE(meets(query));
  query = {};
  query.serial = "vol-1";
  EXPECT_TRUE(meets(query));
  query = {};
  query.wwid = "3600a";
  EXPECT_FALSE(meets(query));
  query.wwid = "naa.600A";
  EXPECT_TRUE(meets(query));
  query = {};
  for (const char* path :
       {"/sys/block/sdb", "/sys/class/block/sdb", "/sys/devices/pci0/block/sdb"}) {
    query.sysfs_path = path;
    EXPECT_TRUE(meets(query)) << path;
  }
}

TEST(DeviceQuery, APartitionIsNotFoundByTheNamesOfItsDisk) {
  CatalogDevice partition = Disk();
  partition.whole_disk = false;
  EXPECT_THAT(OwnNameKeys(partition), ::testing::IsEmpty());
  EXPECT_THAT(OwnNameKeys(Disk()),
              UnorderedElementsAre("serial:A_vol-1", "serial:vol-1", "wwid:600a"));
  EXPECT_THAT(OwnNameKeys(Facts()), UnorderedElementsAre("serial:vol-1", "wwid:600a"));
}

TEST(RefuseRecord, ALinkThatUdevdDidNotGiveIsStale) {
  const std::string good = "/dev/disk/by-id/scsi-a";
  const std::string stale = "/dev/disk/by-id/scsi-b";
  EXPECT_EQ(RefuseRecord(Link(good), Disk(), good, kUdev), "");
  EXPECT_THAT(RefuseRecord(Link(stale), Disk(), stale, kUdev), HasSubstr("stale link"));
  // udevd's own word is enough, wherever the events come from.
  EXPECT_EQ(RefuseRecord(Link(good), Disk(), good, kKernel), "");
  EXPECT_THAT(RefuseRecord(Link(stale), Disk(), stale, kKernel), HasSubstr("stale link"));
  // What others make is not in udevd's record.
  EXPECT_EQ(RefuseRecord(Link("/dev/vg/lv"), Disk(), "/dev/vg/lv", kUdev), "");
  EXPECT_EQ(RefuseRecord(Link("/dev/sdb"), Disk(), "/dev/sdb", kUdev), "");
}

TEST(RefuseRecord, WhatUdevdHasNotFinishedIsNotThereYet) {
  CatalogDevice record = Disk();
  record.described = false;
  record.links.clear();
  EXPECT_THAT(RefuseRecord(Link("/dev/sdb"), record, "/dev/sdb", kUdev), HasSubstr("not finished"));
  EXPECT_EQ(RefuseRecord(Link("/dev/sdb"), record, "/dev/sdb", kKernel), "");
  record = Disk();
  record.usable = false;
  EXPECT_THAT(RefuseRecord(Link("/dev/sdb"), record, "/dev/sdb", kUdev),
              HasSubstr("SYSTEMD_READY=0"));
}

TEST(RefuseRecord, WithoutUdevdALinkNeedsAProof) {
  CatalogDevice record = Disk();
  record.described = false;
  record.links.clear();
  DeviceQuery query = Link("/dev/disk/by-id/scsi-a");
  EXPECT_THAT(RefuseRecord(query, record, query.links[0], kKernel), HasSubstr("nothing proves"));
  query.size_bytes = 1000;  // too many have it
  EXPECT_THAT(RefuseRecord(query, record, query.links[0], kKernel), HasSubstr("nothing proves"));
  query.serial = "vol-1";
  EXPECT_EQ(RefuseRecord(query, record, query.links[0], kKernel), "");
}

TEST(RefuseRecord, NumberAndSysfsPathMustBeTheWantedOnes) {
  DeviceQuery query = Link("/dev/sdb");
  query.number = DeviceNumber{8, 32};
  EXPECT_EQ(RefuseRecord(query, Disk(), "/dev/sdb", kUdev), "its number is 8:16, not 8:32");
  query.number.reset();
  query.sysfs_path = "/sys/block/sdc";
  EXPECT_THAT(RefuseRecord(query, Disk(), "/dev/sdb", kUdev), HasSubstr("its sysfs path is"));
  query.sysfs_path = "/sys/class/block/sdb";
  EXPECT_EQ(RefuseRecord(query, Disk(), "/dev/sdb", kUdev), "");
}

TEST(RefuseFacts, EveryDifferenceIsNamed) {
  DeviceQuery query = Link("/dev/sdb");
  EXPECT_EQ(RefuseFacts(query, Disk(), Facts()), "");
  query.serial = "other";
  query.wwid = "naa.600b";
  query.size_bytes = 2000;
  query.stable_id = "wwid:naa.600b";
  DeviceFacts facts = Facts();
  facts.identity.device_minor = 32;
  facts.identity.disk_sequence = 9;
  EXPECT_EQ(RefuseFacts(query, Disk(), facts),
            "its number is 8:32, not 8:16; its disk sequence is 9, not 7; its serial is vol-1, not "
            "other; its WWID is naa.600a, not naa.600b; its identity is wwid:naa.600a, not "
            "wwid:naa.600b; its size is 1000, not 2000");
}

TEST(RefuseFacts, UdevdsWordForANameCountsOnlyForTheSameDisk) {
  DeviceQuery query = Link("/dev/sdb");
  query.serial = "A_vol-1";  // as udevd's rules build it
  query.wwid = "naa.600a";
  DeviceFacts facts = Facts();
  facts.wwid.clear();
  EXPECT_EQ(RefuseFacts(query, Disk(), facts), "");
  facts.identity.disk_sequence = 8;
  EXPECT_EQ(RefuseFacts(query, Disk(), facts),
            "its disk sequence is 8, not 7; its serial is vol-1, not A_vol-1; its WWID is 0x600a, "
            "not naa.600a");
}

TEST(RefuseFacts, AWantedDiskSequenceIsCompared) {
  DeviceQuery query = Link("/dev/sdb");
  query.disk_sequence = 6;
  EXPECT_EQ(RefuseFacts(query, Disk(), Facts()), "its disk sequence is 7, not 6");
  query.disk_sequence = 7;
  EXPECT_EQ(RefuseFacts(query, Disk(), Facts()), "");
}

}  // namespace
}  // namespace volumed
