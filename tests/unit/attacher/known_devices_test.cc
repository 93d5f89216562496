#include "attacher/known_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CatalogDevice Disk(uint32_t number, const std::string& serial, uint64_t sequence) {
  CatalogDevice record;
  record.number = {8, number};
  record.disk_sequence = sequence;
  record.described = !serial.empty();
  if (!serial.empty()) record.serials = {serial};
  return record;
}

DeviceFacts Said(const std::string& serial, uint64_t sequence) {
  DeviceFacts facts;
  facts.serial = serial;
  facts.identity.disk_sequence = sequence;
  return facts;
}

TEST(KnownDevices, FollowsNamesFromDeviceToDevice) {
  KnownDevices known;
  known.Reset({Disk(0, "a", 1), Disk(1, "b", 2)});
  EXPECT_EQ(known.size(), 2u);
  EXPECT_THAT(known.Bearers("serial:a"), ElementsAre(DeviceNumber{8, 0}));
  known.Update(Disk(0, "c", 3));
  EXPECT_THAT(known.Bearers("serial:a"), IsEmpty());
  known.Update(Disk(2, "c", 4));
  EXPECT_THAT(known.Bearers("serial:c"), ElementsAre(DeviceNumber{8, 0}, DeviceNumber{8, 2}));
  known.Remove({8, 0});
  known.Remove({8, 0});
  EXPECT_THAT(known.Bearers("serial:c"), ElementsAre(DeviceNumber{8, 2}));
  known.Reset({});
  EXPECT_THAT(known.Bearers("serial:c"), IsEmpty());
}

TEST(KnownDevices, AsksEachDeviceOnceThatUdevdDoesNotKnow) {
  KnownDevices known;
  known.Reset({Disk(0, "", 1), Disk(1, "b", 2)});
  ASSERT_EQ(known.TakeNameless()->number, (DeviceNumber{8, 0}));
  EXPECT_FALSE(known.TakeNameless());
  known.SetFacts({8, 0}, Said("a", 1));
  EXPECT_THAT(known.Bearers("serial:a"), ElementsAre(DeviceNumber{8, 0}));
  // Nothing new: neither an event nor a listing asks again.
  known.Update(Disk(0, "", 1));
  known.Reset({Disk(0, "", 1), Disk(1, "b", 2)});
  EXPECT_FALSE(known.TakeNameless());
  EXPECT_THAT(known.Bearers("serial:a"), ElementsAre(DeviceNumber{8, 0}));
  // Another disk under its number is asked, and is not taken for the old one meanwhile.
  known.Update(Disk(0, "", 5));
  EXPECT_THAT(known.Bearers("serial:a"), IsEmpty());
  EXPECT_TRUE(known.TakeNameless());
}

TEST(KnownDevices, AnAnswerOfADiskThatIsGoneIsDropped) {
  KnownDevices known;
  known.Update(Disk(0, "", 1));
  known.Update(Disk(0, "", 2));
  known.SetFacts({8, 0}, Said("a", 1));
  known.SetFacts({8, 9}, Said("a", 1));
  EXPECT_THAT(known.Bearers("serial:a"), IsEmpty());
}

TEST(KnownDevices, WhoDidNotAnswerIsAskedAgainAfterAListing) {
  KnownDevices known;
  known.Update(Disk(0, "", 1));
  known.Update(Disk(1, "", 2));
  ASSERT_TRUE(known.TakeNameless());
  ASSERT_TRUE(known.TakeNameless());
  known.SetSilent({8, 1});
  known.Reset({Disk(0, "", 1), Disk(1, "", 2)});
  EXPECT_EQ(known.TakeNameless()->number, (DeviceNumber{8, 0}));
  EXPECT_FALSE(known.TakeNameless());
}

}  // namespace
}  // namespace volumed
