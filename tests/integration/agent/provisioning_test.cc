// Volumes that the real daemon makes for claims, keeps over kills, protects, and deletes.
#include <sys/stat.h>

#include <string>
#include <thread>

#include "integration/agent/agent_fixture.h"

namespace volumed::provisioning_test {
namespace {

class ProvisioningTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["host-path-root"] = "[" + volumes() + "]";
    settings["enable-hostpath-provisioner"] = "true";
  }

  std::string volumes() const { return scratch() + "/volumes"; }
  static std::string Class(const std::string& name, const std::string& policy,
                           const std::string& mode) {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + name +
           "}\nprovisioner: kubernetes.io/host-path\nreclaimPolicy: " + policy +
           "\nvolumeBindingMode: " + mode + "\n";
  }
  static std::string Claim(const std::string& name, const std::string& storage_class) {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: " +
           storage_class + "\n  resources: {requests: {storage: 100Mi}}\n";
  }
  static std::string PodOn(const std::string& name, const std::string& claim) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n"
           "  containers:\n  - {name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}\n"
           "  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: " +
           claim + "}\n";
  }
  std::string Describe(const std::string& kind, const std::string& name) {
    return Ctl({"describe", kind, name}).output;
  }
  bool DescribeHas(const std::string& kind, const std::string& name, const std::string& text) {
    return Eventually(kPatience,
                      [&] { return Describe(kind, name).find(text) != std::string::npos; });
  }
  // "pvc-<uid>", of a claim that is bound.
  std::string VolumeOf(const std::string& claim) {
    std::string volume;
    Eventually(kPatience, [&] {
      const std::string text = Describe("pvc", claim);
      const size_t at = text.find("pvc-");
      if (text.find("Bound") == std::string::npos || at == std::string::npos) return false;
      volume = text.substr(at, text.find_first_of(" \n", at) - at);
      return true;
    });
    return volume;
  }
  void Restart() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
  void DeletePodAndWait(const std::string& pod) {
    ASSERT_TRUE(Delete("Pod", pod).ok());
    ASSERT_TRUE(WaitGone(pod)) << Ctl({"explain", pod}).output;
  }
  bool IsGone(const std::string& path) {
    return Eventually(kPatience, [&] { return !Exists(path); });
  }
};

TEST_F(ProvisioningTest, AVolumeIsMadeUsedKeptOverKillsAndDeletedWithItsClaim) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Class("made", "Delete", "WaitForFirstConsumer") + Claim("data", "made")));
  EXPECT_TRUE(DescribeHas("pvc", "data", "Pending")) << Describe("pvc", "data");
  EXPECT_FALSE(Exists(volumes())) << "nobody uses it yet";
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("a", "data")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  const std::string volume = VolumeOf("data");
  ASSERT_FALSE(volume.empty()) << Describe("pvc", "data");
  const std::string place = volumes() + "/" + volume;
  struct stat found {};
  ASSERT_EQ(::stat(place.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0750u);
  WriteText(place + "/kept.txt", "kept");
  EXPECT_NE(Ctl({"events", "pvc/data"})
                .output.find("Successfully provisioned volume " + volume +
                             " using kubernetes.io/host-path"),
            std::string::npos)
      << Describe("pod", "a");

  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  EXPECT_EQ(VolumeOf("data"), volume);
  const std::string described = Describe("pv", volume);
  EXPECT_NE(described.find("provisioned"), std::string::npos) << described;
  EXPECT_NE(described.find("default/data"), std::string::npos) << described;
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");

  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "data")));
  ASSERT_TRUE(WaitPhase("b", "Ready")) << Ctl({"explain", "b"}).output;
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  ASSERT_NO_FATAL_FAILURE(Restart());
  EXPECT_TRUE(IsGone(place));
  EXPECT_TRUE(Exists(volumes()));
  EXPECT_TRUE(DescribeHas("pv", volume, "no PersistentVolume")) << Describe("pv", volume);
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(ProvisioningTest, ARetainedVolumeKeepsItsDataAndIsNoOtherClaims) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class("kept", "Retain", "Immediate") + Claim("data", "kept")));
  const std::string first = VolumeOf("data");
  ASSERT_FALSE(first.empty()) << Describe("pvc", "data");
  WriteText(volumes() + "/" + first + "/kept.txt", "kept");
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
  EXPECT_TRUE(DescribeHas("pv", first, "Released")) << Describe("pv", first);
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Apply(Claim("data", "kept")).ok(); }));
  const std::string second = VolumeOf("data");
  EXPECT_NE(second, first);
  EXPECT_FALSE(second.empty());
  EXPECT_TRUE(DescribeHas("pv", first, "Released")) << Describe("pv", first);
  EXPECT_TRUE(Delete("PersistentVolume", first).ok());
  EXPECT_TRUE(DescribeHas("pv", first, "no PersistentVolume")) << Describe("pv", first);
  EXPECT_EQ(ReadText(volumes() + "/" + first + "/kept.txt"), "kept");
}

TEST_F(ProvisioningTest, AClaimThatIsDeletedWhileAPodHasItIsTerminatingUntilThePodHasLeft) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(
      ApplyOk(Class("made", "Delete", "Immediate") + Claim("data", "made") + PodOn("a", "data")));
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  const std::string place = volumes() + "/" + VolumeOf("data");
  WriteText(place + "/kept.txt", "kept");
  const CommandResult deleted = Ctl({"delete", "pvc", "data"});
  EXPECT_EQ(deleted.exit_status, 0);
  EXPECT_NE(deleted.output.find("is Terminating until this is over: used by pod default/a"),
            std::string::npos)
      << deleted.output;
  EXPECT_TRUE(DescribeHas("pvc", "data", "Terminating")) << Describe("pvc", "data");
  EXPECT_NE(Apply(Claim("data", "made")).error_message().find("object is being deleted"),
            std::string::npos);
  ASSERT_NO_FATAL_FAILURE(Restart());
  ASSERT_TRUE(WaitPhase("a", "Ready")) << Ctl({"explain", "a"}).output;
  EXPECT_TRUE(DescribeHas("pvc", "data", "Terminating")) << Describe("pvc", "data");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(PodOn("b", "data")));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"explain", "b"}).output.find("PVC is being deleted") != std::string::npos;
  })) << Ctl({"explain", "b"}).output;
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("a"));
  EXPECT_TRUE(DescribeHas("pvc", "data", "no PersistentVolumeClaim")) << Describe("pvc", "data");
  // A pod that still asks for the claim keeps its data.
  EXPECT_EQ(ReadText(place + "/kept.txt"), "kept");
  ASSERT_NO_FATAL_FAILURE(DeletePodAndWait("b"));
  EXPECT_TRUE(IsGone(place));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(ProvisioningTest, KillsAtAnyMomentLeaveOneDirectoryPerClaimOrNone) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(Class("made", "Delete", "Immediate")));
  for (int i = 0; i < 8; ++i) {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(Claim("data", "made")));
    std::this_thread::sleep_for(Milliseconds(2 * i));
    ASSERT_NO_FATAL_FAILURE(Restart());
    const std::string volume = VolumeOf("data");
    ASSERT_FALSE(volume.empty()) << Describe("pvc", "data");
    EXPECT_EQ(RunCommand({"ls", volumes()}).output, volume + "\n");
    ASSERT_TRUE(Delete("PersistentVolumeClaim", "data").ok());
    std::this_thread::sleep_for(Milliseconds(2 * i));
    ASSERT_NO_FATAL_FAILURE(Restart());
    EXPECT_TRUE(IsGone(volumes() + "/" + volume));
    ASSERT_TRUE(DescribeHas("pvc", "data", "no PersistentVolumeClaim"));
  }
}

}  // namespace
}  // namespace volumed::provisioning_test
