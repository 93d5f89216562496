// Which devices of block volumes a new agent opens again, and when.
#include <gtest/gtest.h>

#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

const UniqueVolumeName kRawDevice("kubernetes.io/local-volume/raw");
const OperationKey kRawKey(kRawDevice);

class PinnedDevicesTest : public ManagerTest {
 protected:
  // The rows that the operation layer writes for a pod with the device of a block volume.
  void LeaveMapped(const std::string& pod) {
    PutPodRecord(pod);
    DeviceRecord device;
    device.key = kRawDevice;
    device.plugin_name = "kubernetes.io/local-volume";
    device.spec = SpecName("raw");
    device.device_mount_path =
        std::string(kRoot) + "/plugins/kubernetes.io~local-volume/volumeDevices/raw";
    device.state = VolumeState::kDeviceMounted;
    device.boot_id = BootId("boot-1");
    device.is_block = true;
    device.mapped = MappedDeviceRecord{DeviceIdentity{}, "/dev/vdb", BootId("boot-1")};
    ASSERT_TRUE(store.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
    PodVolumeRecord volume;
    volume.key = Key(pod, "raw");
    volume.pod_namespace = "default";
    volume.pod_name = pod;
    volume.plugin_name = device.plugin_name;
    volume.state = VolumeState::kMapped;
    volume.boot_id = BootId("boot-1");
    volume.unique_name = kRawDevice;
    volume.has_device = true;
    volume.is_block = true;
    ASSERT_TRUE(store.Put(EncodeRecord(volume), kPodVolumeRecordDurability).ok());
    node.present.insert(volume.key);
    node.devices.insert(kRawDevice);
  }
  void Restart(const std::string& boot_id = "boot-1") {
    StartAgent(boot_id);
    Settle();
  }
};

TEST_F(PinnedDevicesTest, AHeldPodThatLeavesHasItsDeviceOpenWithTheNextAgentToo) {
  LeaveMapped("a");
  watch.processes[42] = 1;
  Restart();
  ASSERT_TRUE(HoldPid("a", 42).ok());
  EXPECT_TRUE(Delete("a"));
  Restart();
  Deliver("");
  EXPECT_EQ(Phase("a"), "Terminating");
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 1u);
  EXPECT_EQ(View("a").volumes.at(0).device_path, "/dev/fake");
  EXPECT_EQ(operations().Count("unmap"), 0u);

  watch.EndProcess(42);
  Settle();
  EXPECT_EQ(operations().Count("unmap"), 1u);
  EXPECT_EQ(operations().Count("unmount_device", kRawKey), 1u);
  EXPECT_EQ(Phase("a"), "gone");
}

TEST_F(PinnedDevicesTest, ADeviceIsOpenedBeforeAnySourceSaysWhetherThePodIsWanted) {
  LeaveMapped("a");
  Restart();
  DeliverFailure();
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 1u);
}

TEST_F(PinnedDevicesTest, ADeviceWithADamagedRecordIsOpenedAndLeftAloneOtherwise) {
  LeaveMapped("a");
  store.Corrupt(kDeviceRecordKind, kRawDevice.str(), "its checksum is wrong");
  Restart();
  Deliver("");
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 1u);
  EXPECT_EQ(operations().Count("unmount_device", kRawKey), 0u);
}

TEST_F(PinnedDevicesTest, AnOpenThatFailsIsTriedAgainUntilItSucceeds) {
  LeaveMapped("a");
  StartAgent();
  operations().FailNext("pin_device", kRawKey, Error::NotApplied(Code::kNotFound, "no such device"),
                        2);
  Settle();
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 1u);
  EXPECT_EQ(View("a").volumes.at(0).device_path, "");
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 3u);
  EXPECT_EQ(View("a").volumes.at(0).device_path, "/dev/fake");
}

TEST_F(PinnedDevicesTest, AnOpenThatDoesNotAnswerKeepsNoPodFromLeaving) {
  LeaveMapped("a");
  StartAgent();
  operations().Hang(kRawKey);
  Settle();
  Deliver("");
  EXPECT_EQ(operations().Count("unmap"), 1u);
  EXPECT_TRUE(operations().given_up.contains(kRawKey));
  EXPECT_EQ(operations().Count("unmount_device", kRawKey), 0u);
  operations().Release(kRawKey);
  Settle();
  EXPECT_EQ(operations().Count("unmount_device", kRawKey), 1u);
}

TEST_F(PinnedDevicesTest, AfterARebootNoPodHasADeviceThatCouldBeOpened) {
  LeaveMapped("a");
  Restart("boot-2");
  EXPECT_EQ(operations().Count("pin_device", kRawKey), 0u);
}

TEST_F(PinnedDevicesTest, WhoWaitsForADeviceThatAPodHasRawWasToldThatNobodyHasToAct) {
  LeaveMapped("a");
  watch.processes[42] = 1;
  Restart();
  ASSERT_TRUE(HoldPid("a", 42).ok());
  EXPECT_TRUE(Delete("a"));
  Deliver(
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: raw}\nspec:\n"
      "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
      "  local: {path: /dev/vdb}\n  nodeAffinity: {required: {nodeSelectorTerms: "
      "[{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}\n"
      "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
      "default, uid: claim-data}\nspec:\n  accessModes: [ReadWriteOnce]\n"
      "  volumeName: raw\n  resources: {requests: {storage: 1Gi}}\n" +
      PodManifest("b", {kUse}));
  const std::optional<ProblemView> problem = View("b").volumes.at(0).problem;
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->step, "WaitForUnmount") << problem->message;
  EXPECT_NE(problem->message.find("; pod default/a has it"), std::string::npos) << problem->message;
  EXPECT_EQ(problem->who_must_act, "the owner of pod default/a");
  EXPECT_EQ(operations().Count("mount_device"), 0u);
}

}  // namespace
}  // namespace volumed
