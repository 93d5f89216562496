// A link in a manifest directory leads into a mount that stops answering: no other manifest of the
// directory waits for it, everybody is told, and neither a stop nor a start of the agent needs it.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "integration/agent/agent_fixture.h"
#include "integration/hangfs/hangfs_mount.h"
#include "places.h"

namespace volumed::manifest_links_test {
namespace {

namespace fs = std::filesystem;

enum class Mode { kHang, kDead };

class ManifestLinksTest : public AgentTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directories(manifests());
    ASSERT_TRUE(fs::create_directory(source()));
    WriteText(scratch() + "/image", Pod("far"));
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), source(), scratch() + "/control",
                                            scratch() + "/image");
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    WriteText(Path("near.yaml"), Pod("near"));
    Link();
  }
  void TearDown() override {
    hangfs_.reset();
    AgentTest::TearDown();
  }
  std::string source() const { return scratch() + "/hangfs"; }
  std::string Path(const std::string& file) const { return manifests() + "/" + file; }
  static std::string Pod(const std::string& name) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           "}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n"
           "  - {name: c, image: x, volumeMounts: [{name: d, mountPath: /d}]}\n"
           "  volumes: [{name: d, emptyDir: {}}]\n";
  }
  void Link() const {
    fs::create_symlink(source() + "/image", Path(".new"));
    fs::rename(Path(".new"), Path("far.yaml"));
  }
  void StopAnswering() {
    if (GetParam() == Mode::kHang) hangfs_->Hang();
    if (GetParam() == Mode::kDead) hangfs_->Die();
  }
  bool IsReady(const std::string& name) { return WaitPhase(name + "-it-node", "Ready"); }
  std::string Incomplete() {
    const v1::GetSourcesResponse sources = Sources();
    for (const v1::Source& source : sources.sources()) {
      if (source.name() == "manifests:" + manifests()) return source.incomplete_because();
    }
    return "no such source";
  }
  bool SaysThatItDoesNotAnswer() {
    return Eventually(kPatience, [&] {
      return Incomplete().find(Path("far.yaml") + ": does not answer") != std::string::npos;
    });
  }

  std::unique_ptr<HangfsMount> hangfs_;
};

// It has stopped all new, changed and removed manifests of the directory for good.
TEST_P(ManifestLinksTest, ALinkIntoADeadMountStopsNoOtherManifest) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(IsReady("near"));
  ASSERT_TRUE(IsReady("far"));
  EXPECT_EQ(Incomplete(), "");
  StopAnswering();
  Link();
  WriteText(Path("later.yaml"), Pod("later"));
  EXPECT_TRUE(IsReady("later"));
  EXPECT_TRUE(SaysThatItDoesNotAnswer()) << Incomplete();
  EXPECT_TRUE(IsReady("far")) << "what was last good in it stays";
  // Nothing of the agent hangs there.
  const auto before = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(StopAgent());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(SaysThatItDoesNotAnswer()) << Incomplete();
  EXPECT_TRUE(IsReady("far"));
  WriteText(Path("last.yaml"), Pod("last"));
  EXPECT_TRUE(IsReady("last"));
  // Without the link the directory is in order.
  fs::remove(Path("far.yaml"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Incomplete().empty(); })) << Incomplete();
  EXPECT_TRUE(WaitGone("far-it-node")) << Ctl({"sources"}).output;
  hangfs_->Heal();
  Link();
  EXPECT_TRUE(IsReady("far"));
}

INSTANTIATE_TEST_SUITE_P(, ManifestLinksTest, ::testing::Values(Mode::kHang, Mode::kDead),
                         [](const auto& mode) {
                           return mode.param == Mode::kHang ? "Hang" : "Dead";
                         });

}  // namespace
}  // namespace volumed::manifest_links_test
