// On the real daemon: nobody's data is deleted with another one's volume, whatever the paths say.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::storage_guard_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{64} << 20;

class StorageGuardTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["host-path-root"] = "[" + volumes() + "]";
    settings["node-name"] = "n1";
    ASSERT_EQ(::mkdir(volumes().c_str(), 0755), 0);
  }
  std::string volumes() const { return scratch() + "/volumes"; }
  static std::string Volume(const std::string& name, const std::string& source,
                            const std::string& policy, const std::string& mode = "Filesystem") {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " + name +
           "}\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
           "  volumeMode: " +
           mode + "\n  persistentVolumeReclaimPolicy: " + policy + "\n" + source +
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  volumeMode: " + mode +
           "\n  volumeName: " + name + "\n  resources: {requests: {storage: 1Gi}}\n";
  }
  static std::string HostPath(const std::string& path) {
    return "  hostPath: {path: " + path + "}\n";
  }
  static std::string Local(const std::string& path) {
    return "  local: {path: " + path +
           "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n";
  }
  static std::string PodOn(const std::string& claim, bool block = false) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + claim +
           ", namespace: default, uid: uid-" + claim +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, " +
           (block ? "volumeDevices: [{name: data, devicePath: /dev/d}]"
                  : "volumeMounts: [{name: data, mountPath: /d}]") +
           "}\n  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " + claim + "}\n";
  }
  // Two loop devices of one file, and an agent.
  void StartBesideTwins() {
    ASSERT_TRUE(MakeImage(scratch() + "/image", kDiskBytes));
    one_.emplace(scratch() + "/image");
    two_.emplace(scratch() + "/image");
    ASSERT_TRUE(one_->valid() && two_->valid());
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  void TearDown() override {
    AgentTest::TearDown();
    one_.reset();
    two_.reset();
  }
  // A pod of the claim was here, and has left.
  void UseOnce(const std::string& claim) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(claim)));
    ASSERT_TRUE(WaitPhase(claim, "Ready")) << Ctl({"explain", claim}).output;
    ASSERT_TRUE(Delete("Pod", claim).ok());
    ASSERT_TRUE(WaitGone(claim)) << Ctl({"explain", claim}).output;
  }
  void RunOn(const std::string& host_path) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: runs, namespace: default, uid: uid-runs}\n"
        "spec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - {name: c, image: x, "
        "volumeMounts: [{name: data, mountPath: /d}]}\n  volumes:\n"
        "  - {name: data, hostPath: {path: " +
        host_path + "}}\n"));
    ASSERT_TRUE(WaitPhase("runs", "Ready")) << Ctl({"explain", "runs"}).output;
  }
  bool VolumeSays(const std::string& volume, const std::string& text) {
    return Eventually(kPatience, [&] {
      return Ctl({"describe", "pv", volume}).output.find(text) != std::string::npos ||
             Ctl({"events", "pv/" + volume}).output.find(text) != std::string::npos;
    });
  }
  std::string Told(const std::string& volume) {
    return Ctl({"describe", "pv", volume}).output + Ctl({"events", "pv/" + volume}).output;
  }
  bool PodSays(const std::string& pod, const std::string& text) {
    return Eventually(kPatience, [&] {
      return Ctl({"explain", pod}).output.find(text) != std::string::npos;
    });
  }
  void MakeDirectory(const std::string& path) { ASSERT_EQ(::mkdir(path.c_str(), 0755), 0) << path; }
  static std::string OwnerOf(const std::string& path) {
    char owner[256];
    const ssize_t size = ::getxattr(path.c_str(), "trusted.volumed.owner", owner, sizeof(owner));
    return size < 0 ? "" : std::string(owner, static_cast<size_t>(size));
  }

  std::optional<LoopDevice> one_;
  std::optional<LoopDevice> two_;
};

TEST_F(StorageGuardTest, DeletingAClaimDoesNotDeleteTheDataOfAVolumeInsideItsDirectory) {
  const std::string outer = volumes() + "/x";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer + "/sub"));
  WriteText(outer + "/sub/precious", "data");
  ASSERT_EQ(::symlink((outer + "/sub").c_str(), (scratch() + "/link").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("outer", HostPath(outer), "Delete") +
                                  Volume("inner", HostPath(scratch() + "/link"), "Retain")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("outer"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "outer").ok());
  EXPECT_TRUE(VolumeSays("outer", "persistent volume inner")) << Told("outer");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(VolumeSays("outer", "persistent volume inner")) << Told("outer");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  // Once the other volume is no more, the claim's wish is done.
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "inner").ok());
  ASSERT_TRUE(Delete("PersistentVolume", "inner").ok());
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(outer); })) << Told("outer");
}

// It was emptied while the pod was Ready: the new agent looked where the link led by then.
TEST_F(StorageGuardTest, ARunningPodKeepsWhatItsLinkLedToBeforeTheAgentWasKilled) {
  const std::string outer = volumes() + "/x";
  const std::string link = scratch() + "/link";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(scratch() + "/other"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("v", HostPath(outer), "Delete")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer + "/sub"));
  WriteText(outer + "/sub/precious", "data");
  ASSERT_EQ(::symlink((outer + "/sub").c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(RunOn(link));
  // Led elsewhere, then away: each before a start, the second with a delete that was refused.
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::symlink((scratch() + "/other").c_str(), link.c_str()), 0);
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("runs", "Ready")) << Ctl({"explain", "runs"}).output;
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "volume data of pod uid-runs")) << Told("v");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  KillAgent();
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(VolumeSays("v", "volume data of pod uid-runs")) << Told("v");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  // Nothing keeps the claim's wish once the pod is gone.
  ASSERT_TRUE(Delete("Pod", "runs").ok());
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(outer); })) << Told("v");
}

// It was emptied while the pod was Ready, for all that was known of it was where it had been.
TEST_F(StorageGuardTest, ARunningPodKeepsWhatSomebodyMovedIntoADeletedVolume) {
  const std::string outer = volumes() + "/x";
  const std::string given = scratch() + "/given";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(given));
  WriteText(given + "/precious", "data");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("v", HostPath(outer), "Delete")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  ASSERT_NO_FATAL_FAILURE(RunOn(given));
  ASSERT_EQ(::rename(given.c_str(), (outer + "/sub").c_str()), 0);
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "volume data of pod uid-runs")) << Told("v");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(VolumeSays("v", "volume data of pod uid-runs")) << Told("v");
  EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
  ASSERT_TRUE(Delete("Pod", "runs").ok());
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(outer); })) << Told("v");
}

// From inside of a bind mount nobody sees what lies around what is bound.
TEST_F(StorageGuardTest, AMovedVolumeThatMayHoldABoundOneKeepsThat) {
  const std::string bound = volumes() + "/bound";
  const std::string kept = scratch() + "/kept";
  for (const std::string& path : {bound, kept, scratch() + "/real", scratch() + "/real/v"}) {
    ASSERT_NO_FATAL_FAILURE(MakeDirectory(path));
  }
  ASSERT_EQ(::mount((scratch() + "/real").c_str(), bound.c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("v", HostPath(bound + "/v"), "Delete") +
                                  Volume("kept", HostPath(kept), "Retain")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  ASSERT_NO_FATAL_FAILURE(UseOnce("kept"));
  const std::string moved = scratch() + "/moved";
  ASSERT_EQ(::rename(kept.c_str(), moved.c_str()), 0);
  ASSERT_EQ(::rename((scratch() + "/real").c_str(), (moved + "/real").c_str()), 0);
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "whether persistent volume kept has storage in the way"))
      << Told("v");
  EXPECT_TRUE(Exists(moved + "/real/v"));
  // Where it can be told, nothing keeps the claim's wish.
  ASSERT_EQ(::rename(moved.c_str(), kept.c_str()), 0);
  ASSERT_EQ(::rename((kept + "/real").c_str(), (scratch() + "/real").c_str()), 0);
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(bound + "/v"); })) << Told("v");
  EXPECT_EQ(::umount2(bound.c_str(), MNT_DETACH), 0);
}

TEST_F(StorageGuardTest, AnotherDirectoryAtTheSamePathIsNotDeleted) {
  const std::string path = volumes() + "/x";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(path));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("v", HostPath(path), "Delete")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  EXPECT_NE(OwnerOf(path), "");
  KillAgent();
  ASSERT_EQ(::rename(path.c_str(), (volumes() + "/away").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(path));
  WriteText(path + "/precious", "data");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "another directory")) << Told("v");
  EXPECT_EQ(ReadText(path + "/precious"), "data");
}

TEST_F(StorageGuardTest, StorageThatIsMarkedAsAnotherClaimsIsNotDeleted) {
  const std::string path = volumes() + "/x";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(path));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("v", HostPath(path), "Delete")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  ASSERT_EQ(::setxattr(path.c_str(), "trusted.volumed.owner", "later", 5, 0), 0);
  WriteText(path + "/precious", "data");
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "is marked as storage of claim later")) << Told("v");
  EXPECT_EQ(ReadText(path + "/precious"), "data");
  ASSERT_EQ(::removexattr(path.c_str(), "trusted.volumed.owner"), 0);
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(path); })) << Told("v");
}

TEST_F(StorageGuardTest, ADiskThatAPodHasRawIsNotFormattedUnderAnotherName) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_NO_FATAL_FAILURE(StartBesideTwins());
  const LoopDevice& one = *one_;
  const LoopDevice& two = *two_;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("raw", Local(one.path()), "Retain", "Block") +
                                  Volume("formatted", Local(two.path()), "Retain")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("raw", true)));
  ASSERT_TRUE(WaitPhase("raw", "Ready")) << Ctl({"explain", "raw"}).output;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("formatted")));
  EXPECT_TRUE(PodSays("formatted", "persistent volume raw"))
      << Ctl({"explain", "formatted"}).output;
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(PodSays("formatted", "persistent volume raw"))
      << Ctl({"explain", "formatted"}).output;
  ASSERT_TRUE(Delete("Pod", "raw").ok());
  ASSERT_TRUE(WaitGone("raw"));
  EXPECT_TRUE(PodSays("formatted", "on record as that of PersistentVolume raw"))
      << Ctl({"explain", "formatted"}).output;
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "raw").ok());
  ASSERT_TRUE(Delete("PersistentVolume", "raw").ok());
  EXPECT_TRUE(WaitPhase("formatted", "Ready", kPatience * 3))
      << Ctl({"explain", "formatted"}).output;
  // And the other way round: what is mounted is not handed out raw.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("raw", Local(one.path()), "Retain", "Block")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("raw", true)));
  EXPECT_TRUE(PodSays("raw", "persistent volume formatted")) << Ctl({"explain", "raw"}).output;
  ASSERT_TRUE(Delete("Pod", "raw").ok());
  ASSERT_TRUE(Delete("Pod", "formatted").ok());
  ASSERT_TRUE(WaitGone("raw"));
  ASSERT_TRUE(WaitGone("formatted"));
}

// Their two superblocks have ruined the filesystem, and fsck has mended it while it was mounted.
TEST_F(StorageGuardTest, TwoLoopDevicesOfOneFileAreNotMountedAtTheSameTime) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_NO_FATAL_FAILURE(StartBesideTwins());
  const LoopDevice& one = *one_;
  const LoopDevice& two = *two_;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("first", Local(one.path()), "Retain") +
                                  Volume("again", Local(one.path()), "Retain") +
                                  Volume("second", Local(two.path()), "Retain")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("first")));
  ASSERT_TRUE(WaitPhase("first", "Ready")) << Ctl({"explain", "first"}).output;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("second")));
  EXPECT_TRUE(PodSays("second", "persistent volume first")) << Ctl({"explain", "second"}).output;
  EXPECT_TRUE(PodSays("second", "persistent volume second")) << Ctl({"explain", "second"}).output;
  // The very same device has one superblock.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("again")));
  EXPECT_TRUE(WaitPhase("again", "Ready")) << Ctl({"explain", "again"}).output;
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(PodSays("second", "persistent volume first") ||
              PodSays("second", "persistent volume again"))
      << Ctl({"explain", "second"}).output;
  for (const char* pod : {"first", "again"}) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Ctl({"explain", pod}).output;
  }
  EXPECT_TRUE(WaitPhase("second", "Ready", kPatience * 3)) << Ctl({"explain", "second"}).output;
  ASSERT_TRUE(Delete("Pod", "second").ok());
  ASSERT_TRUE(WaitGone("second"));
  // The administrator has the other one.
  const std::string mounted = scratch() + "/mounted";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(mounted));
  ASSERT_EQ(::mount(one.path().c_str(), mounted.c_str(), "ext4", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("second")));
  EXPECT_TRUE(PodSays("second", "somebody has " + one.path())) << Ctl({"explain", "second"}).output;
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("first")));
  EXPECT_TRUE(WaitPhase("first", "Ready")) << Ctl({"explain", "first"}).output;
  EXPECT_EQ(::umount(mounted.c_str()), 0);
  for (const char* pod : {"first", "second"}) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Ctl({"explain", pod}).output;
  }
}

// What nobody can read is storage all the same: a Recycle has emptied it.
TEST_F(StorageGuardTest, AVolumeWhoseObjectIsDamagedOrLostIsNotDeletedWithTheOneAroundIt) {
  for (const bool lost : {false, true}) {
    const std::string name = lost ? "lost" : "damaged";
    const std::string outer = volumes() + "/" + name;
    ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer));
    ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer + "/sub"));
    WriteText(outer + "/sub/precious", "data");
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    const std::string inner = Volume("inner", HostPath(outer + "/sub"), "Retain");
    // It has no claim that could tell what it was.
    const std::string object = inner.substr(0, inner.find("---\n", 4));
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume(name, HostPath(outer), "Delete") + object));
    ASSERT_NO_FATAL_FAILURE(UseOnce(name));
    KillAgent();
    const std::string file = root() + "/volumed/objects/persistentvolume..inner.json";
    ASSERT_EQ(lost ? ::unlink(file.c_str()) : ::truncate(file.c_str(), 20), 0) << file;
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Delete("PersistentVolumeClaim", name).ok());
    EXPECT_TRUE(VolumeSays(name, "nobody knows what storage PersistentVolume inner has"))
        << Told(name);
    EXPECT_TRUE(VolumeSays(name, file)) << Told(name);
    EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
    // Now it is known, and in the way.
    ASSERT_NO_FATAL_FAILURE(ApplyOk(object));
    EXPECT_TRUE(VolumeSays(name, "persistent volume inner")) << Told(name);
    EXPECT_EQ(ReadText(outer + "/sub/precious"), "data");
    ASSERT_TRUE(Delete("PersistentVolume", "inner").ok());
    EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(outer); })) << Told(name);
    KillAgent();
  }
}

TEST_F(StorageGuardTest, ADeletionGoesOnOnceTheVolumeThatNobodyCanReadIsDeletedByCommand) {
  const std::string path = volumes() + "/v";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(path));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const std::string inner = Volume("inner", HostPath(volumes() + "/else"), "Retain");
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Volume("v", HostPath(path), "Delete") + inner.substr(0, inner.find("---\n", 4))));
  KillAgent();
  const std::string file = root() + "/volumed/objects/persistentvolume..inner.json";
  ASSERT_EQ(::truncate(file.c_str(), 20), 0) << file;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  // Whatever loses nothing goes on.
  ASSERT_NO_FATAL_FAILURE(UseOnce("v"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  EXPECT_TRUE(VolumeSays("v", "nobody knows what storage PersistentVolume inner has")) << Told("v");
  EXPECT_TRUE(Exists(path));
  ASSERT_TRUE(Delete("PersistentVolume", "inner").ok());
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(path); })) << Told("v");
}

// The first of them was formatted as the second.
TEST_F(StorageGuardTest, ADiskOnRecordAsABlockVolumesIsNotFormattedUnderAnotherNameWithoutItsPod) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(scratch() + "/image", kDiskBytes));
  const LoopDevice disk(scratch() + "/image");
  ASSERT_TRUE(disk.valid());
  const std::string link = scratch() + "/link";
  ASSERT_EQ(::symlink(disk.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("raw", Local(link), "Retain", "Block") +
                                  Volume("second", Local(disk.path()), "Retain")));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("raw", true)));
  ASSERT_TRUE(WaitPhase("raw", "Ready")) << Ctl({"explain", "raw"}).output;
  ASSERT_TRUE(Delete("Pod", "raw").ok());
  ASSERT_TRUE(WaitGone("raw"));
  // Its record tells what it was without its path.
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("second")));
  EXPECT_TRUE(PodSays("second", "on record as that of PersistentVolume raw"))
      << Ctl({"explain", "second"}).output;
  EXPECT_TRUE(PodSays("second", "persistent volume second"));
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(PodSays("second", "on record as that of PersistentVolume raw"))
      << Ctl({"explain", "second"}).output;
  ASSERT_TRUE(Delete("Pod", "second").ok());
  ASSERT_TRUE(WaitGone("second"));
}

TEST_F(StorageGuardTest, AFilesystemOnRecordIsNotHandedOutRawUnderAnotherNameWithoutItsPod) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(scratch() + "/image", kDiskBytes));
  const LoopDevice disk(scratch() + "/image");
  const LoopDevice twin(scratch() + "/image");
  ASSERT_TRUE(disk.valid() && twin.valid());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("mounted", Local(disk.path()), "Retain") +
                                  Volume("again", Local(disk.path()), "Retain") +
                                  Volume("raw", Local(twin.path()), "Retain", "Block")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("mounted"));
  ASSERT_NO_FATAL_FAILURE(UseOnce("again"));  // of the same mode
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("raw", true)));
  EXPECT_TRUE(PodSays("raw", "on record as that of PersistentVolume"))
      << Ctl({"explain", "raw"}).output;
  ASSERT_TRUE(Delete("Pod", "raw").ok());
  ASSERT_TRUE(WaitGone("raw"));
}

TEST_F(StorageGuardTest, ADiskThatCameUpAtAnotherVolumesPathIsNotRecycledForThatOne) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  ASSERT_TRUE(MakeImage(scratch() + "/image", kDiskBytes));
  const LoopDevice disk(scratch() + "/image");
  ASSERT_TRUE(disk.valid());
  ASSERT_EQ(std::system(("mkfs.ext4 -q " + disk.path()).c_str()), 0);
  const std::string one = volumes() + "/d1";
  const std::string two = volumes() + "/d2";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(one));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(two));
  ASSERT_EQ(::mount(disk.path().c_str(), one.c_str(), "ext4", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Volume("a", HostPath(one), "Retain") + Volume("b", HostPath(two), "Recycle")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("a"));
  WriteText(one + "/precious", "data");
  KillAgent();
  ASSERT_EQ(::umount(one.c_str()), 0);
  ASSERT_EQ(::mount(disk.path().c_str(), two.c_str(), "ext4", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b")));
  EXPECT_TRUE(PodSays("b", "on record as that of PersistentVolume a"))
      << Ctl({"explain", "b"}).output;
  EXPECT_EQ(OwnerOf(two), "") << "it is not marked as that claim's either";
  ASSERT_TRUE(Delete("Pod", "b").ok());
  ASSERT_TRUE(WaitGone("b"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "b").ok());
  EXPECT_TRUE(VolumeSays("b", "on record as that of PersistentVolume a")) << Told("b");
  EXPECT_EQ(ReadText(two + "/precious"), "data");
  EXPECT_EQ(::umount(two.c_str()), 0);
}

TEST_F(StorageGuardTest, ADirectoryThatWasMovedIntoAnotherVolumesIsNotRecycledWithThat) {
  const std::string one = volumes() + "/d1";
  const std::string two = volumes() + "/d2";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(one));
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(two));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Volume("a", HostPath(one), "Retain") + Volume("b", HostPath(two), "Recycle")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("a"));
  ASSERT_NO_FATAL_FAILURE(UseOnce("b"));
  WriteText(one + "/precious", "data");
  const std::string moved = two + "/kept";
  ASSERT_EQ(::rename(one.c_str(), moved.c_str()), 0);
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "b").ok());
  EXPECT_TRUE(VolumeSays("b", "on record as that of PersistentVolume a")) << Told("b");
  EXPECT_EQ(ReadText(moved + "/precious"), "data");
  // It is back in its place: the claim's wish is done, and nothing of it goes.
  ASSERT_EQ(::rename(moved.c_str(), one.c_str()), 0);
  WriteText(two + "/other", "data");
  EXPECT_TRUE(Eventually(kPatience * 3, [&] { return !Exists(two + "/other"); })) << Told("b");
  EXPECT_EQ(ReadText(one + "/precious"), "data");
}

TEST_F(StorageGuardTest, TheFileOfADetachedLoopDeviceIsNotRecycledWithItsDirectory) {
  if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  const std::string outer = volumes() + "/x";
  const std::string image = outer + "/image";
  const std::string link = scratch() + "/disk";
  ASSERT_NO_FATAL_FAILURE(MakeDirectory(outer));
  ASSERT_TRUE(MakeImage(image, kDiskBytes));
  LoopDevice disk(image);
  ASSERT_TRUE(disk.valid());
  ASSERT_EQ(::symlink(disk.path().c_str(), link.c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("disk", Local(link), "Retain")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("disk"));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume("outer", HostPath(outer), "Recycle")));
  ASSERT_NO_FATAL_FAILURE(UseOnce("outer"));
  KillAgent();
  disk.Detach();
  ASSERT_EQ(::unlink(link.c_str()), 0);
  ASSERT_EQ(::rename(image.c_str(), (outer + "/renamed").c_str()), 0);
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "outer").ok());
  EXPECT_TRUE(VolumeSays("outer", "on record as that of PersistentVolume disk")) << Told("outer");
  EXPECT_TRUE(Exists(outer + "/renamed"));
}

}  // namespace
}  // namespace volumed::storage_guard_test
