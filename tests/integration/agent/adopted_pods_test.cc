// The real daemon on a root that a kubelet has left: static pods keep the uids that it gave them,
// and with these their data; data of pods that no source has is removed by a person only.
#include <sys/mount.h>

#include <filesystem>
#include <string>

#include "integration/agent/agent_fixture.h"

namespace volumed::adopted_pods_test {
namespace {

namespace fs = std::filesystem;

// As kubelet makes them for static pods: a digest of the manifest.
constexpr const char* kUid = "0f1c3d5b7a9e2468ace013579bdf2460";
constexpr const char* kOtherUid = "5b7a9e2468ace013579bdf24600f1c3d";
constexpr const char* kPod = "web-it-node";

class AdoptedPodsTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["adopt-root"] = "true";
    settings["pod-logs-dir"] = Logs();
    fs::create_directories(Logs());
    fs::create_directories(manifests());
  }

  std::string Logs() const { return scratch() + "/logs"; }
  std::string DataOf(const std::string& uid) const {
    return root() + "/pods/" + uid + "/volumes/kubernetes.io~empty-dir/disk/file";
  }
  // What a kubelet leaves of a pod with one emptyDir on disk.
  void LeavePod(const std::string& uid, const std::string& content) const {
    fs::create_directories(fs::path(DataOf(uid)).parent_path());
    fs::create_directories(root() + "/pods/" + uid + "/plugins/kubernetes.io~empty-dir/disk");
    WriteText(DataOf(uid), content);
    WriteText(root() + "/pods/" + uid + "/plugins/kubernetes.io~empty-dir/disk/ready", "");
  }
  void LeaveLogs(const std::string& uid) const {
    fs::create_directories(Logs() + "/default_" + kPod + "_" + uid + "/main");
  }
  void WriteManifest() const {
    WriteText(manifests() + "/web.yaml",
              "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n"
              "  terminationGracePeriodSeconds: 0\n  containers:\n"
              "  - {name: c, image: x, volumeMounts: [{name: disk, mountPath: /d}]}\n"
              "  volumes:\n  - {name: disk, emptyDir: {}}\n");
  }
  std::string UidOfPod() {
    const std::optional<v1::Pod> pod = FindPod(kPod);
    return pod ? pod->uid() : "no pod";
  }
  CommandResult Accept(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"source", "accept", "adopted-root"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Ctl(arguments);
  }
};

TEST_F(AdoptedPodsTest, AStaticPodKeepsTheUidThatTheKubeletGaveItAndItsData) {
  LeavePod(kUid, "of before");
  LeaveLogs(kUid);
  WriteManifest();
  for (int start = 0; start < 2; ++start) {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitPhase(kPod, "Ready")) << Ctl({"explain", kPod}).output;
    EXPECT_EQ(UidOfPod(), kUid);
    EXPECT_EQ(ReadText(DataOf(kUid)), "of before");
    EXPECT_EQ(Ctl({"sources"}).output.find("adopted-root"), std::string::npos);
    KillAgent();
  }
  // The pod goes as any other, and the next one of its name is another.
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_EQ(Ctl({"delete", "pod", kPod}).exit_status, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/" + kUid); }));
  fs::remove(manifests() + "/web.yaml");
  ASSERT_TRUE(WaitGone(kPod));
  WriteManifest();
  ASSERT_TRUE(WaitPhase(kPod, "Ready")) << Ctl({"explain", kPod}).output;
  EXPECT_NE(UidOfPod(), kUid);
}

TEST_F(AdoptedPodsTest, LogsOfTwoPodsOfOneNameTellNoUidAndTheDataOfBothStays) {
  for (const char* uid : {kUid, kOtherUid}) {
    LeavePod(uid, uid);
    LeaveLogs(uid);
  }
  WriteManifest();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const auto is_ready = [&] {
    return Ctl({"get", "pods"}).output.find("Ready") != std::string::npos;
  };
  ASSERT_TRUE(Eventually(kPatience, is_ready)) << Ctl({"get", "pods"}).output;
  // They are three: which one is meant, a person has to say.
  EXPECT_NE(Ctl({"explain", kPod}).output.find("several pods named"), std::string::npos);
  for (const char* uid : {kUid, kOtherUid}) {
    const std::string explained = Ctl({"explain", uid}).output;
    EXPECT_NE(explained.find(": Held since"), std::string::npos) << explained;
    EXPECT_EQ(ReadText(DataOf(uid)), uid);
  }
}

// What the documents tell an administrator to do before a take-over: a directory that is awaited
// keeps everything, and meanwhile one sees who would go.
TEST_F(AdoptedPodsTest, WhoWouldGoIsSeenWhileADirectoryIsAwaited) {
  LeavePod(kUid, "of before");
  LeaveLogs(kUid);
  WriteManifest();
  fs::create_directories(root() + "/pods/" + kOtherUid + "/volumes/kubernetes.io~empty-dir/disk");
  const std::string awaited = scratch() + "/go";
  settings["manifest-dir"] = "[" + manifests() + ", " + awaited + "]";
  ASSERT_NO_FATAL_FAILURE(StartAgent());
  ASSERT_TRUE(WaitPhase(kPod, "Ready")) << Ctl({"explain", kPod}).output;
  const std::string pods = Ctl({"get", "pods", "-o", "wide"}).output;
  EXPECT_NE(pods.find(kOtherUid), std::string::npos) << pods;
  const std::string explained = Ctl({"explain", kOtherUid}).output;
  for (const std::string& part :
       {std::string("WaitForSources"), std::string("no source has the pod"), awaited,
        std::string("volume disk (kubernetes.io/empty-dir)")}) {
    EXPECT_NE(explained.find(part), std::string::npos) << part << " in:\n" << explained;
  }
  EXPECT_TRUE(Exists(root() + "/pods/" + kOtherUid));
  fs::create_directory(awaited);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/" + kOtherUid); }))
      << Ctl({"sources"}).output;
  EXPECT_EQ(ReadText(DataOf(kUid)), "of before");
}

TEST_F(AdoptedPodsTest, DataOfAPodThatNoSourceHasGoesByAnAdministratorsWordOnly) {
  LeavePod(kUid, "of nobody");
  LeaveLogs(kUid);
  // One with a name that nothing tells, and one that has nothing of its own.
  LeavePod(kOtherUid, "of a stranger");
  fs::create_directories(root() + "/pods/empty/volumes/kubernetes.io~empty-dir/disk");
  for (int start = 0; start < 2; ++start) {
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/empty"); }));
    const std::string shown = Ctl({"sources"}).output;
    EXPECT_NE(shown.find("adopted-root: INCOMPLETE"), std::string::npos) << shown;
    EXPECT_NE(shown.find("Pod default/web-it-node: held"), std::string::npos) << shown;
    EXPECT_NE(shown.find(std::string("Pod with uid ") + kOtherUid + ": held"), std::string::npos)
        << shown;
    KillAgent();
  }
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  const CommandResult refused = Accept();
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_NE(refused.output.find("2 pods with mounted volumes or data on disk would go"),
            std::string::npos)
      << refused.output;
  EXPECT_EQ(ReadText(DataOf(kUid)), "of nobody");
  EXPECT_EQ(ReadText(DataOf(kOtherUid)), "of a stranger");

  EXPECT_EQ(Accept({"--yes"}).exit_status, 0);
  for (const char* uid : {kUid, kOtherUid}) {
    EXPECT_TRUE(Eventually(kPatience, [&] { return !Exists(root() + "/pods/" + uid); }))
        << Ctl({"get", "pods"}).output << ReadText(log_path());
  }
  EXPECT_EQ(Ctl({"sources"}).output.find("adopted-root"), std::string::npos);
  EXPECT_NE(Accept().exit_status, 0);
}

}  // namespace
}  // namespace volumed::adopted_pods_test
