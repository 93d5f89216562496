// What is at places that a CO gave: the operations hear of it at the start, and the volume manager
// never does anything about it.
#include "operation/given_place.h"
#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/found_at_start.h"

namespace volumed {
namespace {

const std::string kTarget = "/srv/co/pod/v";
const UniqueVolumeName kPoolVolume("volumed.io/pool/v-1");

PodVolumeRecord TargetRow(const std::string& boot) {
  PodVolumeRecord record;
  record.key = TargetKey(kTarget, "v-1");
  record.plugin_name = "volumed.io/pool";
  record.state = VolumeState::kSetUp;
  record.boot_id = BootId(boot);
  record.unique_name = kPoolVolume;
  record.has_device = true;
  record.place = kTarget;
  record.place_root = "/srv/co";
  return record;
}

DeviceRecord StagedRow(const std::string& boot) {
  DeviceRecord record;
  record.key = kPoolVolume;
  record.plugin_name = "volumed.io/pool";
  record.spec = SpecName("v-1");
  record.device_mount_path = "/srv/co/stage";
  record.place_root = "/srv/co";
  record.state = VolumeState::kDeviceMounted;
  record.boot_id = BootId(boot);
  return record;
}

class TargetsAtStartTest : public ManagerTest {
 protected:
  void LeaveTarget(const std::string& boot) {
    ASSERT_TRUE(store.Put(EncodeRecord(TargetRow(boot)), kPodVolumeRecordDurability).ok());
    ASSERT_TRUE(store.Put(EncodeRecord(StagedRow(boot)), kDeviceRecordDurability).ok());
  }
};

// Nobody wants it, so the manager would have unmounted it under the pod of a CO.
TEST_F(TargetsAtStartTest, TheOperationsHaveThemAndTheManagerLeavesThemAlone) {
  LeaveTarget("boot-1");
  PutPodRecord("a");
  PutVolumeRecord("a", "data", "kubernetes.io/empty-dir", VolumeState::kSetUp, "boot-1");
  StartAgent("boot-1");
  Deliver("");
  Pass(std::chrono::hours(1));
  ASSERT_EQ(agent_->restored.size(), 2u);
  EXPECT_EQ(agent_->restored[0], TargetRow("boot-1"));
  ASSERT_EQ(agent_->restored_devices.size(), 1u);
  EXPECT_EQ(agent_->restored_devices[0], StagedRow("boot-1"));
  EXPECT_TRUE(manager().Ready());
  EXPECT_EQ(operations().Count("unmount"), 1u) << "that of the pod which nobody wants";
  EXPECT_EQ(operations().Count("unmount", Key("a", "data")), 1u);
  EXPECT_EQ(operations().Count("unmount_device"), 0u);
  EXPECT_FALSE(manager().pods().Find(TargetRow("boot-1").key.pod).has_value());
  EXPECT_EQ(store.Find(kPodVolumeRecordKind, RecordKey(TargetRow("boot-1").key)),
            EncodeRecord(TargetRow("boot-1")));
  EXPECT_EQ(store.Find(kDeviceRecordKind, RecordKey(kPoolVolume)),
            EncodeRecord(StagedRow("boot-1")));
}

TEST_F(TargetsAtStartTest, AfterARebootTheOperationsKnowWhatItHasTaken) {
  LeaveTarget("boot-0");
  StartAgent("boot-1");
  Deliver("");
  Pass(std::chrono::hours(1));
  ASSERT_EQ(agent_->restored.size(), 1u);
  EXPECT_EQ(agent_->restored[0].state, VolumeState::kSettingUp);
  EXPECT_TRUE(agent_->restored[0].uncertain);
  EXPECT_EQ(GivenPlaceOf(agent_->restored[0]), (SafePath{"/srv/co", "pod/v"}));
  EXPECT_EQ(agent_->restored_devices.size(), 1u);
  EXPECT_TRUE(operations().calls.empty());
}

// A row that this program cannot read may be one of a later program's targets.
TEST_F(TargetsAtStartTest, ARowOfALaterProgramIsLeftAlone) {
  Record row = EncodeRecord(TargetRow("boot-1"));
  ++row.version;
  ASSERT_TRUE(store.Put(row, kPodVolumeRecordDurability).ok());
  StartAgent("boot-1");
  Deliver("");
  Pass(std::chrono::hours(1));
  EXPECT_TRUE(agent_->restored.empty());
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_EQ(store.Find(row.kind, row.key), row);
}

TEST(TargetsAtStart, AreInListsOfTheirOwn) {
  MemoryRecordStore store;
  ASSERT_TRUE(store.Put(EncodeRecord(TargetRow("b")), kPodVolumeRecordDurability).ok());
  ASSERT_TRUE(store.Put(EncodeRecord(StagedRow("b")), kDeviceRecordDurability).ok());
  PodVolumeRecord of_pod;
  of_pod.key = {PodUid("a"), SpecName("data")};
  ASSERT_TRUE(store.Put(EncodeRecord(of_pod), kPodVolumeRecordDurability).ok());
  const Result<FoundAtStart> found = LoadRecordsAtStart(store);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->volumes, std::vector<PodVolumeRecord>{of_pod});
  EXPECT_TRUE(found->devices.empty());
  EXPECT_EQ(found->target_volumes, std::vector<PodVolumeRecord>{TargetRow("b")});
  EXPECT_EQ(found->target_devices, std::vector<DeviceRecord>{StagedRow("b")});
}

// Else a second target got the volume beside it, and one that is lost kept it for ever.
TEST(TargetsAtStart, AVolumeForOneTargetAloneIsItsAsLongAsARowTellsOfTheTarget) {
  FoundAtStart found;
  DeviceRecord device = StagedRow("b");
  device.only_pod = TargetRow("b").key.pod;
  found.target_devices = {device};
  found.target_volumes = {TargetRow("b")};
  DropOnlyPodsOfNobody(found);
  EXPECT_EQ(found.target_devices.front(), device);
  found.target_volumes.clear();
  DropOnlyPodsOfNobody(found);
  EXPECT_TRUE(found.target_devices.front().only_pod.empty());
}

}  // namespace
}  // namespace volumed
