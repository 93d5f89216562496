// The real daemon: who an object is, whatever its manifest says by now, and applied objects whose
// files are gone. In each case a pod's data on the disk was lost once.
#include <filesystem>
#include <string>

#include "integration/agent/agent_fixture.h"

namespace volumed::identity_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUid = "11111111-1111-4111-8111-111111111111";

class IdentityTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["removal-settle"] = "500ms";
    fs::create_directories(manifests());
  }

  static std::string PodText(const std::string& metadata, const std::string& volume) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {" + metadata +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n"
           "  - {name: c, image: x, volumeMounts: [{name: disk, mountPath: /d}]}\n"
           "  volumes:\n  - {name: disk, " +
           volume + "}\n";
  }
  static std::string EmptyDirPod(const std::string& metadata) {
    return PodText(metadata, "emptyDir: {}");
  }
  std::string Manifest(const std::string& file) const { return manifests() + "/" + file; }
  std::string UidOf(const std::string& pod) {
    const std::optional<v1::Pod> found = FindPod(pod);
    return found ? found->uid() : "no pod";
  }
  std::string DataOf(const std::string& uid) const {
    return VolumePath(uid, "empty-dir", "disk") + "/keep";
  }
  // Longer than removals settle.
  static void LetRemovalsSettle() { ::usleep(1'500'000); }
  void Restart() {
    KillAgent();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  }
};

TEST_F(IdentityTest, AUidThatIsAddedToAManifestDoesNotTakeThePodsData) {
  WriteText(Manifest("e.yaml"), EmptyDirPod("name: e"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("e-it-node", "Ready"));
  const std::string uid = UidOf("e-it-node");
  WriteText(DataOf(uid), "kept");
  WriteText(Manifest("e.yaml"), EmptyDirPod(std::string("name: e, uid: ") + kUid));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"sources"}).output.find("metadata.uid: is immutable") != std::string::npos;
  })) << Ctl({"sources"}).output;
  EXPECT_EQ(Ctl({"sources"}).output.find("going"), std::string::npos) << "it does not go";
  LetRemovalsSettle();
  EXPECT_EQ(ReadText(DataOf(uid)), "kept");
  ASSERT_NO_FATAL_FAILURE(Restart());
  LetRemovalsSettle();
  EXPECT_EQ(UidOf("e-it-node"), uid) << Ctl({"get", "pods"}).output;
  EXPECT_EQ(ReadText(DataOf(uid)), "kept");
}

TEST_F(IdentityTest, TheUidOfAManifestsPodIsRefusedToAnAppliedOne) {
  WriteText(Manifest("u.yaml"), EmptyDirPod(std::string("name: u, uid: ") + kUid));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("u", "Ready"));
  WriteText(DataOf(kUid), "kept");
  const grpc::Status refused = Apply(EmptyDirPod(std::string("name: u2, uid: ") + kUid));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS) << refused.error_message();
  EXPECT_NE(refused.error_message().find("has the uid of Pod default/u"), std::string::npos)
      << refused.error_message();
  // A second manifest is told so, and does not come first at a start.
  WriteText(Manifest("a.yaml"), EmptyDirPod(std::string("name: a, uid: ") + kUid));
  for (int start = 0; start < 2; ++start) {
    EXPECT_TRUE(Eventually(kPatience, [&] {
      return Ctl({"sources"}).output.find("is that of Pod default/u") != std::string::npos;
    })) << Ctl({"sources"}).output;
    EXPECT_EQ(UidOf("u"), kUid);
    EXPECT_EQ(UidOf("a"), "no pod");
    EXPECT_EQ(ReadText(DataOf(kUid)), "kept");
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
}

TEST_F(IdentityTest, AppliedObjectsWhoseFilesAreGoneAreKeptUntilAPersonDecides) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(EmptyDirPod("name: one") + "---\n" + EmptyDirPod("name: two") +
          "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {k: v}\n");
  ASSERT_TRUE(WaitPhase("one-it-node", "Ready"));
  ASSERT_TRUE(WaitPhase("two-it-node", "Ready"));
  const std::string one = UidOf("one-it-node");
  const std::string two = UidOf("two-it-node");
  for (const std::string& uid : {one, two}) WriteText(DataOf(uid), "kept");
  KillAgent();
  fs::rename(root() + "/volumed/objects", root() + "/volumed/objects.moved");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  LetRemovalsSettle();
  for (const std::string& uid : {one, two}) EXPECT_EQ(ReadText(DataOf(uid)), "kept");
  const std::string shown = Ctl({"sources"}).output;
  EXPECT_NE(shown.find("volumectl-apply: INCOMPLETE"), std::string::npos) << shown;
  EXPECT_NE(shown.find("Pod default/one-it-node: held"), std::string::npos) << shown;
  EXPECT_NE(shown.find("ConfigMap default/c: unknown"), std::string::npos) << shown;

  EXPECT_EQ(Ctl({"delete", "pod", "one-it-node"}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/" + one); }));
  EXPECT_EQ(ReadText(DataOf(two)), "kept");
  EXPECT_EQ(Ctl({"source", "accept", "volumectl-apply", "--yes"}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/" + two); }))
      << Ctl({"sources"}).output;
}

TEST_F(IdentityTest, TheNameOfAPodsOwnClaimIsRefusedToAnotherClaim) {
  settings["host-path-root"] = "[" + scratch() + "/volumes]";
  settings["enable-hostpath-provisioner"] = "true";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ApplyOk(
      "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
      "provisioner: kubernetes.io/host-path\n---\n" +
      PodText("name: e, uid: " + std::string(kUid),
              "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: made, accessModes: "
              "[ReadWriteOnce], resources: {requests: {storage: 10Mi}}}}}"));
  ASSERT_TRUE(WaitPhase("e", "Ready")) << Ctl({"explain", "e"}).output;
  const std::string claim =
      "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: e-disk, namespace: default}\n"
      "spec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: made\n"
      "  resources: {requests: {storage: 10Mi}}\n";
  const grpc::Status refused = Apply(claim);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS) << refused.error_message();
  // In a manifest it is not used as long as the pod has its own.
  WriteText(Manifest("claim.yaml"), claim);
  for (int start = 0; start < 2; ++start) {
    LetRemovalsSettle();
    EXPECT_TRUE(WaitPhase("e", "Ready")) << Ctl({"explain", "e"}).output;
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
  const auto provisioned = [&] {
    return std::distance(fs::directory_iterator(scratch() + "/volumes"), fs::directory_iterator());
  };
  EXPECT_EQ(provisioned(), 1);
  EXPECT_EQ(Ctl({"delete", "pod", "e"}).exit_status, 0);
  ASSERT_TRUE(WaitGone("e"));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Ctl({"get", "pvc"}).output.find("Bound") != std::string::npos;
  })) << Ctl({"get", "pvc"}).output;
}

}  // namespace
}  // namespace volumed::identity_test
