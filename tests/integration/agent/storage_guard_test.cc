// On the real daemon: nobody's data is deleted with another one's volume, whatever the paths say.
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed {
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
  // A pod of the claim was here, and has left.
  void UseOnce(const std::string& claim) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn(claim)));
    ASSERT_TRUE(WaitPhase(claim, "Ready")) << Ctl({"explain", claim}).output;
    ASSERT_TRUE(Delete("Pod", claim).ok());
    ASSERT_TRUE(WaitGone(claim)) << Ctl({"explain", claim}).output;
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
  ASSERT_TRUE(MakeImage(scratch() + "/image", kDiskBytes));
  const LoopDevice one(scratch() + "/image");
  const LoopDevice two(scratch() + "/image");
  ASSERT_TRUE(one.valid() && two.valid());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
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
  EXPECT_TRUE(WaitPhase("formatted", "Ready", kPatience * 3))
      << Ctl({"explain", "formatted"}).output;
  // And the other way round: what is mounted is not handed out raw.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("raw", true)));
  EXPECT_TRUE(PodSays("raw", "for himself") || PodSays("raw", "persistent volume formatted"))
      << Ctl({"explain", "raw"}).output;
  ASSERT_TRUE(Delete("Pod", "raw").ok());
  ASSERT_TRUE(Delete("Pod", "formatted").ok());
  ASSERT_TRUE(WaitGone("raw"));
  ASSERT_TRUE(WaitGone("formatted"));
}

}  // namespace
}  // namespace volumed
