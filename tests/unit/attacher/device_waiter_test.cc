#include "attacher/device_waiter.h"

#include "unit/attacher/waiter_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class DeviceWaiterTest : public ::testing::Test, protected WaiterWorld {};

TEST_F(DeviceWaiterTest, WhatIsThereIsFoundAtTheFirstLook) {
  Attach(Volume("sda", "vol-1"));
  Settle();
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  Settle();
  const FoundDevice& found = Found(id);
  EXPECT_EQ(found.node, "/dev/sda");
  EXPECT_EQ(found.link, ById("vol-1"));
  EXPECT_EQ(found.facts.serial, "vol-1");
  EXPECT_EQ(found.facts.identity.disk_sequence, kernel_.Device("/dev/sda").identity.disk_sequence);
  EXPECT_EQ(found.found_by, DeviceFoundBy::kFirstLook);
  EXPECT_EQ(waiter_->stats().waiting, 0u);
  EXPECT_EQ(scheduler_.waiting_timers(), 0u);
}

TEST_F(DeviceWaiterTest, AnEventIsAnsweredAtOnce) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  scheduler_.RunFor(milliseconds(300));
  EXPECT_FALSE(answered(id));
  Attach(Volume("sda", "vol-1"));
  Settle();
  EXPECT_EQ(Found(id).found_by, DeviceFoundBy::kEvent);
  EXPECT_EQ(Found(id).waited, milliseconds(300));
  EXPECT_EQ(Found(id).since_event, Duration::zero());
  EXPECT_EQ(waiter_->stats().found_by_event, 1u);
}

TEST_F(DeviceWaiterTest, IsFoundByNumberSysfsPathSerialAndWwid) {
  DeviceQuery number, sysfs, serial, wwid;
  number.number = DeviceNumber{7, 0};
  sysfs.sysfs_path = "/sys/block/sda";
  serial.serial = "vol-1";
  wwid.wwid = "naa.600a";
  const std::vector<DeviceWaitId> ids = {Wait(number), Wait(sysfs), Wait(serial)};
  const DeviceWaitId by_wwid = Wait(wwid);
  Attach(Volume("sda", "vol-1"));
  Settle();
  for (const DeviceWaitId id : ids) EXPECT_EQ(Found(id).node, "/dev/sda");
  EXPECT_EQ(Found(ids[0]).link, "");
  EXPECT_FALSE(answered(by_wwid));
}

TEST_F(DeviceWaiterTest, ADeviceIsNotThereBeforeUdevdHasFinishedWithIt) {
  const DeviceWaitId id = WaitForLink("/dev/sda");
  udev_.Plug(Volume("sda", "vol-1"));
  scheduler_.RunFor(seconds(20));
  EXPECT_FALSE(answered(id));
  udev_.Process("sda");
  Settle();
  EXPECT_EQ(Found(id).node, "/dev/sda");
}

TEST_F(DeviceWaiterTest, TheDeadlineAlwaysAnswersAndSaysWhatThereIs) {
  const DeviceWaitId missing = WaitForLink(ById("vol-1"), seconds(3));
  kernel_.AddSymlink(ById("vol-2"), "/dev/sdz");
  const DeviceWaitId dangling = WaitForLink(ById("vol-2"), seconds(3));
  DeviceQuery query;
  query.serial = "vol-3";
  query.size_bytes = 4096;
  const DeviceWaitId by_serial = Wait(query, seconds(3));
  query.size_bytes = 1;
  query.serial = "vol-4";
  const DeviceWaitId other_size = Wait(query, seconds(3));
  query = {};
  query.number = DeviceNumber{9, 9};
  const DeviceWaitId by_number = Wait(query, seconds(3));
  Attach(Volume("sda", "vol-4"));
  scheduler_.RunFor(seconds(3));
  EXPECT_THAT(Failure(missing).message(), HasSubstr(ById("vol-1") + " does not exist"));
  EXPECT_THAT(Failure(dangling).message(),
              HasSubstr(ById("vol-2") + " points to /dev/sdz, where no block device is"));
  EXPECT_THAT(Failure(by_serial).message(),
              HasSubstr("looked for serial vol-3, size 4096; none of 1 block devices bears that"));
  EXPECT_THAT(Failure(other_size).message(),
              HasSubstr("/dev/sda (7:0): its size is 1073741824, not 1"));
  EXPECT_THAT(Failure(by_number).message(), HasSubstr("number 9:9; there is no such device"));
  EXPECT_EQ(waiter_->stats().expired, 5u);
  EXPECT_EQ(scheduler_.waiting_timers(), 0u);
}

TEST_F(DeviceWaiterTest, ADeviceThatDoesNotAnswerHoldsUpNobodyElse) {
  Attach(Volume("sda", "dead"));
  Attach(Volume("sdb", "vol-2"));
  Settle();
  kernel_.Hang("/dev/sda");
  const DeviceWaitId dead = WaitForLink(ById("dead"), seconds(25));
  const DeviceWaitId good = WaitForLink(ById("vol-2"));
  Settle();
  EXPECT_EQ(Found(good).node, "/dev/sdb");
  scheduler_.RunFor(seconds(25));
  EXPECT_THAT(Failure(dead).message(), HasSubstr("/dev/sda (7:0): "));
  EXPECT_THAT(Failure(dead).message(), HasSubstr("DeadlineExceeded"));
  EXPECT_GT(waiter_->stats().verifications, 2u);
}

TEST_F(DeviceWaiterTest, ACancelledWaitIsNotAnswered) {
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  EXPECT_TRUE(waiter_->Cancel(id));
  EXPECT_FALSE(waiter_->Cancel(id));
  Attach(Volume("sda", "vol-1"));
  scheduler_.RunFor(seconds(100));
  EXPECT_FALSE(answered(id));
  EXPECT_EQ(scheduler_.waiting_timers(), 0u);
}

TEST_F(DeviceWaiterTest, ACancelWhileTheDeviceIsOpenedIsKept) {
  Attach(Volume("sda", "vol-1"));
  Settle();
  const DeviceWaitId id = WaitForLink(ById("vol-1"));
  kernel_.SetCallHook([this, id](const AnyRequest&) { EXPECT_TRUE(waiter_->Cancel(id)); });
  Settle();
  EXPECT_FALSE(answered(id));
}

TEST_F(DeviceWaiterTest, AWaiterThatIsGoneAnswersNobody) {
  Attach(Volume("sda", "vol-1"));
  Settle();
  WaitForLink(ById("vol-1"));
  WaitForLink(ById("vol-2"));
  waiter_.reset();
  Attach(Volume("sdb", "vol-2"));
  scheduler_.RunFor(seconds(100));
  EXPECT_TRUE(answers_.empty());
}

TEST_F(DeviceWaiterTest, WhatCannotBeMetIsRefusedAtOnce) {
  const DeviceWaitId id = Wait({});
  Settle();
  EXPECT_EQ(Failure(id).code(), Code::kInvalidArgument);
  DeviceQuery query;
  query.serial = "vol-1";
  Result<FoundDevice> answer = FoundDevice{};
  waiter_->Wait(query, Deadline::Infinite(), [&](Result<FoundDevice> found) { answer = found; });
  Settle();
  EXPECT_THAT(answer.error().message(), HasSubstr("without a deadline"));
  EXPECT_FALSE(waiter_->Cancel(id));
}

TEST_F(DeviceWaiterTest, ACompletionMayWaitAndCancel) {
  Attach(Volume("sda", "vol-1"));
  Attach(Volume("sdb", "vol-2"));
  Settle();
  const DeviceWaitId other = WaitForLink(ById("vol-9"));
  DeviceQuery query;
  query.links = {ById("vol-1")};
  DeviceWaitId second = 0;
  waiter_->Wait(query, Deadline::After(scheduler_.clock(), seconds(1)), [&](auto) {
    waiter_->Cancel(other);
    second = WaitForLink(ById("vol-2"));
  });
  Settle();
  EXPECT_EQ(Found(second).node, "/dev/sdb");
  EXPECT_EQ(waiter_->stats().waiting, 0u);
}

// ---- devices that hang

// Blocking tasks begin when the test says so: the others hang.
class HoldingScheduler final : public Scheduler {
 public:
  explicit HoldingScheduler(Scheduler& scheduler) : scheduler_(scheduler) {}
  const Clock& clock() const override { return scheduler_.clock(); }
  void Post(Task task) override { scheduler_.Post(std::move(task)); }
  TimerId PostAfter(Duration delay, Task task) override {
    return scheduler_.PostAfter(delay, std::move(task));
  }
  bool Cancel(TimerId timer) override { return scheduler_.Cancel(timer); }
  void RunBlocking(Task task) override { held_.push_back(std::move(task)); }
  bool OnControlThread() const override { return scheduler_.OnControlThread(); }

  std::vector<Task> held_;

 private:
  Scheduler& scheduler_;
};

TEST_F(DeviceWaiterTest, DevicesThatHangHoldUpTheOthersForAMomentOnly) {
  HoldingScheduler holding(scheduler_);
  waiter_.reset();
  waiter_ = std::make_unique<DeviceWaiter>(holding, kernel_, udev_);
  std::vector<DeviceWaitId> ids;
  for (int i = 0; i < 6; ++i) {
    const std::string volume = "vol-" + std::to_string(i);
    Attach(Volume("sd" + std::string(1, static_cast<char>('a' + i)), volume));
    ids.push_back(WaitForLink(ById(volume), seconds(30)));
  }
  Settle();
  ASSERT_EQ(holding.held_.size(), 4u);
  scheduler_.RunFor(milliseconds(99));
  ASSERT_EQ(holding.held_.size(), 4u);
  scheduler_.RunFor(milliseconds(1));
  ASSERT_EQ(holding.held_.size(), 6u);
  scheduler_.RunBlocking(holding.held_[4]);
  scheduler_.RunBlocking(holding.held_[5]);
  Settle();
  EXPECT_EQ(Found(ids[4]).node, "/dev/sde");
  EXPECT_EQ(Found(ids[5]).node, "/dev/sdf");
  // One answers late, another not before the deadline.
  scheduler_.RunBlocking(holding.held_[0]);
  Settle();
  EXPECT_EQ(Found(ids[0]).node, "/dev/sda");
  scheduler_.RunFor(seconds(30));
  EXPECT_THAT(Failure(ids[1]).message(), HasSubstr("/dev/sdb (7:1): it does not answer"));
  // An answer to nobody.
  scheduler_.RunBlocking(holding.held_[1]);
  Settle();
  EXPECT_EQ(answers_.size(), 6u);
}

TEST_F(DeviceWaiterTest, AnAnswerThatComesAfterTheWaiterIsGoneIsDropped) {
  HoldingScheduler holding(scheduler_);
  waiter_.reset();
  waiter_ = std::make_unique<DeviceWaiter>(holding, kernel_, udev_);
  Attach(Volume("sda", "vol-1"));
  WaitForLink(ById("vol-1"));
  ASSERT_EQ(holding.held_.size(), 1u);
  waiter_.reset();
  scheduler_.RunBlocking(holding.held_[0]);
  scheduler_.RunFor(seconds(60));
  EXPECT_TRUE(answers_.empty());
  EXPECT_EQ(scheduler_.waiting_timers(), 0u);
}

// ---- cost

TEST_F(DeviceWaiterTest, AnEventCostsNothingToWaitsThatItDoesNotConcern) {
  for (int i = 0; i < 2000; ++i) {
    if (i % 2 == 0) {
      WaitForLink(ById("vol-" + std::to_string(i)));
    } else {
      DeviceQuery query;
      query.serial = "vol-" + std::to_string(i);
      Wait(query);
    }
  }
  Settle();
  const uint64_t looks = waiter_->stats().looks;
  const uint64_t look_ups = udev_.look_ups();
  EXPECT_EQ(udev_.listings(), 1u) << "a thousand searches by serial list the devices once";
  Attach(Volume("sda", "vol-1000"));
  Attach(Volume("sdb", "vol-1001"));
  Attach(Volume("sdc", "of nobody"));
  Settle();
  EXPECT_EQ(answers_.size(), 2u);
  EXPECT_EQ(waiter_->stats().looks - looks, 2u);
  EXPECT_LE(udev_.look_ups() - look_ups, 2u);
}

}  // namespace
}  // namespace volumed
