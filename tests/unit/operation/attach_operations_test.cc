// The attach pipeline on a fake array: steps, records, proofs before a detach.
#include "operation/attach_operations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_array_plugin.h"
#include "operation/device_operations.h"
#include "operation/node_volume_operations.h"
#include "unit/operation/operation_parts_fixture.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const UniqueVolumeName kArrayDisk("test.io/array/disk");
constexpr char kPath[] = "/dev/array/disk";
constexpr char kArrayPlace[] = "/var/lib/volumed/plugins/test.io/array/mounts/disk";

class AttachOperationsTest : public OperationPartsFixture {
 protected:
  AttachOperationsTest() {
    node_.AddDirectory("/var/lib/volumed/pods", 0750);
    array_.disks["disk"] = kPath;
    FakeDevice device;
    device.fs_type = "ext4";
    device.usage = "filesystem";
    device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
    node_.AddDevice(kPath, device);
    node_.Remove(kPath);  // until it is attached
    Init(std::make_unique<FakeArrayPlugin>(array_, node_));
  }

  static VolumeSpec Spec() {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    FlexPersistentVolumeSource source;
    source.driver = kFakeArrayPlugin;
    volume.spec.source = source;
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  template <typename T, typename Start>
  OperationOutcome<T> Run(Start start) {
    std::optional<OperationOutcome<T>> outcome;
    operations_.ResetBackoff(OperationKey(kArrayDisk));
    const StartResult started =
        start([&outcome](const OperationOutcome<T>& answer) { outcome = answer; });
    EXPECT_EQ(started, StartResult::kStarted);
    scheduler_.RunFor(std::chrono::milliseconds(1));
    EXPECT_TRUE(outcome.has_value());
    return outcome.value_or(OperationOutcome<T>());
  }
  OperationOutcome<AttachedVolume> Attach() {
    return Run<AttachedVolume>([this](auto done) {
      return operations_.Start(
          AttachVolume({kArrayDisk, Spec(), {PodUid("a"), PodUid("b")}, "key"}), done);
    });
  }
  OperationOutcome<MountedDevice> MountDevice() {
    auto pod = std::make_shared<Pod>();
    pod->metadata.uid = "a";
    return Run<MountedDevice>([&](auto done) {
      MountDeviceRequest request{kArrayDisk, Spec(), {PodUid("a")}};
      request.attachable = true;
      request.first_pod = pod;
      return operations_.Start(volumed::MountDevice(request), done);
    });
  }
  OperationOutcome<Unit> UnmountDevice() {
    return Run<Unit>([this](auto done) {
      return operations_.Start(
          volumed::UnmountDevice({kArrayDisk, kFakeArrayPlugin, SpecName("disk"), kArrayPlace}),
          done);
    });
  }
  OperationOutcome<Unit> Detach() {
    return Run<Unit>([this](auto done) {
      return operations_.Start(DetachVolume({kArrayDisk, kFakeArrayPlugin, SpecName("disk")}),
                               done);
    });
  }
  OperationOutcome<VerifiedAttachments> Verify() {
    return Run<VerifiedAttachments>([this](auto done) {
      operations_.ResetBackoff(VerifyAttachedKey(kFakeArrayPlugin));
      return operations_.Start(VerifyVolumesAreAttached({kFakeArrayPlugin, {{kArrayDisk, Spec()}}}),
                               done);
    });
  }
  std::optional<DeviceRecord> Stored() const {
    const auto row = store_.Find(kDeviceRecordKind, RecordKey(kArrayDisk));
    return row ? std::optional<DeviceRecord>(DecodeDeviceRecord(*row).value()) : std::nullopt;
  }
  template <typename T>
  static std::string StepOf(const OperationOutcome<T>& outcome) {
    return outcome.failure ? outcome.failure->step : "";
  }

  FakeArray array_;
  NodeVolumeOperations operations_{scheduler_,
                                   {plugins_, host_, logger_, store_, devices_, storage_},
                                   observer_,
                                   BootId("boot-a")};
};

TEST_F(AttachOperationsTest, UpAndDownWithARowForEachState) {
  const auto attached = Attach();
  ASSERT_TRUE(attached.value) << attached.failure->error.ToString();
  EXPECT_EQ(attached.value->device_path, kPath);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_TRUE(Stored()->attachable);
  EXPECT_EQ(Stored()->device_path, kPath);
  EXPECT_EQ(Stored()->limit_key, "key");
  const auto mounted = MountDevice();
  ASSERT_TRUE(mounted.value) << mounted.failure->error.ToString();
  EXPECT_EQ(mounted.value->device_path, kPath);
  EXPECT_EQ(Stored()->limit_key, "key");
  EXPECT_TRUE(node_.IsMountPoint(kArrayPlace));
  ASSERT_TRUE(UnmountDevice().value);
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_EQ(Stored()->device_path, kPath);
  const auto detached = Detach();
  ASSERT_TRUE(detached.value) << detached.failure->error.ToString();
  EXPECT_FALSE(Stored());
  EXPECT_THAT(array_.calls, ElementsAre("Attach disk", "WaitForAttach disk /dev/array/disk",
                                        "MountDevice disk /dev/array/disk", "Detach disk"));
  EXPECT_EQ(node_.Device(kPath).flushes, 1);
  EXPECT_TRUE(array_.attached.empty());
  std::vector<std::string> names;
  for (const FinishedOperation& finished : observer_.finished) names.push_back(finished.operation);
  EXPECT_THAT(names,
              ElementsAre("volume_attach", "mount_device", "unmount_device", "volume_detach"));
  EXPECT_THAT(parts_.events,
              ElementsAre("a SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "
                          "\"disk\" ",
                          "b SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "
                          "\"disk\" "));
}

TEST_F(AttachOperationsTest, WhatIsNotAttachedIsNotMounted) {
  const auto mounted = MountDevice();
  EXPECT_EQ(StepOf(mounted), "RecordIntent");
  EXPECT_THAT(mounted.failure->error.message(),
              HasSubstr("is Detached: MountDevice is impossible"));
  EXPECT_TRUE(array_.calls.empty());
}

TEST_F(AttachOperationsTest, AFailedAttachIsAnEventAndLeavesNoRow) {
  array_.failures.insert({"Attach", Error::NotApplied(Code::kResourceExhausted, "full")});
  const auto failed = Attach();
  EXPECT_EQ(failed.failure->operation, "volume_attach");
  EXPECT_EQ(StepOf(failed), "Attach");
  EXPECT_FALSE(Stored());
  EXPECT_THAT(parts_.events, Contains("a FailedAttachVolume AttachVolume.Attach failed for volume "
                                      "\"disk\" : full"));
}

TEST_F(AttachOperationsTest, AnAttachForWhichTheNodeHasNoPlaceIsAnEventOfItsOwn) {
  array_.failures.insert({"Attach", Error::NotApplied(Code::kResourceExhausted, "full")});
  array_.is_exhausted = true;
  EXPECT_EQ(StepOf(Attach()), "Attach");
  EXPECT_THAT(parts_.events,
              Contains("a VolumeAttachmentLimitExceeded AttachVolume.Attach failed for volume "
                       "\"disk\" : full"));
}

TEST_F(AttachOperationsTest, AnAttachThatMayBeAppliedCanBeRepeatedOrTakenBack) {
  array_.failures.insert({"Attach", Error::MaybeApplied(Code::kDeadlineExceeded, "slow")});
  EXPECT_TRUE(Attach().failure);
  EXPECT_EQ(Stored()->state, VolumeState::kAttaching);
  EXPECT_TRUE(Stored()->uncertain);
  EXPECT_EQ(StepOf(MountDevice()), "RecordIntent");
  EXPECT_TRUE(Detach().value);
  EXPECT_FALSE(Stored());
}

TEST_F(AttachOperationsTest, APathThatCannotBeRecordedLeavesTheAttachInDoubt) {
  // The second write is that of the path.
  node_.SetCallHook([this](const AnyRequest&) {
    store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "disk full"), 1);
  });
  const auto failed = Attach();
  node_.SetCallHook(nullptr);
  ASSERT_TRUE(failed.failure);
  EXPECT_TRUE(failed.failure->error.maybe_applied());
  EXPECT_EQ(devices_.Find(kArrayDisk)->state, VolumeState::kAttaching);
}

TEST_F(AttachOperationsTest, TheWaitHasADeadlineOfItsOwnAndNeedsAnUnmountAfterwards) {
  ASSERT_TRUE(Attach().value);
  const TimePoint before = clock_.Now();
  array_.failures.insert({"MountDevice", Error::NotApplied(Code::kInvalidArgument, "bad type")});
  const auto failed = MountDevice();
  EXPECT_EQ(StepOf(failed), "MountDevice");
  EXPECT_EQ(array_.last_deadline.when(), before + std::chrono::minutes(10));
  // The wait may have logged in somewhere: only an unmount takes that back.
  EXPECT_TRUE(failed.failure->error.maybe_applied());
  EXPECT_EQ(StepOf(Detach()), "RecordIntent");
  EXPECT_TRUE(UnmountDevice().value);
  EXPECT_TRUE(Detach().value);
}

TEST_F(AttachOperationsTest, ADeviceThatVanishesIsWaitedForAndNotMounted) {
  ASSERT_TRUE(Attach().value);
  node_.Remove(kPath);
  const auto failed = MountDevice();
  EXPECT_EQ(StepOf(failed), "WaitForAttach");
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_FALSE(node_.Exists(kArrayPlace));
  EXPECT_TRUE(Detach().value);  // there is nothing to flush
}

// Whoever got the disk then would mount it a second time.
TEST_F(AttachOperationsTest, AMountThatFailsKeepsTheDiskForAsLongAsSomethingIsMounted) {
  ASSERT_TRUE(Attach().value);
  const StorageHolder holder =
      DeviceStorageHolder(kArrayDisk, SpecName("disk"), StorageUse::kMounted);
  const auto taken = storage_.Take(holder, StorageName{kPath}, CallOptions());
  ASSERT_TRUE(taken.ok()) << taken.error().ToString();
  node_.AddDirectory(kArrayPlace);
  ASSERT_TRUE(node_.Call(Mount{"ext4", kPath, {kArrayPlace, ""}, {}}, {}).ok());
  const Error slow = Error::MaybeApplied(Code::kDeadlineExceeded, "slow");
  array_.failures.insert({"MountDevice", slow});
  EXPECT_EQ(StepOf(MountDevice()), "MountDevice");
  EXPECT_TRUE(storage_.Has(holder.id, StorageUse::kMounted));
  node_.UnmountBelow(kArrayPlace);
  array_.failures.insert({"MountDevice", slow});
  EXPECT_EQ(StepOf(MountDevice()), "MountDevice");
  EXPECT_FALSE(storage_.Has(holder.id, StorageUse::kMounted));
}

TEST_F(AttachOperationsTest, WhatAPodHasIsNotDetached) {
  PodVolumeRecord pod;
  pod.key = Key("a", "disk");
  pod.pod_namespace = "default";
  pod.pod_name = "web";
  pod.state = VolumeState::kSetUp;
  pod.boot_id = BootId("boot-a");
  pod.unique_name = kArrayDisk;
  pod.has_device = true;
  operations_.Restore({pod}, {});
  ASSERT_TRUE(Attach().value);
  const auto refused = Detach();
  ASSERT_TRUE(refused.failure);
  EXPECT_EQ(refused.failure->step, "CheckDeviceUnused");
  EXPECT_THAT(refused.failure->error.message(), HasSubstr("still SetUp for pod default/web"));
  EXPECT_TRUE(array_.attached.contains("disk"));
}

TEST_F(AttachOperationsTest, WhatIsMountedIsNotDetached) {
  ASSERT_TRUE(Attach().value);
  ASSERT_TRUE(MountDevice().value);
  const auto refused = Detach();
  EXPECT_EQ(StepOf(refused), "RecordIntent");
  EXPECT_FALSE(refused.failure->error.maybe_applied());
  EXPECT_TRUE(array_.attached.contains("disk"));
}

TEST_F(AttachOperationsTest, WhatSomebodyElseHasMountedIsNotDetached) {
  ASSERT_TRUE(Attach().value);
  node_.ChangeDevice(kPath, [](FakeDevice& device) { device.fs_type = "ext4"; });
  node_.AddDirectory("/mnt/by-hand");
  ASSERT_TRUE(node_.Call(Mount{"ext4", kPath, {"/mnt/by-hand", ""}, {}}, {}).ok());
  const auto refused = Detach();
  EXPECT_EQ(StepOf(refused), "CheckDeviceUnused");
  EXPECT_NE(refused.failure->error.message().find("/mnt/by-hand"), std::string::npos)
      << refused.failure->error.message();
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  node_.UnmountBelow("/mnt/by-hand");
  EXPECT_TRUE(Detach().value);
}

// The unmount was refused for ever, and so was the detach.
TEST_F(AttachOperationsTest, AMountThatWasThereBeforeTheAttachIsUnmountedWithoutAMountOnRecord) {
  ASSERT_TRUE(Attach().value);
  node_.ChangeDevice(kPath, [](FakeDevice& device) { device.fs_type = "ext4"; });
  node_.AddDirectory(kArrayPlace);
  ASSERT_TRUE(node_.Call(Mount{"ext4", kPath, {kArrayPlace, ""}, {}}, {}).ok());
  const auto unmounted = UnmountDevice();
  ASSERT_TRUE(unmounted.value) << unmounted.failure->error.ToString();
  EXPECT_FALSE(node_.IsMountPoint(kArrayPlace));
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_FALSE(Stored()->uncertain);
  EXPECT_TRUE(Detach().value);
}

// An agent that started after the attach took the device for one that nothing is mounted of.
TEST_F(AttachOperationsTest, AMountThatWasFoundBeforeTheAttachWasForgottenByTheNextAgent) {
  const auto attached = Run<AttachedVolume>([this](auto done) {
    AttachRequest request{kArrayDisk, Spec(), {PodUid("a")}, "key"};
    request.found_mounted = true;
    return operations_.Start(AttachVolume(std::move(request)), done);
  });
  ASSERT_TRUE(attached.value) << attached.failure->error.ToString();
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_TRUE(AfterRestart(*Stored(), BootId("boot-a")).rest_of_mount);
  ASSERT_TRUE(MountDevice().value);
  EXPECT_FALSE(Stored()->rest_of_mount);
}

// The next agent staged a volume that perhaps nobody had attached since the node was booted.
TEST_F(AttachOperationsTest, AnAttachInDoubtCountedAsDoneOnceTheRestOfAMountWasUnmounted) {
  ASSERT_TRUE(Attach().value);
  DeviceRecord before = *Stored();
  for (const VolumeState state : {VolumeState::kAttached, VolumeState::kAttaching}) {
    before.state = state;
    before.uncertain = true;
    before.rest_of_mount = true;
    devices_.Restore(before);
    const auto unmounted = UnmountDevice();
    ASSERT_TRUE(unmounted.value) << unmounted.failure->error.ToString();
    EXPECT_EQ(Stored()->state, VolumeState::kAttached);
    EXPECT_TRUE(Stored()->uncertain) << VolumeStateName(state);
    EXPECT_FALSE(Stored()->rest_of_mount);
    ASSERT_TRUE(Attach().value);
    EXPECT_FALSE(Stored()->uncertain);
  }
}

TEST_F(AttachOperationsTest, WhatCannotBeFlushedIsNotDetached) {
  ASSERT_TRUE(Attach().value);
  node_.ChangeDevice(kPath, [](FakeDevice& device) { device.unreadable = true; });
  const auto refused = Detach();
  EXPECT_EQ(StepOf(refused), "FlushDevice");
  EXPECT_TRUE(array_.attached.contains("disk"));
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
}

TEST_F(AttachOperationsTest, ADeviceThatHangsLeavesTheVolumeAttached) {
  ASSERT_TRUE(Attach().value);
  node_.Hang(kPath);
  EXPECT_EQ(StepOf(Detach()), "CheckDeviceUnused");
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
  EXPECT_FALSE(Stored()->uncertain);
  node_.Unhang(kPath);
  EXPECT_TRUE(Detach().value);
}

TEST_F(AttachOperationsTest, WhatNoRecordSaysWasAttachedIsLeftAlone) {
  array_.attached.insert("disk");
  const auto refused = Detach();
  EXPECT_EQ(StepOf(refused), "FindRecord");
  EXPECT_TRUE(array_.calls.empty());
}

TEST_F(AttachOperationsTest, PluginsAreAskedInOneCallOfTheirKind) {
  ASSERT_TRUE(Attach().value);
  EXPECT_EQ(*Verify().value, (VerifiedAttachments{{kArrayDisk, true}}));
  EXPECT_EQ(array_.calls.back(), "VolumesAreAttached");
  EXPECT_EQ(observer_.finished.back().operation, "verify_volumes_are_attached_per_node");
  array_.in_bulk = true;
  array_.attached.clear();
  EXPECT_EQ(*Verify().value, (VerifiedAttachments{{kArrayDisk, false}}));
  EXPECT_EQ(array_.calls.back(), "BulkVerifyVolumes");
  EXPECT_EQ(observer_.finished.back().operation, "verify_volumes_are_attached");
  array_.failures.insert({"VolumesAreAttached", Error::NotApplied(Code::kUnavailable, "down")});
  EXPECT_EQ(StepOf(Verify()), "VolumesAreAttached");
  EXPECT_EQ(Stored()->state, VolumeState::kAttached);
}

// ---- the rows -----------------------------------------------------------------------------------

TEST(AttachRecordsTest, ARowOfTheFirstVersionIsOfADeviceThatNeedsNoAttach) {
  DeviceRecord record;
  record.key = UniqueVolumeName("kubernetes.io/local-volume/disk");
  record.spec = SpecName("disk");
  record.state = VolumeState::kDeviceMounted;
  Record row = EncodeRecord(record);
  EXPECT_EQ(row.version, 2u);
  row.version = 1;
  const Result<DeviceRecord> old = DecodeDeviceRecord(row);
  ASSERT_TRUE(old.ok()) << old.error().ToString();
  EXPECT_FALSE(old->attachable);
  row.version = kGivenPlaceRecordVersion + 1;
  EXPECT_EQ(DecodeDeviceRecord(row).error().code(), Code::kFailedPrecondition);
}

TEST(AttachRecordsTest, AnAttachableDeviceIsReadBackWhole) {
  DeviceRecord record;
  record.key = kArrayDisk;
  record.spec = SpecName("disk");
  record.state = VolumeState::kAttached;
  record.attachable = true;
  record.device_path = kPath;
  record.limit_key = "storage-limits-array";
  EXPECT_EQ(DecodeDeviceRecord(EncodeRecord(record)).value(), record);
}

TEST(AttachRecordsTest, AfterARebootAnAttachmentIsInDoubtAndItsPathUnknown) {
  DeviceRecord record;
  record.key = kArrayDisk;
  record.boot_id = BootId("boot-a");
  record.attachable = true;
  record.device_path = kPath;
  for (const VolumeState state :
       {VolumeState::kAttached, VolumeState::kDeviceMounted, VolumeState::kUnmountingDevice}) {
    record.state = state;
    const DeviceRecord now = AfterRestart(record, BootId("boot-b"));
    EXPECT_EQ(now.state, VolumeState::kAttached);
    EXPECT_TRUE(now.uncertain);
    EXPECT_EQ(now.device_path, "");
    const DeviceRecord same = AfterRestart(record, BootId("boot-a"));
    EXPECT_EQ(same.state, state);
    EXPECT_EQ(same.device_path, kPath);
    EXPECT_TRUE(now.rest_of_mount);
    EXPECT_FALSE(same.rest_of_mount);
  }
}

}  // namespace
}  // namespace volumed
