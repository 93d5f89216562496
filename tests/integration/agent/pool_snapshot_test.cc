// Snapshots of claims in the node's own pool on the real daemon: VolumeSnapshots, claims that are
// made of them, and the same by hand.
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "integration/agent/pool_fixture.h"

namespace volumed::pool_test {
namespace {

class PoolSnapshotTest : public PoolTest {
 protected:
  void TearDown() override {
    PoolTest::TearDown();
    if (disk_ != nullptr) ::umount2(pool().c_str(), MNT_DETACH);
  }
  // A pool whose filesystem shares blocks.
  void MakeXfsPool() {
    ASSERT_NO_FATAL_FAILURE(NeedMkfs("xfs"));
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(MakePool());
    ASSERT_TRUE(MakeImage(scratch() + "/disk.img", int64_t{2} << 30));
    disk_ = std::make_unique<LoopDevice>(scratch() + "/disk.img");
    ASSERT_TRUE(disk_->valid());
    ASSERT_EQ(RunCommand({"mkfs.xfs", "-q", disk_->path()}).exit_status, 0);
    ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), "xfs", 0, ""), 0);
  }
  static std::string SnapshotOf(const std::string& name, const std::string& claim) {
    return "---\napiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata:\n"
           "  name: fast\n  annotations: {snapshot.storage.kubernetes.io/is-default-class: "
           "\"true\"}\ndriver: pool.volumed.io\ndeletionPolicy: Delete\n"
           "---\napiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\n"
           "metadata: {name: " +
           name + ", namespace: default}\nspec: {source: {persistentVolumeClaimName: " + claim +
           "}}\n";
  }
  static std::string ClaimOf(const std::string& name, const std::string& snapshot,
                             const std::string& size = "32Mi") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: fast\n  dataSource: {apiGroup: snapshot.storage.k8s.io, "
           "kind: VolumeSnapshot, name: " +
           snapshot + "}\n  resources: {requests: {storage: " + size + "}}\n";
  }
  bool WaitReadyToUse(const std::string& snapshot) {
    return Eventually(kPatience, [&] {
      return Ctl({"get", "volumesnapshots", snapshot}).output.find("true") != std::string::npos;
    });
  }
  // A device that is listed, once it is a volume: its id.
  void StartWithListedDevice(std::string* id) {
    ASSERT_NO_FATAL_FAILURE(MakePool());
    ASSERT_TRUE(MakeImage(scratch() + "/device", int64_t{64} << 20));
    device_ = std::make_unique<LoopDevice>(scratch() + "/device");
    ASSERT_TRUE(device_->valid());
    settings["static-volumes"] = "{db: " + device_->path() + "}";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Eventually(kPatience, [&] {
      const std::string volumes = Ctl({"get", "pool-volumes"}).output;
      const size_t at = volumes.find("\nv-");
      if (at != std::string::npos) *id = volumes.substr(at + 1, volumes.find(' ', at) - at - 1);
      return at != std::string::npos;
    }));
  }
  // A claim that is bound to the volume of this id by name.
  static std::string ClaimOfVolume(const std::string& claim, const std::string& id) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pvc-db}\nspec:\n"
           "  capacity: {storage: 64Mi}\n  accessModes: [ReadWriteOnce]\n"
           "  persistentVolumeReclaimPolicy: Retain\n"
           "  csi: {driver: pool.volumed.io, volumeHandle: " +
           id + "}\n---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + claim +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n"
           "  storageClassName: \"\"\n  volumeName: pvc-db\n"
           "  resources: {requests: {storage: 64Mi}}\n";
  }
  size_t Cuts() const {
    size_t count = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(pool() + "/cuts", error)) {
      count += entry.is_directory() ? 1 : 0;
    }
    return count;
  }
  void DeleteAllAndSeeNothingIsLeft() {
    for (const char* claim : {"data", "restored"}) {
      ASSERT_TRUE(Delete("PersistentVolumeClaim", claim).ok());
    }
    EXPECT_EQ(NothingIsLeft(), "");
    EXPECT_TRUE(Eventually(kPatience, [this] { return Cuts() == 0; }));
  }

 private:
  std::unique_ptr<LoopDevice> disk_;
  std::unique_ptr<LoopDevice> device_;
};

// On the disk of the temporary files, which may share no blocks: cut while nobody has it.
TEST_F(PoolSnapshotTest, AClaimOfASnapshotHasWhatWasThereThenOverKills) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "then");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SnapshotOf("first", "data")));
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitReadyToUse("first")) << Describe("volumesnapshot", "first");
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "later");

  ASSERT_NO_FATAL_FAILURE(ApplyOk(ClaimOf("restored", "first", "48Mi")));
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "restored"));
  EXPECT_EQ(ReadText(FileOf("b", "restored")), "then");
  EXPECT_EQ(ReadText(FileOf("a", "data")), "later");
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitReadyToUse("first")) << Describe("volumesnapshot", "first");

  ASSERT_EQ(Ctl({"delete", "volumesnapshot", "first"}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [this] { return Cuts() == 0; }))
      << Describe("volumesnapshot", "first");
  EXPECT_EQ(ReadText(FileOf("b", "restored")), "then");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_NO_FATAL_FAILURE(DeleteAllAndSeeNothingIsLeft());
}

TEST_F(PoolSnapshotTest, AVolumeOfXfsIsCutWhileItsPodHasItAndBothAreMountedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(MakeXfsPool());
  if (IsSkipped()) return;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class("xfs") + Claim("data", "300Mi")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "then");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SnapshotOf("first", "data")));
  ASSERT_TRUE(WaitReadyToUse("first")) << Describe("volumesnapshot", "first");
  WriteText(FileOf("a", "data"), "later");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ClaimOf("restored", "first", "300Mi")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "restored"));
  EXPECT_EQ(ReadText(FileOf("b", "restored")), "then");
  EXPECT_EQ(ReadText(FileOf("a", "data")), "later");
  EXPECT_EQ(Loops().size(), 2u);
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_EQ(Ctl({"delete", "volumesnapshot", "first"}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(DeleteAllAndSeeNothingIsLeft());
}

// A device is copied, and only while nobody can write to it: until then both ways of asking say
// who.
TEST_F(PoolSnapshotTest, AClaimOfAListedDeviceIsCutOnceItsPodHasLeftItAndIsRestored) {
  std::string id;
  ASSERT_NO_FATAL_FAILURE(StartWithListedDevice(&id));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + ClaimOfVolume("data", id)));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "then");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SnapshotOf("first", "data")));
  const std::string who = "a pod of this node has it for writing";
  EXPECT_TRUE(DescribeHas("volumesnapshot", "first", who)) << Describe("volumesnapshot", "first");
  const CommandResult refused = Ctl({"snapshot", "create", "data", "--name", "by-hand"});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_NE(refused.output.find(who), std::string::npos) << refused.output;
  EXPECT_EQ(Cuts(), 0u);

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_TRUE(WaitReadyToUse("first")) << Describe("volumesnapshot", "first");
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "later");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ClaimOf("restored", "first", "64Mi")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("b", "restored"));
  EXPECT_EQ(ReadText(FileOf("b", "restored")), "then");
  EXPECT_EQ(ReadText(FileOf("a", "data")), "later");

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_EQ(Ctl({"delete", "volumesnapshot", "first"}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(DeleteAllAndSeeNothingIsLeft());
  // `delete pv` told people to have the device deleted by `pool delete`, which never does that.
  const CommandResult deleted = Ctl({"delete", "pv", "pvc-db"});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_EQ(deleted.output.find("pool delete"), std::string::npos) << deleted.output;
  EXPECT_NE(deleted.output.find("volumed never deletes that"), std::string::npos) << deleted.output;
}

// A claim with a snapshot that was never made waits, and says for what; deleting both ends it.
TEST_F(PoolSnapshotTest, AClaimOfASnapshotThatIsNotThereWaitsAndSaysSo) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + ClaimOf("restored", "first")));
  EXPECT_TRUE(DescribeHas("pvc", "restored", "first")) << Describe("pvc", "restored");
  EXPECT_TRUE(Volumes().empty());
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "restored").ok());
  EXPECT_EQ(NothingIsLeft(), "");
}

TEST_F(PoolSnapshotTest, ASnapshotByHandIsMadeRestoredAndDeleted) {
  ASSERT_NO_FATAL_FAILURE(MakePool());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class() + Claim("data")));
  ASSERT_NO_FATAL_FAILURE(ApplyPod("a", "data"));
  WriteText(FileOf("a", "data"), "then");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  const CommandResult made = Ctl({"snapshot", "create", VolumeOf("data"), "--name", "by-hand"});
  ASSERT_EQ(made.exit_status, 0) << made.output;
  const size_t at = made.output.find("s-");
  ASSERT_NE(at, std::string::npos) << made.output;
  const std::string id = made.output.substr(at, made.output.find_first_of(" \n\"", at) - at);
  EXPECT_EQ(Ctl({"snapshot", "watch", id}).exit_status, 0);
  ASSERT_NO_FATAL_FAILURE(Restart());
  // An agent that is ready may open its pools a moment later.
  CommandResult restored = Ctl({"snapshot", "restore", id, "copy"});
  for (int i = 0; i < 100 && restored.output.find("was not opened yet") != std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    restored = Ctl({"snapshot", "restore", id, "copy"});
  }
  ASSERT_EQ(restored.exit_status, 0) << restored.output;
  EXPECT_NE(restored.output.find("\"kind\":\"PersistentVolume\""), std::string::npos)
      << restored.output;
  EXPECT_EQ(Volumes().size(), 2u);
  const CommandResult deleted = Ctl({"snapshot", "delete", id});
  EXPECT_EQ(deleted.exit_status, 0) << deleted.output;
  EXPECT_EQ(Cuts(), 0u);
}

}  // namespace
}  // namespace volumed::pool_test
