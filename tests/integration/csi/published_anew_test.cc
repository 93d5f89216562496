// Volumes whose CSIDriver says requiresRepublish: the driver of a running pod is called again now
// and then, and the pod keeps its mount, whatever becomes of such a call.
#include <memory>
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::published_anew_test {
namespace {

constexpr const char* kDriver = "tokens.example.com";
constexpr const char* kPublish = "NodePublishVolume";
constexpr const char* kTokens = "csi.storage.k8s.io/serviceAccount.tokens";

class PublishedAnewTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["csi-republish-period"] = "500ms";
    driver_ = std::make_unique<CsiFakeDriver>(OptionsOf(kDriver));
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(kDriver, "yes")) << ToldOf(kDriver);
    const CsiTestVolume volume = VolumeOf("v", kDriver);
    ASSERT_NO_FATAL_FAILURE(
        ApplyOk(ObjectFor("{audience: first}") + Storage(volume) + PodOn("p", {volume})));
    ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
    mounted_ = MountsBelow(TargetOf("p", "v"));
    ASSERT_EQ(mounted_.size(), 1u);
    WriteText(TargetOf("p", "v") + "/file", "the pod's");
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  static std::string ObjectFor(const std::string& audiences) {
    return DriverObject(kDriver, false,
                        "  requiresRepublish: true\n  tokenRequests: [" + audiences + "]\n");
  }
  // What the driver was given last for pods' service accounts.
  std::string LastTokens() const {
    std::string tokens;
    for (const CsiFakeEntry& entry : LogOf(kDriver)) {
      if (entry.what != "begin" || entry.rpc != kPublish) continue;
      const auto given = entry.volume_context.find(kTokens);
      tokens = given == entry.volume_context.end() ? "" : given->second;
    }
    return tokens;
  }
  bool WaitForPublishes(int more) const {
    const int until = CountOf(kDriver, kPublish) + more;
    return Eventually(kPatience, [&] { return CountOf(kDriver, kPublish) >= until; });
  }
  std::string Problem() {
    const std::optional<v1::Pod> pod = FindPod("p");
    return pod && pod->volumes_size() == 1 ? pod->volumes(0).problem().message() : "no volume";
  }
  // A line of mountinfo has the number of the mount, which is another one after a remount.
  void ExpectAsBefore() {
    EXPECT_EQ(FindPod("p")->phase(), "Ready") << Explain("p");
    EXPECT_EQ(MountsBelow(TargetOf("p", "v")), mounted_);
    EXPECT_EQ(ReadText(TargetOf("p", "v") + "/file"), "the pod's");
    EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 1);
    EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 0);
  }
  void ExpectItLeaves() {
    ASSERT_TRUE(Delete("Pod", "p").ok());
    EXPECT_TRUE(WaitGone("p")) << Explain("p");
    EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
    for (const std::string& violation : ViolationsOf(LogOf(kDriver))) ADD_FAILURE() << violation;
  }

  std::vector<std::string> mounted_;
  std::unique_ptr<CsiFakeDriver> driver_;
};

TEST_F(PublishedAnewTest, ARunningPodsVolumeGetsWhatIsNewAndKeepsItsMount) {
  const std::string first = LastTokens();
  EXPECT_NE(first.find("\"first\""), std::string::npos) << first;
  EXPECT_TRUE(WaitForPublishes(2)) << Explain("p");
  ExpectAsBefore();
  // A token is renewed late in its life; one for another audience is a new one at once.
  ASSERT_NO_FATAL_FAILURE(ApplyOk(ObjectFor("{audience: first}, {audience: second}")));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return LastTokens().find("\"second\"") != std::string::npos;
  })) << LastTokens();
  EXPECT_TRUE(WaitForPublishes(1)) << "and so it goes on";
  ExpectAsBefore();
  ASSERT_NO_FATAL_FAILURE(ExpectItLeaves());
}

// 13 is Internal, without effect; of 10, Aborted, the outcome is open.
TEST_F(PublishedAnewTest, ACallThatFailsLeavesTheRunningPodItsVolume) {
  for (const char* code : {"13", "10"}) {
    SCOPED_TRACE(code);
    driver_->Script(R"([{"rpc": "NodePublishVolume", "effect": "none", "message": "no tokens", )"
                    R"("code": )" +
                    std::string(code) + "}]");
    EXPECT_TRUE(Eventually(kPatience, [&] {
      return Problem().find("no tokens") != std::string::npos;
    })) << Problem();
    EXPECT_TRUE(WaitForPublishes(1)) << "it is tried again";
    ExpectAsBefore();
    driver_->Script("[]");
    EXPECT_TRUE(Eventually(kPatience, [&] { return Problem().empty(); })) << Problem();
    EXPECT_TRUE(WaitState("p", "SetUp; ")) << StateOf("p");
    ExpectAsBefore();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectItLeaves());
}

}  // namespace
}  // namespace volumed::published_anew_test
