// Devices on record: the states of one, and the format that its row tells of.
#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "fakes/memory_record_store.h"
#include "operation/record_format_intents.h"
#include "unit/operation/recording_parts.h"

namespace volumed {
namespace {

const UniqueVolumeName kRecordedDisk("kubernetes.io/local-volume/disk");

class DeviceRecordsTest : public ::testing::Test {
 protected:
  DeviceRecord Facts() const {
    DeviceRecord facts;
    facts.key = kRecordedDisk;
    facts.plugin_name = "kubernetes.io/local-volume";
    facts.spec = SpecName("disk");
    facts.device_mount_path = "/root/plugins/kubernetes.io/local-volume/mounts/disk";
    return facts;
  }
  static FormatIntent Intent(const std::string& uuid) {
    FormatIntent intent;
    intent.device.size_bytes = 1 << 20;
    intent.device.stable_id = "serial:1";
    intent.device.uuid = "what was there";
    intent.fs_type = "ext4";
    intent.fs_uuid = uuid;
    return intent;
  }
  std::optional<DeviceRecord> Stored() const {
    const auto row = store_.Find(kDeviceRecordKind, RecordKey(kRecordedDisk));
    return row ? std::optional<DeviceRecord>(DecodeDeviceRecord(*row).value()) : std::nullopt;
  }
  uint64_t Begin(VolumeEvent call) {
    const auto attempt = keeper_.BeginCall(Facts(), call);
    EXPECT_TRUE(attempt.ok()) << attempt.error().ToString();
    if (call == VolumeEvent::kMountDevice) {
      EXPECT_TRUE(intents_.Reserve(kRecordedDisk.str(), "/dev/sdb", {}).ok());
    }
    return attempt.ok() ? *attempt : 0;
  }
  void Do(VolumeEvent call, CallAnswer answer = CallAnswer::kDone) {
    ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, Begin(call), answer).ok());
  }

  ManualClock clock_;
  LogLines log_;
  Logger logger_{log_.Options(), clock_};
  RecordingObserver observer_;
  MemoryRecordStore store_;
  DeviceRecordKeeper keeper_{store_, clock_, logger_, observer_, BootId("boot-a")};
  FakeKernel kernel_;
  StorageGuard storage_{kernel_, store_, clock_, logger_, BootId("boot-a")};
  RecordFormatIntents intents_{keeper_, storage_, BootId("boot-a")};
};

TEST_F(DeviceRecordsTest, ADeviceBeginsAttachedAndLeavesNoRowBehind) {
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->state, VolumeState::kMountingDevice);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kDeviceMounted);
  Do(VolumeEvent::kUnmountDevice);
  EXPECT_FALSE(Stored());
  const std::vector<RecordingObserver::Assigned> expected = {
      {OperationKey(kRecordedDisk), VolumeState::kMountingDevice, false},
      {OperationKey(kRecordedDisk), VolumeState::kDeviceMounted, false},
      {OperationKey(kRecordedDisk), VolumeState::kUnmountingDevice, false},
      {OperationKey(kRecordedDisk), VolumeState::kAttached, false}};
  EXPECT_EQ(observer_.assigned, expected);
}

TEST_F(DeviceRecordsTest, WhatIsFoundWithoutARecordCanBeTakenAway) {
  Do(VolumeEvent::kUnmountDevice);
  EXPECT_FALSE(Stored());
  EXPECT_FALSE(keeper_.Find(kRecordedDisk));
}

TEST_F(DeviceRecordsTest, ARebootLeavesADeviceToBeLookedAt) {
  Do(VolumeEvent::kMountDevice);
  const DeviceRecord now = AfterRestart(*Stored(), BootId("boot-b"));
  EXPECT_EQ(now.state, VolumeState::kMountingDevice);
  EXPECT_TRUE(now.uncertain);
  EXPECT_EQ(AfterRestart(*Stored(), BootId("boot-a")), *Stored());
}

TEST_F(DeviceRecordsTest, AnExpansionHasItsTargetOnRecordBeforeAndItsSizeAfter) {
  EXPECT_EQ(keeper_.SetSize(kRecordedDisk, 2).error().code(), Code::kFailedPrecondition);
  Do(VolumeEvent::kMountDevice);
  DeviceRecord facts = *Stored();
  facts.target_bytes = 2048;
  const auto attempt = keeper_.BeginCall(facts, VolumeEvent::kExpand);
  ASSERT_TRUE(attempt.ok());
  EXPECT_EQ(Stored()->state, VolumeState::kExpanding);
  EXPECT_EQ(Stored()->target_bytes, 2048);
  store_.PowerLoss();
  EXPECT_EQ(Stored()->target_bytes, 2048);
  // A new agent may look at its mount, and does not forget the target.
  const DeviceRecord found = AfterRestart(*Stored(), BootId("boot-a"));
  EXPECT_TRUE(found.uncertain);
  EXPECT_TRUE(Next(found.state, VolumeEvent::kMountDevice));
  ASSERT_TRUE(keeper_.SetSize(kRecordedDisk, 2048).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *attempt, CallAnswer::kDone).ok());
  EXPECT_EQ(Stored()->state, VolumeState::kDeviceMounted);
  EXPECT_EQ(Stored()->size_bytes, 2048);
  EXPECT_EQ(Stored()->target_bytes, 0);
}

TEST_F(DeviceRecordsTest, AFormatIsOnRecordBeforeAndAfterAndOutlivesTheMount) {
  EXPECT_EQ(intents_.Begin(kRecordedDisk.str(), Intent("u1")).error().code(),
            Code::kFailedPrecondition);
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Begin(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(Stored()->format);
  EXPECT_FALSE(Stored()->format->finished);
  EXPECT_EQ(Stored()->format->device.uuid, "");
  store_.PowerLoss();
  ASSERT_TRUE(Stored()->format);
  ASSERT_TRUE(intents_.Finish(kRecordedDisk.str(), Intent("u1")).ok());
  EXPECT_TRUE(Stored()->format->finished);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
  Do(VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  // The facts of the next mount do not forget it.
  Do(VolumeEvent::kMountDevice);
  EXPECT_EQ(Stored()->format->fs_uuid, "u1");
}

TEST_F(DeviceRecordsTest, AnUnfinishedFormatOutlivesAFailedMountAndTheBoot) {
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Begin(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kNotApplied).ok());
  ASSERT_TRUE(Stored());
  DeviceRecordKeeper next(store_, clock_, logger_, observer_, BootId("boot-b"));
  next.Restore(AfterRestart(*Stored(), BootId("boot-b")));
  RecordFormatIntents later(next, storage_, BootId("boot-b"));
  const auto found = later.Find(kRecordedDisk.str());
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->fs_uuid, "u1");
  EXPECT_FALSE((*found)->finished);
  EXPECT_EQ((*found)->device.stable_id, "serial:1");
}

TEST_F(DeviceRecordsTest, AWithdrawnFormatLeavesNothing) {
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Begin(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(intents_.Withdraw(kRecordedDisk.str()).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kNotApplied).ok());
  EXPECT_FALSE(Stored());
}

TEST_F(DeviceRecordsTest, AVolumeIsForgottenOnlyWhenItsDeviceIsUnmounted) {
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Finish(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
  EXPECT_EQ(keeper_.Forget(kRecordedDisk).error().code(), Code::kFailedPrecondition);
  Do(VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(keeper_.Forget(kRecordedDisk).ok());
  EXPECT_FALSE(Stored());
  EXPECT_TRUE(keeper_.Forget(kRecordedDisk).ok());
}

TEST_F(DeviceRecordsTest, RowsOfOtherKindsAndStatesAreNotDevices) {
  Do(VolumeEvent::kMountDevice);
  Record row = *store_.Find(kDeviceRecordKind, RecordKey(kRecordedDisk));
  row.key = "another";
  EXPECT_EQ(DecodeDeviceRecord(row).error().code(), Code::kDataLoss);
  DeviceRecord wrong = *Stored();
  wrong.state = VolumeState::kSetUp;
  EXPECT_EQ(DecodeDeviceRecord(EncodeRecord(wrong)).error().code(), Code::kDataLoss);
  ClaimBindingRecord binding{
      {{"default", "data"}, "uid", "disk", BindingState::kReleased}, "{}", true};
  EXPECT_EQ(*DecodeClaimBindingRecord(EncodeRecord(binding)), binding);
}

}  // namespace
}  // namespace volumed
