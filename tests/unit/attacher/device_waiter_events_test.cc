// Where the news of devices come from: udevd, the kernel, and nobody, when they were lost.
#include "unit/attacher/waiter_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class DeviceWaiterEventsTest : public ::testing::Test, protected WaiterWorld {};

// ---- what the kernel announces ------------------------------------------------------------------

TEST_F(DeviceWaiterEventsTest, AnAnnouncedDeviceIsAskedWhileUdevdIsAtWork) {
  udev_.AnnounceDevices(true);
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  udev_.Plug(Volume("sda", "vol-1"));
  Settle();
  EXPECT_FALSE(answered(id));
  EXPECT_EQ(waiter_->stats().verifications, 1u);
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(id).facts.serial, "vol-1");
  EXPECT_EQ(waiter_->stats().verifications, 1u) << "it is not opened again";
  EXPECT_EQ(waiter_->stats().known_early, 1u);
}

TEST_F(DeviceWaiterEventsTest, ADeviceThatAWriterClosedIsNotOpenedAgain) {
  udev_.AnnounceDevices(true);
  const DeviceWaitId first = WaitForLink(ById("vol-1"));
  const DeviceWaitId second = WaitForLink(ById("vol-2"));
  udev_.Plug(Volume("sda", "vol-1"));
  Settle();
  udev_.CloseWritten("sda");
  Settle();
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(first).facts.serial, "vol-1");
  // It is checked, and mounted, while others are still waited for.
  udev_.CloseWritten("sda");
  Settle();
  EXPECT_EQ(waiter_->stats().verifications, 1u);
  EXPECT_EQ(waiter_->stats().known_early, 1u);
  EXPECT_FALSE(answered(second));
}

TEST_F(DeviceWaiterEventsTest, NoDeviceIsOpenedThatNobodyWaitsFor) {
  udev_.AnnounceDevices(true);
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_EQ(waiter_->stats().verifications, 0u);
}

TEST_F(DeviceWaiterEventsTest, WhatADiskSaidIsNotTakenForItsSuccessor) {
  udev_.AnnounceDevices(true);
  const DeviceWaitId id = WaitForLink(ById("vol-2"));
  udev_.Plug(Volume("sda", "vol-1"));
  Settle();
  // The kernel's word of the change is lost; udevd's is not.
  udev_.LoseEvents(true);
  udev_.Unplug("sda");
  udev_.Plug(Volume("sda", "vol-2"));
  udev_.LoseEvents(false);
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(id).facts.serial, "vol-2");
  EXPECT_EQ(waiter_->stats().known_early, 0u);
}

TEST_F(DeviceWaiterEventsTest, WhoJoinsAnEarlyQuestionIsAnsweredByItsEnd) {
  udev_.AnnounceDevices(true);
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  bool processed = false;
  kernel_.SetCallHook([&](const AnyRequest&) {
    if (!std::exchange(processed, true)) udev_.Process("sda");
  });
  udev_.Plug(Volume("sda", "vol-1"));
  Settle();
  EXPECT_EQ(Found(id).facts.serial, "vol-1");
  EXPECT_EQ(waiter_->stats().verifications, 1u);
}

TEST_F(DeviceWaiterEventsTest, AnEarlyQuestionThatFailedIsAskedAgain) {
  udev_.AnnounceDevices(true);
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  kernel_.FailNext("IdentifyDevice", ENXIO, Outcome::kNotApplied);
  udev_.Plug(Volume("sda", "vol-1"));
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(id).facts.serial, "vol-1");
  EXPECT_EQ(waiter_->stats().verifications, 2u);
}

// ---- news and lost events -----------------------------------------------------------------------

// Seen in the virtual machine: each e2fsck of a disk that it could not mend was an event of udevd,
// which ended the back-off of the volume, so that e2fsck ran again at once.
TEST_F(DeviceWaiterEventsTest, NewsThatSayNothingNewAreNoAppearance) {
  std::vector<std::string> appeared;
  waiter_->SetAppearanceListener(
      [&](const CatalogDevice& device) { appeared.push_back(device.node); });
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_THAT(appeared, testing::ElementsAre("/dev/sda"));
  for (int i = 0; i < 3; ++i) udev_.Process("sda");
  Settle();
  EXPECT_EQ(appeared.size(), 1u);
  udev_.Resize("sda");
  Settle();
  EXPECT_EQ(appeared.size(), 2u);
  udev_.Unplug("sda");
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_EQ(appeared.size(), 3u);
}

TEST_F(DeviceWaiterEventsTest, LostEventsAreMadeUpForByTheSecondLook) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  DeviceQuery query;
  query.serial = "vol-1";
  const DeviceWaitId by_serial = Wait(query);
  udev_.LoseEvents(true);
  scheduler_.RunFor(milliseconds(1500));
  Attach(Volume("sda", "vol-1"));
  scheduler_.RunFor(milliseconds(1499));
  EXPECT_FALSE(answered(id));
  scheduler_.RunFor(milliseconds(1));
  EXPECT_EQ(Found(id).found_by, DeviceFoundBy::kSecondLook);
  EXPECT_EQ(Found(by_serial).found_by, DeviceFoundBy::kSecondLook);
}

TEST_F(DeviceWaiterEventsTest, TheSecondLooksGrowRare) {
  WaitForLink(ById("vol-1"), std::chrono::minutes(10));
  scheduler_.RunFor(std::chrono::minutes(9));
  // 1, 2, 4, 8 seconds, then every 16.
  EXPECT_LT(waiter_->stats().looks, 40u);
  EXPECT_GT(waiter_->stats().looks, 30u);
}

TEST_F(DeviceWaiterEventsTest, AnOverflowMakesEveryWaitLookAtOnce) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  DeviceQuery query;
  query.serial = "vol-2";
  const DeviceWaitId by_serial = Wait(query);
  udev_.LoseEvents(true);
  Attach(Volume("sda", "vol-1"));
  Attach(Volume("sdb", "vol-2"));
  udev_.Overflow();
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sda");
  EXPECT_EQ(Found(by_serial).node, "/dev/sdb");
  EXPECT_EQ(waiter_->stats().events_lost, 1u);
}

// ---- without udevd ------------------------------------------------------------------------------

class WithoutUdevd : public DeviceWaiterEventsTest {
 protected:
  WithoutUdevd() {
    udev_.StopUdevd();
    udev_.CheckSource();
  }
};

TEST_F(WithoutUdevd, TheKernelsEventsAreEnoughForNodesNumbersAndPaths) {
  DeviceQuery number, sysfs;
  number.number = DeviceNumber{7, 0};
  sysfs.sysfs_path = "/sys/class/block/sda";
  const std::vector<DeviceWaitId> ids = {Wait(number), Wait(sysfs), WaitForLink("/dev/sda")};
  udev_.Plug(Volume("sda", "vol-1"));
  Settle();
  for (const DeviceWaitId id : ids) EXPECT_EQ(Found(id).found_by, DeviceFoundBy::kEvent);
}

TEST_F(WithoutUdevd, DevicesAreAskedForTheirSerials) {
  for (int i = 0; i < 20; ++i) {
    udev_.Plug(
        Volume("sd" + std::string(1, static_cast<char>('a' + i)), "vol-" + std::to_string(i)));
  }
  Settle();
  EXPECT_EQ(kernel_.call_count(), 0u) << "nobody asked";
  DeviceQuery query;
  query.serial = "vol-7";
  const DeviceWaitId id = Wait(query);
  query.serial = "late";
  const DeviceWaitId late = Wait(query);
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sdh");
  EXPECT_EQ(kernel_.call_count(), 21u);  // each once, and the one for the proof
  udev_.Plug(Volume("vda", "late"));
  Settle();
  EXPECT_EQ(Found(late).node, "/dev/vda");
  EXPECT_EQ(kernel_.call_count(), 23u);
}

TEST_F(WithoutUdevd, ALinkAloneProvesNothing) {
  udev_.Plug(Volume("sda", "vol-1"));
  udev_.AddLink(ById("vol-1"), "sda");
  udev_.AddLink(ById("vol-2"), "sda");
  DeviceQuery query;
  query.links = {ById("vol-1")};
  query.serial = "vol-1";
  const DeviceWaitId proved = Wait(query);
  query.links = {ById("vol-2")};
  query.serial = "vol-2";
  const DeviceWaitId stale = Wait(query, seconds(2));
  const DeviceWaitId unproved = WaitForLink(ById("vol-1"), seconds(2));
  scheduler_.RunFor(seconds(2));
  EXPECT_EQ(Found(proved).node, "/dev/sda");
  EXPECT_THAT(Failure(stale).message(), HasSubstr("its serial is vol-1, not vol-2"));
  EXPECT_THAT(Failure(unproved).message(), HasSubstr("nothing proves the link"));
  EXPECT_THAT(Failure(unproved).message(), HasSubstr("events come from kernel"));
}

TEST_F(WithoutUdevd, AUdevdThatComesIsNoticedByTheSecondLook) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  udev_.StartUdevd();
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_FALSE(answered(id));
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Found(id).node, "/dev/sda");
  EXPECT_EQ(udev_.source(), DeviceEventSource::kUdev);
}

}  // namespace
}  // namespace volumed
