#include "attacher/announced_devices.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

CatalogDevice Disk(uint32_t minor, uint64_t sequence, const std::string& name = "sda") {
  CatalogDevice device;
  device.number = {8, minor};
  device.name = name;
  device.disk_sequence = sequence;
  return device;
}

DeviceFacts FactsOf(uint64_t sequence) {
  DeviceFacts facts;
  facts.identity.disk_sequence = sequence;
  return facts;
}

TEST(AnnouncedDevicesTest, WhatADiskSaidIsKnownOfThatDiskAlone) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7));
  EXPECT_EQ(devices.Find(Disk(0, 7)), nullptr);
  ASSERT_TRUE(devices.TakeNext());
  EXPECT_TRUE(devices.Answered(Disk(0, 7), FactsOf(7)).empty());
  EXPECT_NE(devices.Find(Disk(0, 7)), nullptr);
  EXPECT_EQ(devices.Find(Disk(0, 8)), nullptr);
  EXPECT_EQ(devices.Find(Disk(16, 7)), nullptr);
  devices.Announce(Disk(0, 7));
  EXPECT_EQ(devices.Find(Disk(0, 7)), nullptr) << "it may have another size now";
}

TEST(AnnouncedDevicesTest, WhatIsMadeOfOthersOrCannotBeToldApartIsNotAsked) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7, "dm-3"));
  devices.Announce(Disk(1, 7, "md127"));
  devices.Announce(Disk(2, 0));
  CatalogDevice partition = Disk(3, 7);
  partition.whole_disk = false;
  devices.Announce(partition);
  EXPECT_FALSE(devices.TakeNext());
}

TEST(AnnouncedDevicesTest, AnotherDisksAnswerIsNotKept) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7));
  ASSERT_TRUE(devices.TakeNext());
  (void)devices.Answered(Disk(0, 7), FactsOf(8));
  EXPECT_EQ(devices.Find(Disk(0, 7)), nullptr);
  EXPECT_EQ(devices.asked(), 0);
}

TEST(AnnouncedDevicesTest, WhoJoinedHearsTheAnswerToTheLastAnnouncement) {
  AnnouncedDevices devices;
  EXPECT_FALSE(devices.Join(Disk(0, 7), {}));
  devices.Announce(Disk(0, 7));
  ASSERT_TRUE(devices.TakeNext());
  ASSERT_TRUE(devices.Join(Disk(0, 7), [](const auto&) {}));
  EXPECT_FALSE(devices.Join(Disk(0, 8), {}));
  devices.Announce(Disk(0, 7));
  EXPECT_TRUE(devices.Answered(Disk(0, 7), FactsOf(7)).empty());
  ASSERT_TRUE(devices.TakeNext());
  EXPECT_EQ(devices.Answered(Disk(0, 7), FactsOf(7)).size(), 1u);
}

TEST(AnnouncedDevicesTest, WhoJoinedHearsAlsoOfAForgottenDisk) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7));
  ASSERT_TRUE(devices.TakeNext());
  ASSERT_TRUE(devices.Join(Disk(0, 7), [](const auto&) {}));
  devices.Clear();
  EXPECT_EQ(devices.Answered(Disk(0, 7), FactsOf(7)).size(), 1u);
  EXPECT_EQ(devices.Find(Disk(0, 7)), nullptr);
}

TEST(AnnouncedDevicesTest, AnAnnouncementByAProgramVoidsNothingAndAsksNobody) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7), true);
  EXPECT_FALSE(devices.TakeNext()) << "one that is long in use";
  devices.Announce(Disk(0, 7));
  devices.Announce(Disk(0, 7), true);
  ASSERT_TRUE(devices.TakeNext());
  devices.Announce(Disk(0, 7), true);
  (void)devices.Answered(Disk(0, 7), FactsOf(7));
  devices.Announce(Disk(0, 7), true);
  EXPECT_NE(devices.Find(Disk(0, 7)), nullptr);
  EXPECT_FALSE(devices.TakeNext());
}

TEST(AnnouncedDevicesTest, AProgramsAnnouncementOfAnotherDiskVoidsWhatWasKnown) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7));
  ASSERT_TRUE(devices.TakeNext());
  (void)devices.Answered(Disk(0, 7), FactsOf(7));
  devices.Announce(Disk(0, 8), true);
  EXPECT_EQ(devices.Find(Disk(0, 7)), nullptr);
  EXPECT_EQ(devices.Find(Disk(0, 8)), nullptr);
}

TEST(AnnouncedDevicesTest, OneThatIsAskedForInEarnestIsNotAskedTwice) {
  AnnouncedDevices devices;
  devices.Announce(Disk(0, 7));
  EXPECT_FALSE(devices.Join(Disk(0, 7), {}));
  EXPECT_FALSE(devices.TakeNext());
}

}  // namespace
}  // namespace volumed
