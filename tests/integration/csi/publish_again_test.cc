// A volume whose CSIDriver has requiresRepublish: the daemon publishes it anew while its pod runs,
// and a publish that fails takes nothing from the pod.
#include <string>
#include <vector>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::publish_again_test {
namespace {

constexpr const char* kDriver = "again.example.com";

class PublishAgainTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["csi-republish-period"] = "200ms";
    driver_ = std::make_unique<CsiFakeDriver>(OptionsOf(kDriver));
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(kDriver, "yes")) << ToldOf(kDriver);
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }
  // It was called so often more, and answered all but the last call.
  bool WaitPublishes(int more) const {
    const int before = CountOf(kDriver, "NodePublishVolume");
    return Eventually(kPatience,
                      [&] { return CountOf(kDriver, "NodePublishVolume") >= before + more; });
  }

  std::unique_ptr<CsiFakeDriver> driver_;
};

TEST_F(PublishAgainTest, ARunningPodsVolumeIsPublishedAgainAndAFailureTakesNothingFromThePod) {
  const CsiTestVolume volume = VolumeOf("v", kDriver);
  ASSERT_NO_FATAL_FAILURE(ApplyOk(DriverObject(kDriver, false, "  requiresRepublish: true\n") +
                                  Storage(volume) + PodOn("p", {volume})));
  ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  const std::vector<std::string> mounts = MountsBelow(TargetOf("p", "v"));
  ASSERT_EQ(mounts.size(), 1u);
  EXPECT_TRUE(WaitPublishes(2)) << Explain("p");

  // One call may be under way still for which the rule is not.
  driver_->Script(R"([{"rpc": "NodePublishVolume", "code": 13, "message": "not now"}])");
  EXPECT_TRUE(WaitPublishes(3)) << Explain("p");
  EXPECT_EQ(MountsBelow(TargetOf("p", "v")), mounts);
  driver_->Script("[]");
  EXPECT_TRUE(WaitPublishes(2)) << Explain("p");
  EXPECT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  EXPECT_EQ(MountsBelow(TargetOf("p", "v")), mounts);
  EXPECT_EQ(CountOf(kDriver, "NodeStageVolume"), 1);
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 0);

  ASSERT_TRUE(Delete("Pod", "p").ok());
  EXPECT_TRUE(WaitGone("p")) << Explain("p");
  EXPECT_EQ(LeftOvers(), "");
  EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
  for (const std::string& violation : ViolationsOf(LogOf(kDriver))) ADD_FAILURE() << violation;
}

}  // namespace
}  // namespace volumed::publish_again_test
