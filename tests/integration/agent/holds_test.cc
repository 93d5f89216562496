// A pod leaves when its consumers are gone, and not before.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "integration/agent/example_pod.h"

namespace volumed::holds_test {
namespace {

// Long enough to see that nothing happens.
constexpr Milliseconds kStays(400);

class HoldsTest : public ExamplePodTest {
 protected:
  void SetUp() override {
    ExamplePodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello")));
  }
  void ApplyReadyPod() {
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
    WriteForeignFiles("in use");
  }
  void ExpectHeldBy(const std::string& holder) {
    EXPECT_FALSE(WaitGone("web", kStays));
    const std::optional<v1::Pod> pod = FindPod("web");
    ASSERT_TRUE(pod.has_value());
    EXPECT_EQ(pod->phase(), "Terminating");
    ASSERT_EQ(pod->held_by_size(), 1);
    EXPECT_NE(pod->held_by(0).find(holder), std::string::npos) << pod->held_by(0);
    EXPECT_EQ(ForeignProblem("in use"), "");
    const CommandResult explained = Ctl({"explain", "web"});
    EXPECT_NE(explained.output.find("held by " + holder), std::string::npos) << explained.output;
    const CommandResult listed = Ctl({"get", "pods"});
    EXPECT_NE(listed.output.find(holder), std::string::npos) << listed.output;
  }
};

TEST_F(HoldsTest, PodStaysWhileAHeldProcessLivesAndGoesWithIt) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  ASSERT_TRUE(Hold("web", container.pid()).ok());
  ASSERT_TRUE(Delete("Pod", "web").ok());
  ExpectHeldBy("pid " + std::to_string(container.pid()));
  container.End();
  ASSERT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(HoldsTest, HoldSurvivesTheAgent) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  ASSERT_TRUE(Hold("web", container.pid()).ok());
  ASSERT_TRUE(Delete("Pod", "web").ok());
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ExpectHeldBy("pid " + std::to_string(container.pid()));
  container.End();
  ASSERT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(HoldsTest, HoldThatEndsWhileNoAgentRunsIsSeenByTheNext) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  ASSERT_TRUE(Hold("web", container.pid()).ok());
  ASSERT_TRUE(Delete("Pod", "web").ok());
  KillAgent();
  container.End();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(HoldsTest, CgroupHoldsUntilItIsEmpty) {
  std::string cgroup;
  for (const char* hierarchy :
       {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"}) {
    const std::string path = std::string(hierarchy) + "/volumed-it-" + std::to_string(::getpid());
    if (Exists(std::string(hierarchy) + "/cgroup.procs") && ::mkdir(path.c_str(), 0755) == 0) {
      cgroup = path;
      break;
    }
  }
  if (cgroup.empty()) GTEST_SKIP() << "skipped: needs a writable cgroup";
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  WriteText(cgroup + "/cgroup.procs", std::to_string(container.pid()));
  const std::string name = cgroup.substr(cgroup.rfind('/'));
  const grpc::Status held = Hold("web", 0, name);
  EXPECT_TRUE(held.ok()) << held.error_message();
  EXPECT_TRUE(Delete("Pod", "web").ok());
  ExpectHeldBy("cgroup " + name);
  container.End();
  EXPECT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
  EXPECT_EQ(::rmdir(cgroup.c_str()), 0);
}

TEST_F(HoldsTest, ForceTakesThePodFromItsConsumers) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  ASSERT_TRUE(Hold("web", container.pid()).ok());
  ASSERT_TRUE(Delete("Pod", "web").ok());
  ExpectHeldBy("pid " + std::to_string(container.pid()));
  const CommandResult forced = Ctl({"delete", "pod", "web", "--force"});
  ASSERT_EQ(forced.exit_status, 0) << forced.output;
  ASSERT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(HoldsTest, ReleasedHoldLetsThePodGo) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper container;
  const std::string pid = std::to_string(container.pid());
  ASSERT_EQ(Ctl({"hold", "web", "--pid", pid}).exit_status, 0);
  ASSERT_TRUE(Delete("Pod", "web").ok());
  ExpectHeldBy("pid " + pid);
  const CommandResult released = Ctl({"hold", "web", "--pid", pid, "--release"});
  ASSERT_EQ(released.exit_status, 0) << released.output;
  ASSERT_TRUE(WaitGone("web"));
}

TEST_F(HoldsTest, HoldOfAProcessThatIsNotThereIsRefused) {
  ASSERT_NO_FATAL_FAILURE(ApplyReadyPod());
  Sleeper ended;
  const pid_t pid = ended.pid();
  ended.End();
  const grpc::Status held = Hold("web", pid);
  EXPECT_EQ(held.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << held.error_message();
  EXPECT_EQ(Hold("no-such-pod", ::getpid()).error_code(), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace volumed::holds_test
