// The daemon's root is a symbolic link: it is followed once, at the start.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::linked_root_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "linked.example.com";

class LinkedRootTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directory(scratch() + "/disk");
    fs::rename(root(), real());
    fs::create_directory_symlink(real(), root());
    // Its socket, and that of its registration, have the link in their paths.
    driver_ = std::make_unique<CsiFakeDriver>(OptionsOf(kDriver));
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(kDriver, "yes")) << ToldOf(kDriver);
    const CsiTestVolume volume = VolumeOf("v", kDriver);
    ASSERT_NO_FATAL_FAILURE(
        ApplyOk(DriverObject(kDriver, false) + Storage(volume) + PodOn("p", {volume})));
    ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  std::string real() const { return scratch() + "/disk/kubelet"; }
  std::string RealTarget() const { return Replaced(TargetOf("p", "v"), root(), real()); }
  void ExpectItLeaves() {
    ASSERT_TRUE(Delete("Pod", "p").ok());
    EXPECT_TRUE(WaitGone("p")) << Explain("p");
    EXPECT_TRUE(MountsBelow(real() + "/pods").empty());
    EXPECT_TRUE(Eventually(kPatience, [&] {
      return CountOf(kDriver, "NodeUnstageVolume") == 1 && MountsBelow(real() + "/plugins").empty();
    }));
    for (const std::string& violation : ViolationsOf(LogOf(kDriver))) ADD_FAILURE() << violation;
  }

  std::unique_ptr<CsiFakeDriver> driver_;
};

// The start was refused: the root was no canonical path.
TEST_F(LinkedRootTest, ADriverRegistersStagesAndPublishesBelowARootThatIsALink) {
  EXPECT_EQ(MountsBelow(RealTarget()).size(), 1u);
  for (const CsiFakeEntry& entry : LogOf(kDriver)) {
    if (entry.what != "begin" || entry.rpc != "NodePublishVolume") continue;
    EXPECT_EQ(entry.target, RealTarget());
    EXPECT_TRUE(entry.staging.starts_with(real() + "/plugins/")) << entry.staging;
  }
  EXPECT_EQ(AgentStatus().root(), real());
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  EXPECT_EQ(CountOf(kDriver, "NodePublishVolume"), 1) << "it is proven by the mount table";
  ASSERT_NO_FATAL_FAILURE(ExpectItLeaves());
}

TEST_F(LinkedRootTest, AReloadFindsTheRootAsItWas) {
  ASSERT_EQ(::kill(agent_pid(), SIGHUP), 0);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return ReadText(log_path()).find("configuration reloaded") != std::string::npos;
  }));
  EXPECT_EQ(ReadText(log_path()).find("needs a restart"), std::string::npos);
}

// Whoever could exchange the link led the agent to sockets elsewhere.
TEST_F(LinkedRootTest, ALinkThatIsExchangedLeadsTheRunningAgentNowhereElse) {
  fs::create_directories(scratch() + "/other/plugins_registry");
  fs::remove(root());
  fs::create_directory_symlink(scratch() + "/other", root());
  const std::string foreign = "foreign.example.com";
  const CsiFakeDriver elsewhere(OptionsOf(foreign));
  // The driver comes again, where it was.
  driver_.reset();
  CsiFakeOptions options = OptionsOf(kDriver);
  options.endpoint = Replaced(options.endpoint, root(), real());
  options.registration = Replaced(options.registration, root(), real());
  driver_ = std::make_unique<CsiFakeDriver>(options);
  ASSERT_NO_FATAL_FAILURE(ExpectItLeaves());
  EXPECT_EQ(ToldOf(foreign), "nothing");
  EXPECT_EQ(CountOf(foreign, "GetInfo"), 0);
}

}  // namespace
}  // namespace volumed::linked_root_test
