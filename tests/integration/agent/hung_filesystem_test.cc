// A filesystem that stops answering, under a hostPath and as the source of a subPath: nothing that
// is healthy waits for it, everything can be asked, and it heals without a human.
#include <gmock/gmock.h>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "integration/agent/example_pod.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::hung_filesystem_test {
namespace {

constexpr int kHealthyPods = 9;
constexpr Milliseconds kDaemonDeadline = std::chrono::seconds(2);
constexpr Milliseconds kReadyGoal = std::chrono::seconds(2);

enum class Mode { kHang, kDead };

class HungFilesystemTest : public ExamplePodTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    ExamplePodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_TRUE(std::filesystem::create_directory(source()));
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), source(), scratch() + "/control");
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    settings["deadline-mount"] = "2s";
    settings["deadline-unmount"] = "2s";
    settings["deadline-stats"] = "1s";
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello")));
  }
  void TearDown() override {
    hangfs_.reset();  // heals first: what waits for it lets go
    ExamplePodTest::TearDown();
  }

  std::string source() const { return scratch() + "/hangfs"; }
  std::string SickPod() const {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: sick, uid: uid-sick}\nspec:\n"
           "  containers:\n    - name: main\n      image: i\n      volumeMounts:\n"
           "        - {name: remote, mountPath: /remote}\n"
           "        - {name: remote, mountPath: /file, subPath: file}\n"
           "  volumes:\n    - name: remote\n      hostPath: {path: " +
           source() + ", type: Directory}\n";
  }
  void StopAnswering() {
    if (GetParam() == Mode::kHang) hangfs_->Hang();
    if (GetParam() == Mode::kDead) hangfs_->Die();
  }
  // The median time of a healthy pod's whole set-up, and of its teardown.
  void MeasureHealthy(const std::string& when) {
    std::vector<Milliseconds> up, down;
    for (int i = 0; i < kHealthyPods; ++i) {
      auto start = std::chrono::steady_clock::now();
      ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
      ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
      up.push_back(Since(start));
      ASSERT_EQ(ExampleProblem("hello"), "");
      start = std::chrono::steady_clock::now();
      ASSERT_TRUE(Delete("Pod", "web").ok());
      ASSERT_TRUE(WaitGone("web")) << Ctl({"explain", "web"}).output;
      down.push_back(Since(start));
    }
    std::sort(up.begin(), up.end());
    std::sort(down.begin(), down.end());
    std::cout << when << ": p50 of a healthy pod: set-up " << up[kHealthyPods / 2].count()
              << " ms, teardown " << down[kHealthyPods / 2].count() << " ms" << std::endl;
  }
  void ExpectEverythingAnswers() {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"get", "pods"}, {"get", "volumes"}, {"explain", "sick"}, {"sources"}, {"status"}}) {
      const auto start = std::chrono::steady_clock::now();
      const CommandResult result = Ctl(words);
      EXPECT_EQ(result.exit_status, 0) << words[0] << ": " << result.output;
      EXPECT_LT(Since(start), kReadyGoal) << words[0];
    }
    // The figures of pods come with the first collection after the start.
    EXPECT_TRUE(Eventually(
        kPatience, [&] { return HttpGet("/metrics").find("volumed_pods") != std::string::npos; }));
    EXPECT_NE(HttpGet("/healthz").find(" 200 "), std::string::npos);
  }
  void RestartIsQuick() {
    KillAgent();
    const auto start = std::chrono::steady_clock::now();
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    std::cout << "restart to ready while hung: " << Since(start).count() << " ms" << std::endl;
    EXPECT_LT(Since(start), kReadyGoal);
  }

  std::unique_ptr<HangfsMount> hangfs_;
};

INSTANTIATE_TEST_SUITE_P(Modes, HungFilesystemTest, ::testing::Values(Mode::kHang, Mode::kDead),
                         [](const auto& param) {
                           return param.param == Mode::kHang ? "Killable" : "Uninterruptible";
                         });

TEST_P(HungFilesystemTest, SetUpThatHangsDisturbsNobodyAndHeals) {
  ASSERT_NO_FATAL_FAILURE(MeasureHealthy("healthy"));
  StopAnswering();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SickPod()));
  ASSERT_NO_FATAL_FAILURE(MeasureHealthy("hung"));
  ExpectEverythingAnswers();
  // The deadline has passed: it is known to be blocked, and said why.
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const std::optional<v1::Pod> pod = FindPod("sick");
    return pod && pod->volumes_size() == 1 && pod->volumes(0).has_problem();
  })) << Ctl({"explain", "sick"}).output;
  const CommandResult explained = Ctl({"explain", "sick"});
  EXPECT_NE(explained.output.find("blocked at: "), std::string::npos) << explained.output;
  EXPECT_NE(explained.output.find("next try:"), std::string::npos) << explained.output;
  if (GetParam() == Mode::kDead) {
    EXPECT_TRUE(Eventually(kPatience, [&] { return AgentStatus().stuck_size() > 0; }))
        << explained.output;
    EXPECT_NE(HttpGet("/metrics").find("volumed_stuck_operations{"), std::string::npos);
  }
  RestartIsQuick();
  ExpectEverythingAnswers();
  ASSERT_NO_FATAL_FAILURE(MeasureHealthy("hung, after a restart"));
  hangfs_->Heal();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitPhase("sick", "Ready")) << Ctl({"explain", "sick"}).output;
  std::cout << "ready after it healed: " << Since(start).count() << " ms" << std::endl;
  ASSERT_TRUE(Delete("Pod", "sick").ok());
  ASSERT_TRUE(WaitGone("sick"));
  EXPECT_EQ(LeftOvers(), "");
  EXPECT_EQ(AgentStatus().stuck_size(), 0);
}

TEST_P(HungFilesystemTest, TeardownOverAHungFilesystemDisturbsNobodyAndHeals) {
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SickPod()));
  ASSERT_TRUE(WaitPhase("sick", "Ready")) << Ctl({"explain", "sick"}).output;
  StopAnswering();
  RestartIsQuick();
  ASSERT_TRUE(Delete("Pod", "sick").ok());
  ASSERT_NO_FATAL_FAILURE(MeasureHealthy("teardown hung"));
  EXPECT_TRUE(Eventually(
      kPatience, [&] { return HttpGet("/metrics").find("volumed_pods") != std::string::npos; }));
  EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
  hangfs_->Heal();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitGone("sick")) << Ctl({"explain", "sick"}).output;
  std::cout << "gone after it healed: " << Since(start).count() << " ms" << std::endl;
  EXPECT_EQ(LeftOvers(), "");
}

TEST_P(HungFilesystemTest, CleanStopDoesNotWaitForIt) {
  StopAnswering();
  ASSERT_NO_FATAL_FAILURE(ApplyOk(SickPod()));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const std::optional<v1::Pod> pod = FindPod("sick");
    return pod && pod->volumes_size() == 1 && !pod->volumes(0).running_step().empty();
  }));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(StopAgent(), 0);
  std::cout << "clean stop while hung: " << Since(start).count() << " ms" << std::endl;
  EXPECT_LT(Since(start), kDaemonDeadline);
  hangfs_->Heal();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(WaitPhase("sick", "Ready")) << Ctl({"explain", "sick"}).output;
}

}  // namespace
}  // namespace volumed::hung_filesystem_test
