// Canaries in every secret place: they may be in the pod's volumes and in the agent's own object
// directory, and nowhere else that anybody can read.
#include <sys/stat.h>
#include <filesystem>
#include <fstream>

#include "integration/agent/example_pod.h"

namespace volumed::secrets_test {
namespace {

namespace fs = std::filesystem;

constexpr char kCanary[] = "CANARY-7f3a9c1e5b2d";
constexpr char kCanaryBase64[] = "Q0FOQVJZLTdmM2E5YzFlNWIyZA==";  // the same, as `data` has it

class SecretsTest : public ExamplePodTest {
 protected:
  static std::string CanaryObjects() {
    return Replaced(ExampleObjects("hello"), "not-a-real-password", kCanary);
  }
  // The canary in both encodings, and the signature of the pod's own token.
  void Expose(const std::string& where, const std::string& text) {
    for (const std::string& needle : needles_) {
      EXPECT_EQ(text.find(needle), std::string::npos) << "a secret is in " << where;
    }
  }
  void LearnToken() {
    const std::string token = ReadText(ExampleVolume("projected", "everything") + "/token");
    ASSERT_GT(token.size(), 100u);
    needles_.push_back(token.substr(token.rfind('.') + 1));
  }
  void ExposeProcesses() {
    std::vector<pid_t> pids = Workers();
    pids.push_back(agent_pid());
    for (const pid_t pid : pids) {
      const std::string proc = "/proc/" + std::to_string(pid);
      Expose(proc + "/cmdline", ReadText(proc + "/cmdline"));
      Expose(proc + "/environ", ReadText(proc + "/environ"));
    }
  }
  void ExposeAnswers(const std::string& pod) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"explain", pod},
                                               {"get", "pods", "-o", "json"},
                                               {"get", "volumes", "-o", "yaml"},
                                               {"sources", "-o", "json"},
                                               {"oci", pod, "main"},
                                               {"status"}}) {
      const CommandResult result = Ctl(words);
      Expose("volumectl " + words[0], result.output);
    }
    Expose("/metrics", HttpGet("/metrics"));
    Expose("/readyz", HttpGet("/readyz"));
  }
  // Every file below the agent's own directory; the object directory is the one exception.
  void ExposeFiles() {
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root() + "/volumed")) {
      if (!entry.is_regular_file()) continue;
      ++files;
      const std::string path = entry.path().string();
      if (path.starts_with(root() + "/volumed/objects/")) {
        EXPECT_EQ(static_cast<int>(entry.status().permissions()), 0600) << path;
      } else if (!path.starts_with(root() + "/volumed/tokens/")) {
        Expose(path, ReadText(path));
      }
    }
    EXPECT_GT(files, 3u);
    struct stat stat {};
    ASSERT_EQ(::stat((root() + "/volumed/objects").c_str(), &stat), 0);
    EXPECT_EQ(stat.st_mode & 07777, 0700u);
    Expose("the log", ReadText(log_path()));
  }

  std::vector<std::string> needles_ = {kCanary, kCanaryBase64};
};

TEST_F(SecretsTest, NoSecretLeavesTheVolumesInSuccessNorFailure) {
  settings["log-level"] = "debug";
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_NO_FATAL_FAILURE(ApplyOk(CanaryObjects() + "\n---\n" + ExamplePod(host_path())));
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  ASSERT_EQ(ReadText(ExampleVolume("secret", "secret") + "/password"), kCanary);
  ASSERT_NO_FATAL_FAILURE(LearnToken());
  ExposeAnswers("web");
  ExposeProcesses();

  // A set-up that fails: a key that the secret does not have.
  const std::string failing =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: failing, uid: uid-failing}\nspec:\n"
      "  containers: [{name: main, image: i, volumeMounts: [{name: s, mountPath: /s}]}]\n"
      "  volumes: [{name: s, secret: {secretName: web-secret, items: [{key: absent, path: a}]}}]\n";
  ASSERT_NO_FATAL_FAILURE(ApplyOk(failing));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const std::optional<v1::Pod> pod = FindPod("failing");
    return pod && pod->volumes_size() == 1 && pod->volumes(0).has_problem();
  }));
  ExposeAnswers("failing");

  // Manifests that are refused, by hand and as a file.
  const std::string refused = std::string("apiVersion: v1\nkind: Secret\nmetadata: {name: bad}\n") +
                              "data: {key: \"" + kCanary + " is not base64\"}\n";
  WriteText(scratch() + "/refused.yaml", refused);
  const CommandResult applied = Ctl({"apply", "-f", scratch() + "/refused.yaml"});
  EXPECT_EQ(applied.exit_status, 7);
  Expose("volumectl apply", applied.output);
  WriteText(manifests() + "/refused.yaml", refused);
  WriteText(manifests() + "/broken.yaml",
            std::string("apiVersion: v1\nkind: Secret\nstringData: {a: [") + kCanary + "\n");
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return ReadText(log_path()).find("broken.yaml") != std::string::npos &&
           ReadText(log_path()).find("refused.yaml") != std::string::npos;
  }));
  ExposeAnswers("web");

  // A restart reads records and objects anew.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("web", "Ready"));
  ExposeAnswers("web");
  ExposeProcesses();
  ASSERT_TRUE(Delete("Pod", "web").ok());
  ASSERT_TRUE(Delete("Pod", "failing").ok());
  ASSERT_TRUE(WaitGone("web"));
  ASSERT_TRUE(WaitGone("failing"));
  ExposeFiles();
  EXPECT_EQ(StopAgent(), 0);
  ExposeFiles();
}

}  // namespace
}  // namespace volumed::secrets_test
