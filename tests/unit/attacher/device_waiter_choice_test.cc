// Which of the devices that are there is given out, and which must not be taken.
#include "unit/attacher/waiter_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class DeviceWaiterChoiceTest : public ::testing::Test, protected WaiterWorld {};

TEST_F(DeviceWaiterChoiceTest, AStaleLinkToAnotherDiskIsNotTaken) {
  Attach(Volume("sda", "vol-1"));
  udev_.Unplug("sda", true);
  Attach(Volume("sda", "vol-2"));
  Settle();
  // The old link leads to the new disk of the same name.
  const DeviceWaitId id = WaitForLink(ById("vol-1"), seconds(5));
  scheduler_.RunFor(seconds(5));
  const Error error = Failure(id);
  EXPECT_EQ(error.code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(error.maybe_applied());
  EXPECT_EQ(error.message(),
            "device not there after 5 s: looked for link /dev/disk/by-id/virtio-vol-1; "
            "/dev/disk/by-id/virtio-vol-1 points to /dev/sda (7:0): a stale link: udevd gives this "
            "device no such name; events come from udev");
}

TEST_F(DeviceWaiterChoiceTest, AStaleLinkIsNotTakenWhileUdevdIsBehind) {
  Attach(Volume("sda", "vol-1"));
  udev_.Unplug("sda", true);
  udev_.Plug(Volume("sda", "vol-2"));
  const DeviceWaitId old = WaitForLink(ById("vol-1"), seconds(5));
  const DeviceWaitId next = WaitForLink(ById("vol-2"), seconds(60));
  scheduler_.RunFor(seconds(5));
  EXPECT_THAT(Failure(old).message(), HasSubstr("udevd has not finished with it"));
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(next).facts.serial, "vol-2");
}

TEST_F(DeviceWaiterChoiceTest, ADiskThatIsReplacedWhileItIsOpenedIsNotTaken) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  Attach(Volume("sda", "vol-1"));
  kernel_.SetCallHook([this](const AnyRequest&) {
    kernel_.SetCallHook(nullptr);
    udev_.LoseEvents(true);
    udev_.Unplug("sda", true);
    Attach(Volume("sda", "vol-2"));
    udev_.LoseEvents(false);
  });
  Settle();
  EXPECT_FALSE(answered(id));
  EXPECT_EQ(waiter_->stats().refused, 1u);
  Attach(Volume("sdb", "vol-1"));
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sdb");
}

TEST_F(DeviceWaiterChoiceTest, ADeviceThatIsGoneAgainBeforeItIsOpenedIsWaitedForOn) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  Attach(Volume("sda", "vol-1"));
  kernel_.SetCallHook([this](const AnyRequest&) {
    kernel_.SetCallHook(nullptr);
    udev_.Unplug("sda");
  });
  Settle();
  EXPECT_FALSE(answered(id));
  Attach(Volume("sdc", "vol-1"));
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sdc");
}

TEST_F(DeviceWaiterChoiceTest, ADeviceThatGoesRightAfterItsProofIsNotGivenOut) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  Attach(Volume("sda", "vol-1"));
  // It answers, and both its going and the news of it come before the answer does.
  kernel_.SetCallHook([this](const AnyRequest&) {
    kernel_.SetCallHook(nullptr);
    scheduler_.Post([this] { udev_.Unplug("sda"); });
    udev_.Overflow();
  });
  Settle();
  EXPECT_FALSE(answered(id));
  EXPECT_EQ(waiter_->stats().refused, 1u);
  EXPECT_EQ(waiter_->stats().waiting, 1u);
}

TEST_F(DeviceWaiterChoiceTest, NewsOfADeviceThatStaysDoNotDelayIt) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  Attach(Volume("sda", "vol-1"));
  kernel_.SetCallHook([this](const AnyRequest&) {
    kernel_.SetCallHook(nullptr);
    udev_.Overflow();
  });
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sda");
  EXPECT_EQ(kernel_.call_count(), 1u);
}

TEST_F(DeviceWaiterChoiceTest, OfSeveralLinksTheFirstThatIsThereLeads) {
  DeviceQuery query;
  query.links = {"/dev/mapper/mpath-1", ById("vol-1"), ById("vol-2")};
  Attach(Volume("sda", "vol-2"));
  Attach(Volume("sdb", "vol-1"));
  Settle();
  const DeviceWaitId id = Wait(query);
  Settle();
  EXPECT_EQ(Found(id).link, ById("vol-1"));
}

TEST_F(DeviceWaiterChoiceTest, TwoDisksOfOneSerialAreNotGuessedBetween) {
  FakeDisk first = Volume("sda", "lun"), second = Volume("sdb", "lun"),
           mapped = Volume("dm-0", "lun");
  Attach(first);
  Attach(second);
  DeviceQuery query;
  query.serial = "lun";
  const DeviceWaitId lost = Wait(query, seconds(2));
  const DeviceWaitId id = Wait(query, seconds(60));
  scheduler_.RunFor(seconds(2));
  EXPECT_THAT(Failure(lost).message(), HasSubstr("it cannot be told which of several it is"));
  // The multipath device above them is the one.
  Attach(mapped);
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/dm-0");
}

TEST_F(DeviceWaiterChoiceTest, WhatUdevdKeepsFromUseIsNotTaken) {
  FakeDisk path = Volume("sda", "vol-1");
  path.usable = false;
  Attach(path);
  const DeviceWaitId id = WaitForLink(ById("vol-1"), seconds(2));
  scheduler_.RunFor(seconds(2));
  EXPECT_THAT(Failure(id).message(), HasSubstr("SYSTEMD_READY=0"));
}

TEST_F(DeviceWaiterChoiceTest, APartitionIsNotFoundByTheSerialOfItsDisk) {
  FakeDisk partition = Volume("sda1", "vol-1");
  partition.whole_disk = false;
  Attach(partition);
  DeviceQuery query;
  query.serial = "vol-1";
  const DeviceWaitId id = Wait(query);
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sda");
}

}  // namespace
}  // namespace volumed
