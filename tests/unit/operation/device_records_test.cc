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
    facts.place_root = place_root_;
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

  std::string place_root_;  // of a place that a CO gave; "": it is the agent's own
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

// ---- a volume of a driver -----------------------------------------------------------------------

TEST_F(DeviceRecordsTest, WhatAnAttachAnsweredIsOnRecordAtOnceAndUntilTheDetach) {
  const StringMap context = {{"device", "xvdb"}};
  const Status idle = keeper_.SetAttachment(kRecordedDisk, AttachWay::kByObjects, "", context);
  ASSERT_FALSE(idle.ok());
  EXPECT_EQ(idle.error().code(), Code::kFailedPrecondition);
  DeviceRecord facts = Facts();
  facts.attachable = true;
  const auto attach = keeper_.BeginCall(facts, VolumeEvent::kAttach);
  ASSERT_TRUE(attach.ok());
  ASSERT_TRUE(
      keeper_.SetAttachment(kRecordedDisk, AttachWay::kByController, "node-7", context).ok());
  store_.PowerLoss();
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->publish_context, context);
  EXPECT_EQ(Stored()->attach_way, AttachWay::kByController);
  EXPECT_EQ(Stored()->node_id, "node-7");
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *attach, CallAnswer::kDone).ok());
  // The facts of a later call do not forget it, nor does a reboot.
  const auto mount = keeper_.BeginCall(facts, VolumeEvent::kMountDevice);
  ASSERT_TRUE(mount.ok());
  ASSERT_TRUE(keeper_.SetStaged(kRecordedDisk, true).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *mount, CallAnswer::kDone).ok());
  EXPECT_EQ(AfterRestart(*Stored(), BootId("boot-b")).publish_context, context);
  EXPECT_EQ(Stored()->node_id, "node-7");
  EXPECT_EQ(Stored()->staged, StagedState::kStaged);
  for (const VolumeEvent down : {VolumeEvent::kUnmountDevice, VolumeEvent::kDetach}) {
    const auto call = keeper_.BeginCall(facts, down);
    ASSERT_TRUE(call.ok());
    EXPECT_EQ(Stored()->node_id, "node-7") << "for the call itself";
    ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *call, CallAnswer::kDone).ok());
  }
  EXPECT_FALSE(Stored());
}

// The agent of the new boot began to attach the device anew, and ended: the one after it detached
// the device without an unmount, and nobody told the driver that it is not staged any more.
TEST_F(DeviceRecordsTest, TheRestOfAMountWasForgottenOnceAnAttachAnewHadBegun) {
  DeviceRecord facts = Facts();
  facts.attachable = true;
  DeviceRecord mounted = facts;
  mounted.state = VolumeState::kDeviceMounted;
  mounted.boot_id = BootId("the boot before");
  keeper_.Restore(mounted);
  const auto attach = keeper_.BeginCall(facts, VolumeEvent::kAttach);
  ASSERT_TRUE(attach.ok());
  const auto of_next_agent = [this] { return AfterRestart(*Stored(), BootId("boot-a")); };
  EXPECT_EQ(of_next_agent().state, VolumeState::kAttaching);
  EXPECT_TRUE(of_next_agent().rest_of_mount);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *attach, CallAnswer::kDone).ok());
  EXPECT_EQ(of_next_agent().state, VolumeState::kAttached);
  EXPECT_TRUE(of_next_agent().rest_of_mount);
  // A mount of which nothing was done changes nothing of it.
  const auto mount = keeper_.BeginCall(facts, VolumeEvent::kMountDevice);
  ASSERT_TRUE(mount.ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *mount, CallAnswer::kNotApplied).ok());
  EXPECT_EQ(of_next_agent().state, VolumeState::kAttached);
  EXPECT_TRUE(of_next_agent().rest_of_mount);
  const auto unmount = keeper_.BeginCall(facts, VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(unmount.ok()) << unmount.error().ToString();
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *unmount, CallAnswer::kDone).ok());
  EXPECT_EQ(of_next_agent().state, VolumeState::kAttached);
  EXPECT_FALSE(of_next_agent().rest_of_mount);
}

TEST_F(DeviceRecordsTest, ARowThatIsKeptForItsFormatTellsOfNoAttachmentAndNoStage) {
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Begin(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(keeper_.SetStaged(kRecordedDisk, false).ok());
  ASSERT_TRUE(keeper_.SetAttachment(kRecordedDisk, AttachWay::kByObjects, "n", {{"a", "b"}}).ok());
  EXPECT_EQ(Stored()->staged, StagedState::kNot);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
  Do(VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->staged, StagedState::kNotKnown);
  EXPECT_EQ(Stored()->attach_way, AttachWay::kNotKnown);
  EXPECT_TRUE(Stored()->publish_context.empty());
  EXPECT_EQ(Stored()->node_id, "");
}

TEST_F(DeviceRecordsTest, WhatWasMountedBeforeAGrowthIsOnRecordUntilThatHasSucceeded) {
  using Places = std::vector<MountBeforeGrowth>;
  const Places before = {{"/p", "/dev/sdb", 8, 16, "/"}};
  const Places swapped = {{"/p", "/dev/sdc", 8, 32, "/"}};
  Do(VolumeEvent::kMountDevice);
  const Status idle = keeper_.RememberBeforeGrowth(kRecordedDisk, before);
  ASSERT_FALSE(idle.ok());
  EXPECT_EQ(idle.error().code(), Code::kFailedPrecondition);
  uint64_t attempt = Begin(VolumeEvent::kExpand);
  ASSERT_TRUE(keeper_.RememberBeforeGrowth(kRecordedDisk, before).ok());
  store_.PowerLoss();
  EXPECT_EQ(Stored()->before_growth, before);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kMaybeApplied).ok());
  Do(VolumeEvent::kMountDevice);  // its facts know nothing of it
  attempt = Begin(VolumeEvent::kExpand);
  ASSERT_TRUE(keeper_.RememberBeforeGrowth(kRecordedDisk, swapped).ok());
  EXPECT_EQ(Stored()->before_growth, before);
  EXPECT_EQ(AfterRestart(*Stored(), BootId("boot-a")).before_growth, before);
  EXPECT_EQ(AfterRestart(*Stored(), BootId("boot-b")).before_growth, Places());
  ASSERT_TRUE(keeper_.SetSize(kRecordedDisk, 1 << 21).ok());
  EXPECT_EQ(Stored()->before_growth, Places());
  ASSERT_TRUE(keeper_.RememberBeforeGrowth(kRecordedDisk, swapped).ok());
  ASSERT_TRUE(keeper_.ForgetBeforeGrowth(kRecordedDisk, {"/elsewhere"}).ok());
  EXPECT_EQ(Stored()->before_growth, swapped);
  ASSERT_TRUE(keeper_.ForgetBeforeGrowth(kRecordedDisk, {"/p"}).ok());
  EXPECT_EQ(Stored()->before_growth, Places());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
}

// A sync costs more than the mount itself, and a reboot voids what these rows say.
TEST_F(DeviceRecordsTest, AMountAtAPlaceOfACoThatAPowerLossVoidsWaitsForNoSync) {
  place_root_ = "/root";
  Do(VolumeEvent::kMountDevice);
  store_.PowerLoss();
  EXPECT_FALSE(Stored()) << "nothing was synced";
}

// What the agent has made for it was left for ever.
TEST_F(DeviceRecordsTest, ADeviceWhoseDirectoriesTheAgentMakesHasARowThatOutlivesAPowerLoss) {
  Do(VolumeEvent::kMountDevice);
  store_.PowerLoss();
  EXPECT_TRUE(Stored());
}

TEST_F(DeviceRecordsTest, NeitherTheNextMountNorTheUnmountOfAFormattedDeviceWaitsForASync) {
  place_root_ = "/root";
  const uint64_t attempt = Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(intents_.Begin(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(intents_.Finish(kRecordedDisk.str(), Intent("u1")).ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, attempt, CallAnswer::kDone).ok());
  Do(VolumeEvent::kUnmountDevice);
  Do(VolumeEvent::kMountDevice);
  store_.PowerLoss();
  ASSERT_TRUE(Stored()) << "what filesystem was made is synced, with the intent before it";
  EXPECT_EQ(Stored()->state, VolumeState::kMountingDevice) << "nothing after it was synced";
  EXPECT_TRUE(Stored()->format->finished);
}

TEST_F(DeviceRecordsTest, ARowOfWhichADriverMayKnowIsSyncedUntilItIsGone) {
  place_root_ = "/root";
  DeviceRecord facts = Facts();
  facts.attachable = true;
  ASSERT_TRUE(keeper_.BeginCall(facts, VolumeEvent::kAttach).ok());
  store_.PowerLoss();
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->state, VolumeState::kAttaching);
  DeviceRecord staged = Facts();
  staged.staged = StagedState::kStaged;
  DeviceRecord mounted = staged;
  mounted.state = VolumeState::kDeviceMounted;
  EXPECT_EQ(DurabilityOf(nullptr, staged), Durability::kPowerLoss);
  EXPECT_EQ(DurabilityOf(&staged, mounted), Durability::kPowerLoss);
  EXPECT_EQ(DurabilityOf(&mounted, Facts()), Durability::kPowerLoss);
}

TEST_F(DeviceRecordsTest, WhatIsSaidTwiceIsWrittenOnce) {
  Begin(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.SetStaged(kRecordedDisk, true).ok());
  ASSERT_TRUE(keeper_.SetAttachment(kRecordedDisk, AttachWay::kByObjects, "", {}).ok());
  const uint64_t writes = store_.calls();
  ASSERT_TRUE(keeper_.SetStaged(kRecordedDisk, true).ok());
  ASSERT_TRUE(keeper_.SetAttachment(kRecordedDisk, AttachWay::kByObjects, "", {}).ok());
  EXPECT_EQ(store_.calls(), writes);
}

// ---- one pod only -------------------------------------------------------------------------------

const PodUid kFirst("first");
const PodUid kSecond("second");

TEST_F(DeviceRecordsTest, OnePodHasAVolumeThatIsSetUpAndTheFirstGetsIt) {
  EXPECT_FALSE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok()) << "there is no device";
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  store_.PowerLoss();
  EXPECT_EQ(Stored()->only_pod, kFirst);
  const uint64_t writes = store_.calls();
  EXPECT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  const Status refused = keeper_.TakeOnlyPod(kRecordedDisk, kSecond);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(keeper_.ReleaseOnlyPod(kRecordedDisk, kSecond).ok()) << "it has nothing";
  EXPECT_EQ(store_.calls(), writes) << "nothing of it is written";
  ASSERT_TRUE(keeper_.ReleaseOnlyPod(kRecordedDisk, kFirst).ok());
  store_.PowerLoss();
  EXPECT_TRUE(Stored()->only_pod.empty());
  EXPECT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kSecond).ok());
}

TEST_F(DeviceRecordsTest, WhoHasAVolumeAloneOutlivesItsDeviceAndIsRemovedWithIt) {
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  Do(VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(Stored());
  EXPECT_EQ(Stored()->only_pod, kFirst);
  Do(VolumeEvent::kMountDevice);
  EXPECT_FALSE(keeper_.TakeOnlyPod(kRecordedDisk, kSecond).ok());
  Do(VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_FALSE(Stored());
}

TEST_F(DeviceRecordsTest, TheRestoredRowsTellWhichVolumesAPodHasAlone) {
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  DeviceRecordKeeper next(store_, clock_, logger_, observer_, BootId("boot-a"));
  next.Restore(*Stored());
  ASSERT_TRUE(next.ReleaseOnlyPods(kSecond).ok());
  EXPECT_EQ(Stored()->only_pod, kFirst);
  ASSERT_TRUE(next.ReleaseOnlyPods(kFirst).ok());
  EXPECT_TRUE(Stored()->only_pod.empty());
}

// The removal of a pod wrote over the state of a device whose unmount began meanwhile.
TEST_F(DeviceRecordsTest, APodsRemovalWritesNoRowOfADeviceInCall) {
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  const auto attempt = keeper_.BeginCall(*keeper_.Find(kRecordedDisk), VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(attempt.ok());
  const Status refused = keeper_.ReleaseOnlyPods(kFirst);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kAborted);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_EQ(Stored()->state, VolumeState::kUnmountingDevice);
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *attempt, CallAnswer::kDone).ok());
  ASSERT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_FALSE(Stored());
}

// What a restart, or an open outcome, left of a call kept the pod that alone had the volume.
TEST_F(DeviceRecordsTest, AnOpenOutcomeKeepsNoPodFromBeingRemoved) {
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  const auto attempt = keeper_.BeginCall(*keeper_.Find(kRecordedDisk), VolumeEvent::kUnmountDevice);
  ASSERT_TRUE(attempt.ok());
  ASSERT_TRUE(keeper_.EndCall(kRecordedDisk, *attempt, CallAnswer::kMaybeApplied).ok());
  ASSERT_EQ(Stored()->state, VolumeState::kUnmountingDevice);
  EXPECT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_TRUE(Stored()->only_pod.empty());
  EXPECT_EQ(Stored()->state, VolumeState::kUnmountingDevice);
}

// The write may have reached the disk, and only the pod's removal is sure that it has not.
TEST_F(DeviceRecordsTest, AfterAFailedWriteNobodyHasItAndThePodsRemovalWritesThat) {
  Do(VolumeEvent::kMountDevice);
  store_.FailNext(Error::NotApplied(Code::kUnavailable, "store is down"));
  EXPECT_FALSE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  EXPECT_TRUE(keeper_.Find(kRecordedDisk)->only_pod.empty());
  const uint64_t writes = store_.calls();
  ASSERT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_EQ(store_.calls(), writes + 1);
  ASSERT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_EQ(store_.calls(), writes + 1) << "once";
  EXPECT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kSecond).ok());
}

TEST_F(DeviceRecordsTest, AFullDiskStopsNoTeardownAndThePodsRemovalWritesWhatIsOwed) {
  Do(VolumeEvent::kMountDevice);
  ASSERT_TRUE(keeper_.TakeOnlyPod(kRecordedDisk, kFirst).ok());
  const Error full = Error::NotApplied(Code::kResourceExhausted, "disk is full");
  store_.FailNext(full);
  EXPECT_TRUE(keeper_.ReleaseOnlyPod(kRecordedDisk, kFirst).ok());
  EXPECT_TRUE(keeper_.Find(kRecordedDisk)->only_pod.empty());
  EXPECT_EQ(Stored()->only_pod, kFirst);
  store_.FailNext(full);
  EXPECT_FALSE(keeper_.ReleaseOnlyPods(kFirst).ok()) << "the pod's record would go";
  ASSERT_TRUE(keeper_.ReleaseOnlyPods(kFirst).ok());
  EXPECT_TRUE(Stored()->only_pod.empty());
}

}  // namespace
}  // namespace volumed
