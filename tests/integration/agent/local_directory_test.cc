// A local volume's directory on the real daemon, with a real disk mounted at its path or not: what
// a claim had is what its pods get, and nothing else that lies there.
#include <sys/mount.h>
#include <sys/stat.h>

#include <optional>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"

namespace volumed::local_directory_test {
namespace {

constexpr int64_t kDiskBytes = int64_t{64} << 20;

class LocalDirectoryTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    settings["node-name"] = "n1";
    ASSERT_EQ(::mkdir(place().c_str(), 0755), 0);
    ASSERT_TRUE(MakeImage(scratch() + "/disk.img", kDiskBytes));
    disk_.emplace(scratch() + "/disk.img");
    ASSERT_TRUE(disk_->valid());
    ASSERT_EQ(RunCommand({"mkfs.ext4", "-q", disk_->path()}).exit_status, 0);
    ASSERT_NO_FATAL_FAILURE(MountDisk());
  }
  void TearDown() override {
    AgentTest::TearDown();
    disk_.reset();
  }
  std::string place() const { return scratch() + "/d1"; }
  void MountDisk() {
    ASSERT_EQ(::mount(disk_->path().c_str(), place().c_str(), "ext4", 0, nullptr), 0);
  }
  void UnmountDisk() { ASSERT_EQ(::umount2(place().c_str(), 0), 0); }
  std::string Volume() const {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: d1}\n"
           "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
           "  persistentVolumeReclaimPolicy: Retain\n  local: {path: " +
           place() +
           "}\n  nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, "
           "operator: In, values: [n1]}]}]}}\n"
           "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d1}\n"
           "spec:\n  accessModes: [ReadWriteOnce]\n  volumeName: d1\n"
           "  resources: {requests: {storage: 1Gi}}\n";
  }
  static std::string PodOn(const std::string& name) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
           "  containers: [{name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}]\n"
           "  volumes: [{name: data, persistentVolumeClaim: {claimName: d1}}]\n";
  }
  std::string DataOf(const std::string& pod) const {
    return VolumePath("uid-" + pod, "local-volume", "d1") + "/data";
  }
  std::string Explain(const std::string& pod) { return Ctl({"explain", pod}).output; }
  void DeleteAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Explain(pod);
  }
  // A pod of the claim has written to the disk, and has left.
  void UseOnce() {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume() + PodOn("first")));
    ASSERT_TRUE(WaitPhase("first", "Ready")) << Explain("first");
    WriteText(DataOf("first"), "kept");
    ASSERT_NO_FATAL_FAILURE(DeleteAndWait("first"));
  }
  bool IsRefused(const std::string& pod) {
    return Eventually(kPatience, [&] {
      return Explain(pod).find("is another directory than the one that the claim") !=
             std::string::npos;
    });
  }

  std::optional<LoopDevice> disk_;
};

TEST_F(LocalDirectoryTest, APodWhoseDiskIsNotMountedDoesNotStartOnTheMountPoint) {
  ASSERT_NO_FATAL_FAILURE(UseOnce());
  ASSERT_NO_FATAL_FAILURE(UnmountDisk());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a")));
  ASSERT_TRUE(IsRefused("a")) << Explain("a");
  EXPECT_NE(FindPod("a")->phase(), "Ready");
  EXPECT_TRUE(MountsBelow(root() + "/pods/uid-a").empty());
  std::string explained;
  // It may just be tried again.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    explained = Explain("a");
    return explained.find("an administrator") != std::string::npos;
  }));
  for (const char* part : {"ReserveStorage", "FailedPrecondition, not applied", "it was ext4",
                           "volumectl accept pv d1", "an administrator", "event Warning"}) {
    EXPECT_NE(explained.find(part), std::string::npos) << part << " in " << explained;
  }
  for (const auto& words : {std::vector<std::string>{"get", "pods", "a"},
                            std::vector<std::string>{"describe", "pod", "a"}}) {
    EXPECT_NE(Ctl(words).output.find("another directory"), std::string::npos) << Ctl(words).output;
  }
  // The identity outlives the agent.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(IsRefused("a")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(MountDisk());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(ReadText(DataOf("a")), "kept");
}

TEST_F(LocalDirectoryTest, TheMountOfItsDiskWakesThePodAndNotItsBackOff) {
  ASSERT_NO_FATAL_FAILURE(UseOnce());
  ASSERT_NO_FATAL_FAILURE(UnmountDisk());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a")));
  // From the fifth attempt on the next one is eight seconds away, and more.
  ASSERT_TRUE(Eventually(std::chrono::seconds(60), [&] {
    const std::optional<v1::Pod> pod = FindPod("a");
    return pod && pod->volumes_size() == 1 && pod->volumes(0).problem().attempts() >= 5;
  })) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(MountDisk());
  EXPECT_TRUE(WaitPhase("a", "Ready", std::chrono::seconds(4))) << Explain("a");
}

TEST_F(LocalDirectoryTest, AnotherDirectoryIsGivenOnceAnAdministratorHasAcceptedIt) {
  ASSERT_NO_FATAL_FAILURE(UseOnce());
  EXPECT_NE(Ctl({"accept", "pv", "d1"}).output.find("there is nothing to accept"),
            std::string::npos);
  EXPECT_EQ(Ctl({"accept", "pv", "nowhere"}).exit_status, 3);
  ASSERT_NO_FATAL_FAILURE(UnmountDisk());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a")));
  ASSERT_TRUE(IsRefused("a")) << Explain("a");
  const CommandResult accepted = Ctl({"accept", "pv", "d1"});
  EXPECT_EQ(accepted.exit_status, 0) << accepted.output;
  EXPECT_NE(accepted.output.find("pv d1 has its data in " + place()), std::string::npos)
      << accepted.output;
  ASSERT_TRUE(WaitPhase("a", "Ready", std::chrono::seconds(4))) << Explain("a");
  EXPECT_EQ(ReadText(DataOf("a")), "");
}

TEST_F(LocalDirectoryTest, APodThatRunsKeepsItsDirectoryWhateverIsAtThePathByNow) {
  ASSERT_NO_FATAL_FAILURE(UseOnce());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  ASSERT_NO_FATAL_FAILURE(UnmountDisk());
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
  EXPECT_EQ(ReadText(DataOf("a")), "kept");
  EXPECT_FALSE(FindPod("a")->volumes(0).has_problem()) << Explain("a");
  // "nothing to do" was all that it said.
  const std::string retried = Ctl({"retry", "a"}).output;
  EXPECT_NE(retried.find("the pod keeps the directory that it has, and " + place() +
                         " is another one by now"),
            std::string::npos)
      << retried;
  ASSERT_NO_FATAL_FAILURE(MountDisk());
  EXPECT_EQ(Ctl({"retry", "a"}).output.find("another one"), std::string::npos);
  ASSERT_NO_FATAL_FAILURE(DeleteAndWait("a"));
}

TEST_F(LocalDirectoryTest, AVolumeThatWasDeletedAndGivenAnewMayHaveAnotherDisk) {
  ASSERT_NO_FATAL_FAILURE(UseOnce());
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "d1").ok());
  ASSERT_TRUE(Delete("PersistentVolume", "d1").ok());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pv", "d1"}).exit_status == 3; }));
  ASSERT_NO_FATAL_FAILURE(UnmountDisk());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Volume() + PodOn("a")));
  EXPECT_TRUE(WaitPhase("a", "Ready")) << Explain("a");
}

}  // namespace
}  // namespace volumed::local_directory_test
