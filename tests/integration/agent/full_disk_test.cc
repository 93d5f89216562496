// The agent's root on a disk that is full: set-up says why not, teardown goes on, and the agent
// stays.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "integration/agent/root_disk.h"

namespace volumed::full_disk_test {
namespace {

constexpr int64_t kDiskBytes = 48 << 20;

class FullDiskTest : public RootDiskTest {
 protected:
  void SetUp() override {
    RootDiskTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(MakeImage(kDiskBytes, {}));
    MountDisk(image(), "errors=remount-ro");
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_NO_FATAL_FAILURE(StartWithExamplePod());
  }

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
  bool SaysWhyNot(const std::string& pod) {
    const std::string explained = Ctl({"explain", pod}).output;
    for (const char* words : {"No space left", "ENOSPC", "full"}) {
      if (explained.find(words) != std::string::npos) return true;
    }
    return false;
  }
  bool OnBallast() {
    return HttpGet("/metrics").find("\nvolumed_records_on_ballast 1") != std::string::npos;
  }
  // New rows are asked for until one finds no room.
  bool SpendBallast() {
    WriteText(manifests() + "/other.yaml", AnotherPod("other"));
    const bool spent = Eventually(kPatience, [&] { return OnBallast(); });
    ::unlink((manifests() + "/other.yaml").c_str());
    return spent && WaitGone("other");
  }
};

TEST_F(FullDiskTest, SetUpSaysWhyNotAndTeardownGoesOn) {
  // A pod from a file, so that wanting it needs no room in the agent's own directory.
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  WriteText(manifests() + "/other.yaml", AnotherPod("other"));
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

TEST_F(FullDiskTest, ApplyIsRefusedBeforeItTakesWhatIsKeptForTeardown) {
  ASSERT_NO_FATAL_FAILURE(FillDisk());
  const grpc::Status full = Apply(ExampleObjects("no room"));
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << full.error_message();
  EXPECT_NE(full.error_message().find(root()), std::string::npos) << full.error_message();

  // The records give up their ballast for a row that exists; there is room now, and not for this.
  ASSERT_TRUE(SpendBallast());
  const grpc::Status kept = Apply(ExampleObjects("no room"));
  EXPECT_EQ(kept.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << kept.error_message();
  EXPECT_NE(kept.error_message().find(root()), std::string::npos) << kept.error_message();
  EXPECT_NE(kept.error_message().find("teardown"), std::string::npos) << kept.error_message();
  std::cout << kept.error_message() << std::endl;
  EXPECT_EQ(ExampleProblem("hello"), "");
  EXPECT_FALSE(Exists(root() + "/volumed/objects/.configmap.default.web-config.json.tmp"));

  // Room again: the ballast comes back by itself, and apply works.
  ASSERT_EQ(::unlink((disk() + "/filler").c_str()), 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !OnBallast(); }));
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ExampleObjects("room")));
  EXPECT_TRUE(Eventually(kPatience, [&] { return ExampleProblem("room").empty(); }))
      << ExampleProblem("room");
  ASSERT_TRUE(Delete("Pod", "web").ok());
  ASSERT_TRUE(WaitGone("web"));
  EXPECT_EQ(LeftOvers(), "");
}

}  // namespace
}  // namespace volumed::full_disk_test
