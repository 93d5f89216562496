// The agent's root on a disk that is full, and on one that turns read-only: set-up says why not,
// on a full disk teardown goes on, and the agent stays.
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "integration/agent/example_pod.h"

namespace volumed {
namespace {

constexpr int64_t kDiskBytes = 48 << 20;

// An ext4 of our own in a file.
class FullDiskTest : public ExamplePodTest {
 protected:
  void SetUp() override {
    ExamplePodTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const std::string image = scratch() + "/image";
    const int file = ::open(image.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ASSERT_EQ(::ftruncate(file, kDiskBytes), 0);
    ::close(file);
    const CommandResult made = RunCommand({"mkfs.ext4", "-q", "-F", "-m", "0", image});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    ASSERT_TRUE(std::filesystem::create_directory(disk()));
    // The loop device goes with its mount.
    const CommandResult mounted = RunCommand({"mount", "-o", "loop", image, disk()});
    if (mounted.exit_status != 0)
      GTEST_SKIP() << "skipped: needs a loop device: " << mounted.output;
    set_root(disk() + "/root");
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("hello") + "\n---\n" + ExamplePod(host_path())));
    ASSERT_TRUE(WaitPhase("web", "Ready"));
    WriteForeignFiles("kept");
  }
  std::string disk() const { return scratch() + "/disk"; }

  // Until not one more byte and not one more directory fits.
  void FillDisk() {
    const std::string path = disk() + "/filler";
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
    ASSERT_GE(file, 0);
    for (std::string block(1 << 20, 'x'); !block.empty();) {
      if (::write(file, block.data(), block.size()) > 0) continue;
      ASSERT_EQ(errno, ENOSPC);
      block.resize(block.size() / 2);
    }
    ::fsync(file);
    ::close(file);
  }
  // Two pods: nobody else has this hostPath, and the name differs.
  std::string AnotherPod() {
    return Replaced(Replaced(ExamplePod(host_path()), "name: web\n", "name: other\n"), kExampleUid,
                    "uid-other");
  }
  bool SaysWhyNot(const std::string& pod) {
    const std::string explained = Ctl({"explain", pod}).output;
    for (const char* words : {"No space left", "ENOSPC", "full", "ead-only", "EROFS"}) {
      if (explained.find(words) != std::string::npos) return true;
    }
    return false;
  }
  void ExpectAgentAnswers() {
    EXPECT_TRUE(AgentRuns());
    EXPECT_EQ(Ctl({"get", "pods"}).exit_status, 0);
    EXPECT_NE(HttpGet("/metrics").find("volumed_pods"), std::string::npos);
    EXPECT_NE(HttpGet("/healthz").find(" 200 "), std::string::npos);
  }
};

TEST_F(FullDiskTest, SetUpSaysWhyNotAndTeardownGoesOn) {
  // A pod from a file, so that wanting it needs no room in the agent's own directory.
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  WriteText(manifests() + "/other.yaml", AnotherPod());
  ASSERT_TRUE(Eventually(kPatience, [&] { return SaysWhyNot("other"); }))
      << Ctl({"explain", "other"}).output;
  // The records have had recourse to their ballast; what that made free is used up too.
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  ExpectAgentAnswers();
  EXPECT_EQ(ForeignProblem("kept"), "");

  // A new agent on the full disk takes over what is there, and takes it away.
  KillAgent();
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitPhase("web", "Ready")) << Ctl({"explain", "web"}).output;
  EXPECT_EQ(ForeignProblem("kept"), "");
  const grpc::Status deleted = Delete("Pod", "web");
  ASSERT_TRUE(deleted.ok()) << deleted.error_message();
  ASSERT_TRUE(WaitGone("web")) << Ctl({"explain", "web"}).output;
  EXPECT_FALSE(Exists(root() + "/pods/" + kExampleUid));

  // Room again: what waited goes on without a human.
  ASSERT_EQ(::unlink((disk() + "/filler").c_str()), 0);
  ASSERT_TRUE(WaitPhase("other", "Ready", std::chrono::seconds(60)))
      << Ctl({"explain", "other"}).output;
  ASSERT_EQ(::unlink((manifests() + "/other.yaml").c_str()), 0);
  ASSERT_TRUE(WaitGone("other"));
  EXPECT_EQ(LeftOvers(), "");
}

TEST_F(FullDiskTest, ReadOnlyRootIsToldClearlyAndTheAgentStays) {
  // As after an I/O error: ext4 takes no more writes, while mounts and open files stay.
  const CommandResult aborted = RunCommand({"mount", "-o", "remount,abort", disk()});
  ASSERT_EQ(aborted.exit_status, 0) << aborted.output;
  WriteText(manifests() + "/other.yaml", AnotherPod());
  ASSERT_TRUE(Eventually(kPatience, [&] { return SaysWhyNot("other"); }))
      << Ctl({"explain", "other"}).output;
  const grpc::Status applied = Apply(ExampleObjects("changed"));
  EXPECT_FALSE(applied.ok());
  EXPECT_NE(applied.error_message(), "");
  std::cout << "apply on a read-only root: " << applied.error_message() << "\n"
            << "explain on a read-only root:\n"
            << Ctl({"explain", "other"}).output << std::endl;
  ExpectAgentAnswers();
  EXPECT_EQ(ForeignProblem("kept"), "");
  // What cannot be written down is not done, and that is told too.
  const grpc::Status deleted = Delete("Pod", "web");
  EXPECT_FALSE(deleted.ok());
  EXPECT_NE(deleted.error_message().find("ead-only"), std::string::npos) << deleted.error_message();
  EXPECT_EQ(FindPod("web")->phase(), "Ready");
  ASSERT_EQ(::unlink((manifests() + "/other.yaml").c_str()), 0);
  EXPECT_TRUE(WaitPhase("other", "Terminating")) << Ctl({"explain", "other"}).output;
  ExpectAgentAnswers();
}

}  // namespace
}  // namespace volumed
