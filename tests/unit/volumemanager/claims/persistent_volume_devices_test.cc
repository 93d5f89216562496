// Devices of persistent volumes and the pods that share them: their order, their tries and what is
// said of them, on fake operations.
#include "unit/volumemanager/claims/persistent_volumes_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

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

TEST_F(PersistentVolumesTest, WhatAilsTheStorageUnderAPodIsSaidUntilItIsMended) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  ASSERT_EQ(Phase("a"), "Ready");
  manager().events().StorageTroubled("/dev/vdb", {"PoolUnreachable", "pool fast: it is away", 7});
  EXPECT_TRUE(Problem("a").starts_with("PoolUnreachable: pool fast: it is away")) << Problem("a");
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "an administrator");
  EXPECT_EQ(host_parts.events.back(), "a VolumeConditionAbnormal");
  const size_t events = host_parts.events.size();
  manager().events().StorageTroubled("/dev/vdc", {"PoolShort", "pool slow: it is full", 7});
  EXPECT_EQ(host_parts.events.size(), events) << "nobody has a volume there";
  manager().events().StorageMended("/dev/vdb");
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

// The same of a device that nothing attaches.
TEST_F(PersistentVolumesTest, ADeviceWasUnmountedBeforeTheClaimOfItsPodWasDecidedAfterAStart) {
  Deliver(Storage());
  ASSERT_TRUE(Binding());
  LeaveDevice(VolumeState::kMountingDevice);
  decide_claims_period = seconds(1);
  StartAgent();
  Settle();  // claims are decided without the sources
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_TRUE(operations().calls.empty()) << "nobody knows yet which pod is to have it";
  Pass(seconds(2));
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  EXPECT_EQ(DeviceCalls("mount_device"), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
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

}  // namespace
}  // namespace volumed
