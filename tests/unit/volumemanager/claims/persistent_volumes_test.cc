// Claims, devices and the pods that share them, on fake operations.
#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/claims/claims.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const UniqueVolumeName kDevice("kubernetes.io/local-volume/disk");

class PersistentVolumesTest : public ManagerTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Volume(const std::string& name, const std::string& more = "",
                            const std::string& mode = "ReadWriteOnce",
                            const std::string& source = "local: {path: /dev/vdb}") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [" + mode + "]\n  " + source +
           "\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n" +
           more;
  }
  static std::string Claim(const std::string& name, const std::string& more = "",
                           const std::string& mode = "ReadWriteOnce") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default, uid: claim-" + name + "}\nspec:\n  accessModes: [" + mode +
           "]\n  resources: {requests: {storage: 1Gi}}\n" + more;
  }
  static std::string Storage() { return Volume("disk") + Claim("data"); }

  // The rows that the operation layer writes.
  void LeaveDevice(VolumeState state, const std::string& only_pod = "") {
    DeviceRecord device;
    device.key = kDevice;
    device.only_pod = PodUid(only_pod);
    device.plugin_name = "kubernetes.io/local-volume";
    device.spec = SpecName("disk");
    device.device_mount_path = "/var/lib/volumed/plugins/kubernetes.io/local-volume/mounts/disk";
    device.state = state;
    device.boot_id = BootId("boot-1");
    ASSERT_TRUE(store.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
  }
  void LeaveRecords() {
    LeaveDevice(VolumeState::kDeviceMounted);
    PodVolumeRecord record;
    record.key = Key("a", "disk");
    record.pod_namespace = "default";
    record.pod_name = "a";
    record.plugin_name = "kubernetes.io/local-volume";
    record.state = VolumeState::kSetUp;
    record.boot_id = BootId("boot-1");
    record.unique_name = kDevice;
    record.has_device = true;
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  }

  size_t DeviceCalls(const std::string& operation) {
    return operations().Count(operation, OperationKey(kDevice));
  }
  std::optional<ClaimBindingRecord> Binding(const std::string& volume = "disk") const {
    const auto row = store.Find(kClaimBindingRecordKind, volume);
    if (!row) return std::nullopt;
    return DecodeClaimBindingRecord(*row).value();
  }
  std::string Problem(const std::string& pod) {
    const VolumeView volume = View(pod).volumes.at(0);
    return volume.problem ? volume.problem->step + ": " + volume.problem->message : "";
  }
  bool ProblemHas(const std::string& pod, const std::string& text) {
    return Problem(pod).find(text) != std::string::npos;
  }
};

constexpr const char* kOfDriver = "csi: {driver: disks.io, volumeHandle: vol-1}";

// What a deletion looked at was as old as the request for it.
TEST_F(PersistentVolumesTest, WhichStorageOfADriverAVolumeNamesIsToldToTheOperations) {
  using Named = std::map<std::string, std::string>;
  const Named named = {{"st", "disks.io^vol-1"}};
  const std::string volume = Volume("st", "", "ReadWriteOnce", kOfDriver);
  Deliver(volume + Volume("disk"));
  EXPECT_EQ(operations().named_storage, named) << "of no driver is the other one";
  Deliver(volume + Claim("data", "  volumeName: st\n"));
  ASSERT_TRUE(Binding("st"));
  StartAgent();
  Settle();
  EXPECT_EQ(operations().named_storage, named) << "before any source has delivered";
  Deliver(volume + Claim("data", "  volumeName: st\n"));
  EXPECT_EQ(operations().named_storage, named);
}

TEST_F(PersistentVolumesTest, AVolumeThatHasEndedNamesNoStorageAnyMore) {
  Deliver(Volume("st", "", "ReadWriteOnce", kOfDriver));
  ASSERT_EQ(operations().named_storage.size(), 1u);
  ASSERT_TRUE(DeleteObject({ObjectKind::kPersistentVolume, "", "st"})->ok());
  EXPECT_TRUE(operations().named_storage.empty());
}

TEST_F(PersistentVolumesTest, WhatTheLastAgentHasBegunToDeleteIsToldToTheNextOne) {
  StorageReservationRecord begun;
  begun.holder = {.id = "reclaim/old",
                  .volume = "old",
                  .use = StorageUse::kReclaim,
                  .persistent = true,
                  .text = "persistent volume old"};
  begun.name = {.path = "vol-1", .server = "", .driver = "disk.example.com"};
  begun.boot_id = BootId("boot-a");
  ASSERT_TRUE(store.Put(EncodeRecord(begun), kStorageRecordDurability).ok());
  StartAgent();
  Settle();
  EXPECT_EQ(operations().expected_deletions, std::vector<StorageReservationRecord>{begun});
}

// A claim was bound to a volume while DeleteVolume was called for its handle.
TEST_F(PersistentVolumesTest, AVolumeWhoseStorageWasBeingDeletedForAnotherWasBound) {
  const std::string why = "its storage is being deleted for persistent volume old";
  operations().being_deleted = {{"st", why}};
  Deliver(Volume("st", "", "ReadWriteOnce", kOfDriver) + Claim("data", "  volumeName: st\n"));
  EXPECT_FALSE(Binding("st"));
  const std::optional<StorageStatus> claim =
      manager().storage().StatusOf({ObjectKind::kPersistentVolumeClaim, "default", "data"});
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->reason, "PersistentVolume st, which it names, is given to nobody: " + why);
  const std::optional<PersistentVolumeView> view = manager().storage().FindPersistentVolume("st");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->reason, why);
  operations().being_deleted.clear();
  manager().events().RetryStorage("old");  // the deletion has ended
  Pass(seconds(1));
  EXPECT_TRUE(Binding("st"));
}

TEST_F(PersistentVolumesTest, ADiskThatIsPulledOutUnderAPodIsNamed) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  ASSERT_EQ(Phase("a"), "Ready");
  manager().events().DeviceVanished({"/dev/vdc"});
  EXPECT_EQ(Problem("a"), "");
  manager().events().DeviceVanished({"/dev/disk/by-id/x", "/dev/vdb"});
  EXPECT_TRUE(Problem("a").starts_with("DeviceGone: device /dev/vdb has left the node"));
  EXPECT_EQ(Phase("a"), "Ready") << "its mounts are there still";
  EXPECT_EQ(host_parts.events.back(), "a VolumeConditionAbnormal");
  manager().events().DeviceAppeared({"/dev/vdb"});
  EXPECT_EQ(Problem("a"), "");
}

TEST_F(PersistentVolumesTest, WhoWatchesAPodHearsThatItsDiskWasPulledOut) {
  Deliver(Storage() + PodManifest("a", {kUse}) + PodManifest("b", {kData}));
  const auto told = std::make_shared<std::vector<PodUid>>();
  manager().observers().Add([told](const PodUid& pod) { told->push_back(pod); });
  manager().events().DeviceVanished({"/dev/vdb"});
  EXPECT_EQ(*told, std::vector<PodUid>{PodUid("a")});
}

TEST_F(PersistentVolumesTest, AVolumeThatIsToBeTriedAgainIsTriedAtOnceAndNoOtherIs) {
  operations().FailNext("mount", Key("a", "disk"),
                        Error::NotApplied(Code::kFailedPrecondition, "is held back"), 9);
  Deliver(Storage() + PodManifest("a", {kUse}));
  Pass(seconds(60));
  const size_t tried = operations().Count("mount", Key("a", "disk"));
  ASSERT_GT(tried, 1u);
  EXPECT_FALSE(manager().events().RetryStorage("other")) << "there is nothing of that name";
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "disk")), tried);
  EXPECT_TRUE(manager().events().RetryStorage("disk"));
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "disk")), tried + 1);
}

// A pod whose disk was not mounted at its path once waited for the back-off.
TEST_F(PersistentVolumesTest, AMountAtOrAboveAVolumesPathEndsTheBackOffOfItsSetUp) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOnce", "local: {path: /mnt/disks/d1}") + Claim("data");
  const Error other = Error::NotApplied(Code::kFailedPrecondition, "is another directory");
  operations().FailNext("mount", Key("a", "disk"), other, 9);
  Deliver(storage + PodManifest("a", {kUse}));
  Pass(seconds(60));
  const auto tries = [&] { return operations().Count("mount", Key("a", "disk")); };
  size_t tried = tries();
  ASSERT_GT(tried, 1u);
  for (const char* elsewhere : {"/mnt/disks/d", "/mnt/disks/d1/below", "/mnt/disks/d10"}) {
    manager().events().MountsChangedElsewhere({elsewhere});
    Settle();
    EXPECT_EQ(tries(), tried) << elsewhere;
  }
  for (const char* at : {"/mnt/disks/d1", "/mnt", "/"}) {
    manager().events().MountsChangedElsewhere({"/elsewhere", at});
    Settle();
    EXPECT_EQ(tries(), ++tried) << at;
  }
}

TEST_F(PersistentVolumesTest, AMountThatComesWhileTheSetUpRunsIsNotForgotten) {
  operations().Hang(Key("a", "disk"));
  Deliver(Volume("disk", "", "ReadWriteOnce", "local: {path: /mnt/d1}") + Claim("data") +
          PodManifest("a", {kUse}));
  ASSERT_EQ(operations().Count("mount", Key("a", "disk")), 1u);
  manager().events().MountsChangedElsewhere({"/mnt/d1"});
  operations().FailNext("mount", Key("a", "disk"),
                        Error::NotApplied(Code::kFailedPrecondition, "is another directory"), 1);
  operations().Release(Key("a", "disk"));
  Settle();
  EXPECT_EQ(operations().Count("mount", Key("a", "disk")), 2u) << "it had looked before";
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, ADiskThatAppearsIsMountedAtOnceAndNotAfterTheBackOff) {
  operations().FailNext("mount_device", OperationKey(kDevice),
                        Error::NotApplied(Code::kNotFound, "no such device"), 9);
  Deliver(Storage() + PodManifest("a", {kUse}));
  Pass(seconds(60));
  const size_t tried = DeviceCalls("mount_device");
  manager().events().DeviceAppeared({"/dev/vdc", "/dev/disk/by-id/other"});
  Settle();
  EXPECT_EQ(DeviceCalls("mount_device"), tried) << "another disk";
  manager().events().DeviceAppeared({"/dev/disk/by-id/x", "/dev/vdb"});
  Settle();
  EXPECT_EQ(DeviceCalls("mount_device"), tried + 1);
  Deliver("");
  Settle();
  manager().events().DeviceAppeared({"/dev/vdb"});
  Settle();
  EXPECT_EQ(DeviceCalls("mount_device"), tried + 1) << "nobody wants it any more";
}

// The command said "tried now", and the device waited for its back-off.
TEST_F(PersistentVolumesTest, ARetryOfOneVolumeTriesItsDeviceAtOnce) {
  operations().FailNext("mount_device", OperationKey(kDevice),
                        Error::NotApplied(Code::kNotFound, "no such device"), 9);
  Deliver(Storage() + PodManifest("a", {kUse}));
  Pass(seconds(60));
  const size_t tried = DeviceCalls("mount_device");
  ASSERT_TRUE(manager().pod_commands().RetryVolume(Key("a", "disk")).ok());
  Settle();
  EXPECT_EQ(DeviceCalls("mount_device"), tried + 1);
}

// 300 local volumes on one dead mount took a thread each, and their pods did not say for what.
TEST_F(PersistentVolumesTest, ADeviceThatWaitsForItsFilesystemSaysSoAndIsGivenUpWithItsPod) {
  const OperationKey device(kDevice);
  operations().Hang(device);
  operations().waits_for[device] = {"filesystem 0:7 has 4 workers that do not answer", true};
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_EQ(Problem("a"), "WaitForWorker: filesystem 0:7 has 4 workers that do not answer");
  EXPECT_FALSE(operations().given_up.contains(device));
  ASSERT_TRUE(Delete("a"));
  EXPECT_TRUE(operations().given_up.contains(device));
}

// A volume whose driver is away: the pod whose operation waits says so, and so does the one whose
// operation cannot even wait.
TEST_F(PersistentVolumesTest, APodSaysForWhatTheOperationWaitsThatHasItsDevice) {
  const LaneWait away{"CSI driver x is gone since 10:00: refused", true, kWaitForDriver};
  operations().Hang(Key("a", "disk"));
  operations().Hang(Key("b", "disk"));
  operations().waits_for[OperationKey(Key("a", "disk"))] = away;
  operations().owners[kDevice] = OperationKey(Key("a", "disk"));
  Deliver(Storage() + PodManifest("a", {kUse}) + PodManifest("b", {kUse}));
  EXPECT_EQ(Problem("a"), "WaitForDriver: " + away.text);
  EXPECT_EQ(Problem("b"),
            "WaitForDriver: another operation has the device, and waits: " + away.text);
  // Once it is the administrator, and once whoever runs the driver: it depended on the pod.
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, kWhoeverRunsTheDriver);
  EXPECT_EQ(View("b").volumes.at(0).problem->who_must_act, kWhoeverRunsTheDriver);
  operations().Release(Key("b", "disk"));
  Settle();
  EXPECT_EQ(Problem("b"), "") << "it has its volume, whatever the other one waits for";
}

TEST_F(PersistentVolumesTest, TheBindingIsOnRecordBeforeTheDeviceAndTheDeviceBeforeTheBind) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  ASSERT_EQ(DeviceCalls("mount_device"), 1u);
  ASSERT_EQ(operations().calls.size(), 2u);
  EXPECT_EQ(operations().calls[0].operation, "mount_device");
  EXPECT_EQ(operations().calls[1].operation, "mount");
  EXPECT_EQ(operations().calls[1].mount->unique_name, kDevice);
  EXPECT_TRUE(operations().calls[1].mount->has_device);
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.claim_uid, "claim-data");
  const PodView view = View("a");
  EXPECT_EQ(view.phase, "Ready");
  EXPECT_EQ(view.volumes.at(0).spec, SpecName("disk"));
  EXPECT_EQ(view.volumes.at(0).pod_volumes, (std::vector<std::string>{"data"}));
  EXPECT_EQ(view.volumes.at(0).claim, "default/data");
  EXPECT_EQ(view.volumes.at(0).persistent_volume, "disk");
  EXPECT_EQ(view.volumes.at(0).device_state, "DeviceMounted");
}

TEST_F(PersistentVolumesTest, AnUnrecordedBindingIsNotActedOn) {
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1, kClaimBindingRecordKind);
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_TRUE(ProblemHas("a", "its binding is being recorded")) << Problem("a");
  Pass(seconds(5));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, AClaimThatIsNotBoundSaysWhyAndWhoMustAct) {
  Deliver(PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "error processing PVC default/data: there is no such claim"))
      << Problem("a");
  Deliver(Claim("data") + PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "PVC is not bound: ")) << Problem("a");
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "an administrator");
  EXPECT_EQ(Phase("a"), "Pending");
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, TwoPodsShareTheDeviceAndTheLastOneTakesItAway) {
  const std::string a = PodManifest("a", {kUse});
  const std::string b = PodManifest("b", {kUse});
  Deliver(Storage() + a + b);
  EXPECT_EQ(DeviceCalls("mount_device"), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "Ready");
  Deliver(Storage() + b);
  EXPECT_EQ(Phase("a"), "gone");
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  Deliver(Storage());
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
  EXPECT_EQ(operations().calls.back().operation == "remove" ||
                operations().calls.back().operation == "unmount_device",
            true);
  EXPECT_TRUE(node.devices.empty());
  EXPECT_TRUE(node.present.empty());
  EXPECT_TRUE(Binding());  // the claim is still there
}

TEST_F(PersistentVolumesTest, ADeviceStaysWhileAPodMayHaveSomethingOfIt) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  operations().FailNext("unmount", Key("a", "disk"),
                        Error::MaybeApplied(Code::kDeadlineExceeded, "hangs"), 2);
  Deliver(Storage());
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  Pass(seconds(10));
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(PersistentVolumesTest, AFailedDeviceIsTheProblemOfItsPodsAndIsTriedAgain) {
  operations().FailNext("mount_device", OperationKey(kDevice),
                        Error::NotApplied(Code::kFailedPrecondition, "the disk is not blank"), 1);
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_EQ(Problem("a"), "MountDevice: the disk is not blank");
  EXPECT_NE(View("a").volumes.at(0).problem->next_try_unix_ms, 0);
  EXPECT_EQ(operations().Count("mount"), 0u);
  Pass(seconds(2));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, ASecondPodIsRefusedAReadWriteOncePodVolumeUntilTheFirstHasLeft) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  Deliver(storage + PodManifest("a", {kUse}));
  Deliver(storage + PodManifest("a", {kUse}) + PodManifest("b", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_TRUE(ProblemHas("b",
                         "volume uses the ReadWriteOncePod access mode and is already in use by "
                         "another pod (default/a)"))
      << Problem("b");
  Deliver(storage + PodManifest("b", {kUse}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(DeviceCalls("mount_device"), 1u);
}

// The rows of pods' volumes go with the power; without them the first pod to come had the volume.
TEST_F(PersistentVolumesTest, APowerLossDoesNotChangeWhichPodHasAReadWriteOncePodVolume) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  const std::string first = PodManifest("z", {kUse});
  const std::string second = PodManifest("a", {kUse});
  Deliver(storage + first);
  LeaveDevice(VolumeState::kDeviceMounted, "z");
  StartAgent("boot-2");
  Deliver(storage + second + first);
  Pass(seconds(5));
  EXPECT_EQ(Phase("z"), "Ready");
  EXPECT_TRUE(ProblemHas("a", "already in use by another pod (default/z)")) << Problem("a");
  Deliver(storage + second);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, APodThatNeverGotItAgainGivesAReadWriteOncePodVolumeFreeWhenItGoes) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  Deliver(storage + PodManifest("z", {kUse}));
  LeaveDevice(VolumeState::kDeviceMounted, "z");
  StartAgent("boot-2");
  operations().FailNext("mount", Key("z", "disk"),
                        Error::NotApplied(Code::kNotFound, "no such volume"), 100);
  Deliver(storage + PodManifest("a", {kUse}) + PodManifest("z", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "already in use by another pod (default/z)")) << Problem("a");
  Deliver(storage + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, AVolumeThatAPodHasWhichNoRecordKnowsIsNobodys) {
  LeaveDevice(VolumeState::kDeviceMounted, "gone");
  StartAgent();
  Deliver(Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod") +
          PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(agent_->restored_devices.size(), 1u);
  EXPECT_TRUE(agent_->restored_devices.front().only_pod.empty());
}

TEST_F(PersistentVolumesTest, ARunningPodKeepsItsVolumeWhenClaimAndVolumeAreTakenFromTheSources) {
  removal_deletes = false;
  StartAgent();
  Deliver(Storage() + PodManifest("a", {kUse}));
  Deliver(PodManifest("a", {kUse}));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_TRUE(Binding());
  EXPECT_EQ(Phase("a"), "Ready");
  LeaveRecords();
  StartAgent();
  Deliver(PodManifest("a", {kUse}));
  Pass(seconds(5));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  EXPECT_TRUE(Binding());
  Deliver("");
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
  EXPECT_TRUE(Binding()) << "nobody has deleted the claim";
  EXPECT_EQ(DeviceCalls("forget_device"), 0u);
  ASSERT_TRUE(DeleteClaim("data") && DeleteVolume("disk"));
  EXPECT_FALSE(Binding());
  EXPECT_EQ(DeviceCalls("forget_device"), 1u);
}

TEST_F(PersistentVolumesTest, ANewAgentVerifiesTheDeviceBeforeThePods) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  LeaveRecords();
  StartAgent();
  Settle();
  EXPECT_TRUE(operations().calls.empty());
  Deliver(Storage() + PodManifest("a", {kUse}));
  ASSERT_EQ(operations().calls.size(), 2u);
  EXPECT_EQ(operations().calls[0].operation, "mount_device");
  EXPECT_EQ(operations().calls[1].operation, "mount");
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, ADeviceThatIsLeftIsUnmountedOnlyWhenEverySourceHasDelivered) {
  LeaveDevice(VolumeState::kMountingDevice);
  StartAgent();
  Settle();
  DeliverFailure();
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  Deliver(Storage());
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
}

TEST_F(PersistentVolumesTest, AnUnreadableDeviceRecordKeepsEverybodyOff) {
  store.Corrupt(kDeviceRecordKind, kDevice.str(), "checksum");
  StartAgent();
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_TRUE(ProblemHas("a", "left alone until it is repaired")) << Problem("a");
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "an administrator");
}

TEST_F(PersistentVolumesTest, AReleasedVolumeIsRecycledOnceAndThenFree) {
  const std::string recycled = Volume("disk", "  persistentVolumeReclaimPolicy: Recycle\n",
                                      "ReadWriteOnce", "hostPath: {path: /srv/data}");
  Deliver(recycled + Claim("data") + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  Deliver(recycled + PodManifest("a", {kUse}));
  EXPECT_EQ(operations().Count("reclaim"), 0u);  // a pod has it
  Deliver(recycled);
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding());
  Deliver(recycled + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

TEST_F(PersistentVolumesTest, ARetainedVolumeIsNotGivenToAnotherClaim) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  Deliver(Volume("disk"));
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
  Deliver(Volume("disk") + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_TRUE(ProblemHas("b", "PVC is not bound")) << Problem("b");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
}

TEST_F(PersistentVolumesTest, ADeletedVolumeIsGoneWhateverItsManifestSays) {
  const std::string deleted = Volume("disk", "  persistentVolumeReclaimPolicy: Delete\n");
  Deliver(deleted + Claim("data") + PodManifest("a", {kUse}));
  Deliver(deleted);
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding()) << "the volume has ended, which its manifest does not undo";
  StartAgent();
  Deliver(deleted + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  Deliver("");
  EXPECT_FALSE(Binding());
}

TEST_F(PersistentVolumesTest, AFailedReclaimIsTriedAgainAlsoByTheNextAgent) {
  const std::string recycled = Volume("disk", "  persistentVolumeReclaimPolicy: Recycle\n");
  Deliver(recycled + Claim("data") + PodManifest("a", {kUse}));
  operations().FailNext("reclaim", ReclaimKey("disk"),
                        Error::MaybeApplied(Code::kUnavailable, "no pod"), 1);
  Deliver(recycled);
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReclaimFailed);
  StartAgent();
  Deliver(recycled);
  Pass(seconds(5));
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding());
}

TEST_F(PersistentVolumesTest, AGenericEphemeralVolumeHasAClaimOfItsOwnWhichLeavesWithThePod) {
  const std::string use =
      "data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: "
      "{requests: {storage: 1Gi}}}}}";
  Deliver(Volume("disk") + PodManifest("a", {use}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(View("a").volumes.at(0).claim, "default/a-data");
  Deliver(Volume("disk"));
  EXPECT_EQ(Phase("a"), "gone");
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
}

TEST_F(PersistentVolumesTest, AClaimWithTheNameOfAPodsOwnTakesNeitherItsUidNorItsVolume) {
  const std::string objects =
      Volume("disk") +
      PodManifest("a", {"data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
                        "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"});
  Deliver(objects);
  ASSERT_EQ(Phase("a"), "Ready");
  const std::string uid = Binding()->binding.claim_uid;
  EXPECT_EQ(
      manager().storage().PodOfClaim({ObjectKind::kPersistentVolumeClaim, "default", "a-data"}),
      PodUid("a"));
  Deliver(objects + Claim("a-data"));
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(Phase("a"), "Ready") << Problem("a");
    ASSERT_TRUE(Binding());
    EXPECT_EQ(Binding()->binding.claim_uid, uid);
    EXPECT_EQ(Binding()->pod_uid, PodUid("a"));
    StartAgent();
    Deliver(objects + Claim("a-data"));
  }
  Deliver(Volume("disk") + Claim("a-data"));
  EXPECT_EQ(Phase("a"), "gone");
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased) << "the pod's claim ends with it";
}

TEST_F(PersistentVolumesTest, AClaimThatWasThereBeforeAPodIsNotItsGenericEphemeralVolume) {
  const std::string objects = Volume("disk") + Claim("a-data");
  Deliver(objects);
  ASSERT_TRUE(Binding());
  Deliver(objects +
          PodManifest("a", {"data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
                            "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"}));
  EXPECT_TRUE(ProblemHas("a", "PVC default/a-data was not created for pod default/a"))
      << Problem("a");
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_EQ(Binding()->binding.claim_uid, "claim-a-data");
}

TEST_F(PersistentVolumesTest, AVolumeOfAnotherNodeAndOneOfTheWrongModeAreRefused) {
  const std::string block = Volume("disk", "  volumeMode: Block\n");
  Deliver(block + Claim("data", "  volumeMode: Block\n") + PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "volume data has volumeMode Block, but is specified in volumeMounts"))
      << Problem("a");
  EXPECT_TRUE(operations().calls.empty());
}

TEST_F(PersistentVolumesTest, ABlockVolumeIsMappedForEachPodAndItsDeviceLeavesLast) {
  const std::string storage =
      Volume("disk", "  volumeMode: Block\n") + Claim("data", "  volumeMode: Block\n");
  const auto pod = [](const std::string& name) {
    std::string text = PodManifest(name, {kUse});
    const std::string mounts = "volumeMounts:\n    - {name: data, mountPath: /mnt/data}";
    return text.replace(text.find(mounts), mounts.size(),
                        "volumeDevices: [{name: data, devicePath: /dev/xvda}]");
  };
  Deliver(storage + pod("a") + pod("b"));
  EXPECT_EQ(Phase("a"), "Ready") << Problem("a");
  EXPECT_EQ(DeviceCalls("mount_device"), 1u);
  EXPECT_EQ(operations().Count("map"), 2u);
  EXPECT_EQ(operations().Count("mount"), 0u);
  const VolumeView volume = View("a").volumes.at(0);
  EXPECT_TRUE(volume.is_block);
  EXPECT_EQ(volume.state, "Mapped");
  EXPECT_EQ(volume.device_path, "/dev/fake");
  Deliver(storage + pod("b"));
  EXPECT_EQ(operations().Count("unmap"), 1u);
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  Deliver(storage);
  EXPECT_EQ(Phase("b"), "gone");
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
}

TEST_F(PersistentVolumesTest, TwoVolumesOfAPodThatNameOneClaimAreOneOnTheNode) {
  Deliver(Storage() + PodManifest("a", {kUse, "more: persistentVolumeClaim: {claimName: data}"}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("mount"), 1u);
  EXPECT_EQ(View("a").volumes.at(0).pod_volumes, (std::vector<std::string>{"data", "more"}));
}

// Of a thousand claims a decision takes 20 ms. While as many pods were deleted, one was made every
// 50 ms, and half of the agent's processor time went there.
TEST(RestOfDecisionTest, DecisionsThatTakeLongAreSeldom) {
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(0)), milliseconds(50));
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(5)), milliseconds(50));
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(20)), milliseconds(200));
}

TEST(RestOfDecisionTest, AProcessThatWasStoppedDoesNotWaitForHours) {
  EXPECT_EQ(RestOfDecision(milliseconds(50), std::chrono::hours(1)), seconds(2));
}

}  // namespace
}  // namespace volumed
