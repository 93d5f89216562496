// A device that pods want in two ways, raw and as a filesystem, by two PersistentVolumes of one
// storage: who goes first while it is at no place.
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

const UniqueVolumeName kSharedDevice("kubernetes.io/local-volume/disk");
const OperationKey kSharedKey(kSharedDevice);

class WantedInTwoWaysTest : public ManagerTest {
 protected:
  void SetUp() override {
    attach->volume_names = {{"p", "disk"}, {"q", "disk"}};
    StartAgent();
  }

  static std::string Volume(const std::string& name, const std::string& mode) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  volumeMode: " +
           mode +
           "\n  local: {path: /dev/vdb}\n  nodeAffinity: {required: {nodeSelectorTerms: "
           "[{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " +
           name + ", namespace: default, uid: claim-" + name +
           "}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: " + mode +
           "\n  volumeName: " + name + "\n  resources: {requests: {storage: 1Gi}}\n";
  }
  static std::string Storage() { return Volume("p", "Filesystem") + Volume("q", "Block"); }
  static std::string Mounts() {
    return PodManifest("a", {"v: persistentVolumeClaim: {claimName: p}"});
  }
  static std::string HasRaw() {
    std::string text = PodManifest("b", {"v: persistentVolumeClaim: {claimName: q}"});
    const std::string mounts = "volumeMounts:\n    - {name: v, mountPath: /mnt/v}";
    return text.replace(text.find(mounts), mounts.size(),
                        "volumeDevices: [{name: v, devicePath: /dev/xvda}]");
  }
  // The PersistentVolumes as which the device was to be mounted or set up, one after another.
  std::vector<std::string> Tries() {
    std::vector<std::string> tries;
    for (const FakeVolumeOperations::Call& call : operations().calls) {
      if (call.mount_device) tries.push_back(call.mount_device->spec.name().str());
    }
    return tries;
  }
};

// After a boot, or a loss of rows, the pod that had nothing was tried first, again and again.
TEST_F(WantedInTwoWaysTest, WhoHasItByTheRowOfThePodGoesFirst) {
  PutPodRecord("b");
  PodVolumeRecord record;
  record.key = Key("b", "q");
  record.pod_namespace = "default";
  record.pod_name = "b";
  record.plugin_name = "kubernetes.io/local-volume";
  record.state = VolumeState::kMapped;
  record.boot_id = BootId("boot-1");
  record.unique_name = kSharedDevice;
  record.has_device = true;
  record.is_block = true;
  ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  node.present.insert(record.key);
  StartAgent();
  Deliver(Storage() + Mounts() + HasRaw());
  EXPECT_EQ(Tries(), std::vector<std::string>{"q"});
  EXPECT_EQ(Phase("b"), "Ready");
}

TEST_F(WantedInTwoWaysTest, WhoIsNotLetInDoesNotKeepTheOtherOut) {
  operations().fails_at["mount_device"] = kCheckPlaceStep;
  operations().FailNext("mount_device", kSharedKey,
                        Error::NotApplied(Code::kFailedPrecondition, "a lost pod has it raw"));
  Deliver(Storage() + Mounts());
  EXPECT_EQ(Tries(), std::vector<std::string>{"p"});
  Deliver(Storage() + Mounts() + HasRaw());
  Pass(std::chrono::minutes(1));
  EXPECT_EQ(Tries(), (std::vector<std::string>{"p", "q"}));
  EXPECT_EQ(Phase("b"), "Ready");
}

// It waited for itself for ever: "nobody: retried".
TEST_F(WantedInTwoWaysTest, APodThatWantsBothIsToldThatItCanHaveButOne) {
  std::string both = PodManifest("c", {"v: persistentVolumeClaim: {claimName: p}",
                                       "w: persistentVolumeClaim: {claimName: q}"});
  const std::string mount = "    - {name: w, mountPath: /mnt/w}\n";
  ASSERT_NE(both.find(mount), std::string::npos) << both;
  both.erase(both.find(mount), mount.size());
  const std::string mounts = "volumeMounts:";
  both.insert(both.find(mounts), "volumeDevices: [{name: w, devicePath: /dev/xvda}]\n    ");
  Deliver(Storage() + both);
  Pass(std::chrono::minutes(5));
  EXPECT_TRUE(Tries().empty());
  EXPECT_NE(Phase("c"), "Ready");
  const PodView view = View("c");
  ASSERT_EQ(view.volumes.size(), 2u);
  for (const VolumeView& volume : view.volumes) {
    ASSERT_TRUE(volume.problem);
    EXPECT_NE(volume.problem->message.find(
                  "are the same storage, of which a pod can have but one volumeMode"),
              std::string::npos)
        << volume.problem->message;
    EXPECT_EQ(volume.problem->who_must_act, "the owner of pod default/c");
  }
  EXPECT_TRUE(view.volumes[0].problem->message.starts_with(
      "volumes p (volumeMode Filesystem) and q (Block) "))
      << view.volumes[0].problem->message;
  Deliver(Storage() + HasRaw());
  EXPECT_EQ(Phase("b"), "Ready") << "it keeps nobody else out";
}

}  // namespace
}  // namespace volumed
