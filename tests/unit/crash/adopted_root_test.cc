// Volumes that another agent, or a kubelet, has left on the node, and that no record knows: with
// --adopt-root they are the volumes of the pods that come back, and go with those that do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_open_iscsi.h"
#include "fakes/fake_scsi_tree.h"
#include "fakes/memory_record_store.h"
#include "unit/crash/crash_agent.h"
#include "unit/crash/crash_scenarios.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kIscsi = "iscsi: {targetPortal: 10.0.0.1, iqn: 'iqn.2026-01.lab:t', lun: 1}";
constexpr const char* kFc = "fc: {targetWWNs: [\"500a0982991b8dc5\"], lun: 1}";

struct Kind {
  const char* name;
  const char* source;
  bool is_block;
  const char* place;  // below the root: of the device, or of the pods' nodes
};

constexpr Kind kKinds[] = {
    {"IscsiFilesystem", kIscsi, false,
     "/plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-iqn.2026-01.lab:t-lun-1"},
    {"IscsiBlock", kIscsi, true,
     "/plugins/kubernetes.io/iscsi/volumeDevices/iface-default/"
     "10.0.0.1:3260-iqn.2026-01.lab:t-lun-1"},
    {"FcFilesystem", kFc, false, "/plugins/kubernetes.io/fc/500a0982991b8dc5-lun-1"},
    {"FcBlock", kFc, true, "/plugins/kubernetes.io/fc/volumeDevices/500a0982991b8dc5-lun-1"},
};

class AdoptedRootTest : public ::testing::TestWithParam<Kind> {
 protected:
  AdoptedRootTest() {
    FakeDevice disk;
    disk.fs_type = "ext4";
    disk.usage = "filesystem";
    disk.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
    disk.was_mounted = true;
    const auto target = std::make_shared<FakeIscsiTarget>();
    target->luns = {{1, "/dev/sdb"}};
    InstallFakeOpenIscsi(*world_.kernel, target);
    AddFakeLun(*world_.kernel, *target, 1, disk);
    FakeScsiTree tree(*world_.kernel);
    tree.AddHost(3);
    tree.AddRemotePort("rport-3:0-0", "0x500a0982991b8dc5");
    tree.AddDisk({.name = "sdc", .address = "3:0:0:1", .device = disk});
    const std::string mode = GetParam().is_block ? "  volumeMode: Block\n" : "";
    world_.sources[kFiles]["volume"] =
        "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: lun1}\n"
        "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
        "  persistentVolumeReclaimPolicy: Retain\n" +
        mode + "  " + GetParam().source + "\n";
    world_.sources[kFiles]["claim"] =
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\n"
        "metadata: {name: data, namespace: default, uid: claim-1}\n"
        "spec:\n  accessModes: [ReadWriteOnce]\n  volumeName: lun1\n" +
        mode + "  resources: {requests: {storage: 1Gi}}\n";
    AddPod("u-first");
  }

  void AddPod(const std::string& uid) {
    world_.sources[kFiles]["pod-" + uid] =
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + uid +
        ", namespace: default, uid: " + uid +
        "}\nspec:\n  containers:\n  - {name: main, image: x, " +
        (GetParam().is_block ? "volumeDevices: [{name: data, devicePath: /dev/x}]}\n"
                             : "volumeMounts: [{name: data, mountPath: /data}]}\n") +
        "  volumes:\n  - {name: data, persistentVolumeClaim: {claimName: data}}\n";
    world_.pods[uid].wanted = true;
  }
  void RemovePod(const std::string& uid) {
    world_.sources[kFiles].erase("pod-" + uid);
    world_.pods[uid].wanted = false;
  }
  void StartAgent() {
    agent_ = std::make_unique<CrashAgent>(world_, no_bug_, 1);
    agent_->Start();
    agent_->RunFor(std::chrono::minutes(2));
  }
  void Hear() {
    agent_->Hear();
    agent_->RunFor(std::chrono::minutes(2));
  }
  // The node, after somebody who wrote no records of ours.
  void LoseRecords() {
    agent_.reset();
    world_.store = std::make_unique<MemoryRecordStore>();
    world_.adopt_root = true;
  }
  std::string Place() const { return std::string(CrashWorld::kRoot) + GetParam().place; }
  bool IsThere(const std::string& pod) const {
    return world_.kernel->Exists(GetParam().is_block ? Place() + "/" + pod : Place());
  }
  void ExpectNothingLeft() {
    EXPECT_FALSE(world_.kernel->Exists(Place()));
    EXPECT_THAT(world_.LeftOf("u-first"), IsEmpty());
    EXPECT_THAT(FakeIscsiSessions(*world_.kernel), IsEmpty());
    EXPECT_THAT(FakeIscsiMistakes(*world_.kernel), IsEmpty());
    EXPECT_THAT(world_.violations, IsEmpty());
  }

  CrashWorld world_;
  const SeededBug no_bug_;
  std::unique_ptr<CrashAgent> agent_;
};

TEST_P(AdoptedRootTest, TheVolumeOfAPodThatComesBackIsTheOneThatWasFound) {
  StartAgent();
  ASSERT_TRUE(IsThere("u-first")) << agent_->ViewText();
  LoseRecords();
  std::vector<std::string> taken_away;
  world_.kernel->SetCallHook([&](const AnyRequest& request) {
    if (const auto* unmount = std::get_if<Unmount>(&request)) {
      taken_away.push_back(unmount->target.Display());
    }
  });
  StartAgent();
  EXPECT_THAT(agent_->ViewText(), HasSubstr("u-first Ready"));
  EXPECT_THAT(taken_away, IsEmpty());
  EXPECT_TRUE(IsThere("u-first"));
  EXPECT_THAT(world_.violations, IsEmpty());

  RemovePod("u-first");
  Hear();
  ExpectNothingLeft();
}

TEST_P(AdoptedRootTest, TheVolumeOfAPodThatIsNoMoreGoesWithItsDevice) {
  // A source that has no pod at all has lost them, and what is mounted is held.
  world_.sources[kFiles]["pod-other"] =
      "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: default, uid: u-other}\n"
      "spec:\n  containers:\n  - {name: main, image: x}\n";
  world_.pods["u-other"].wanted = true;
  StartAgent();
  ASSERT_TRUE(IsThere("u-first")) << agent_->ViewText();
  LoseRecords();
  RemovePod("u-first");
  StartAgent();
  ExpectNothingLeft();
}

// The device stays while the found pod has it, whoever else comes and goes.
TEST_P(AdoptedRootTest, TheVolumeThatWasFoundIsSharedWithTheNextPod) {
  StartAgent();
  LoseRecords();
  AddPod("u-second");
  StartAgent();
  EXPECT_THAT(agent_->ViewText(), HasSubstr("u-second Ready"));
  RemovePod("u-second");
  Hear();
  EXPECT_TRUE(IsThere("u-first"));
  EXPECT_THAT(agent_->ViewText(), HasSubstr("u-first Ready"));
  EXPECT_THAT(world_.violations, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, AdoptedRootTest, ::testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace volumed
