// What an administrator and the daemon do about drivers: calls by hand that meet a pod, and volumes
// that leave while their driver is absent for too long.
#include <filesystem>
#include <string>

#include "integration/csi/csi_agent_fixture.h"

namespace volumed::absent_driver_test {
namespace {

constexpr const char* kDriver = "absent.example.com";

class AbsentDriverTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    settings["driver-absent-limit"] = "1s";
    CsiFakeOptions options = OptionsOf(kDriver);
    options.volumes = "loop";
    driver_ = std::make_unique<CsiFakeProcess>(options);
    ASSERT_TRUE(driver_->Start());
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(WaitTold(kDriver, "yes")) << ToldOf(kDriver);
    const CsiTestVolume volume = VolumeOf("v", kDriver);
    ApplyOk(DriverObject(kDriver, false) + Storage(volume) + PodOn("p", {volume}));
    ASSERT_TRUE(WaitPhase("p", "Ready")) << Explain("p");
  }
  void TearDown() override {
    driver_.reset();
    CsiAgentTest::TearDown();
  }

  std::unique_ptr<CsiFakeProcess> driver_;
};

TEST_F(AbsentDriverTest, ACallByHandIsRefusedWithThePodsNameAsLongAsThePodHasTheVolume) {
  const std::string file = scratch() + "/request.json";
  WriteText(file, R"({"volume_id": "h-v", "target_path": "/nowhere"})");
  const CommandResult refused = Ctl({"csi", kDriver, "NodeUnpublishVolume", "--json", file});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_NE(refused.output.find("is in use: pod "), std::string::npos) << refused.output;
  EXPECT_NE(refused.output.find("/p has it"), std::string::npos) << refused.output;
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 0);
  ASSERT_TRUE(Delete("Pod", "p").ok());
  ASSERT_TRUE(WaitGone("p")) << Explain("p");
  ASSERT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
  const CommandResult made = Ctl({"csi", kDriver, "NodeUnpublishVolume", "--json", file});
  EXPECT_EQ(made.output.find("in use"), std::string::npos) << made.output;
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 2);
}

TEST_F(AbsentDriverTest, APodLeavesWithoutItsDriverWhichIsOwedTheCallsOverARestart) {
  driver_->Kill();
  ASSERT_TRUE(Delete("Pod", "p").ok());
  EXPECT_TRUE(WaitGone("p")) << Explain("p");
  EXPECT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 0);
  // An unstage whose end is not on record is made again.
  const std::vector<std::string> unstaged = {"storage_operation_duration_seconds_count",
                                             "\"unmount_device\"", "\"success\""};
  ASSERT_TRUE(Eventually(kPatience, [&] { return !MetricLines(unstaged).empty(); }));
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(driver_->Start());
  EXPECT_TRUE(Eventually(kPatience, [&] { return CountOf(kDriver, "NodeUnstageVolume") == 1; }));
  EXPECT_EQ(CountOf(kDriver, "NodeUnpublishVolume"), 1);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return MetricLines({"volumed_csi_debts{", kDriver}).empty();
  }));
}

// The same names, with another volume of the driver: what was owed took its mount from the pod.
TEST_F(AbsentDriverTest, APodWithAnotherVolumeAtTheSamePathHadItsMountTakenByADebt) {
  driver_->Kill();
  ASSERT_TRUE(Delete("Pod", "p").ok());
  ASSERT_TRUE(WaitGone("p")) << Explain("p");
  ASSERT_TRUE(Eventually(kPatience, [&] { return CsiLeftOvers().empty(); })) << CsiLeftOvers();
  ASSERT_TRUE(Delete("PersistentVolumeClaim", "v").ok());
  ASSERT_TRUE(Delete("PersistentVolume", "v").ok());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Ctl({"get", "pv", "v"}).exit_status != 0; }));
  const CsiTestVolume volume = VolumeOf("v", kDriver);
  std::string storage = Storage(volume);
  const std::string handle = "volumeHandle: h-v";
  storage.replace(storage.find(handle), handle.size(), "volumeHandle: h-other");
  ASSERT_NO_FATAL_FAILURE(ApplyOk(storage + PodOn("p", {volume})));
  ASSERT_TRUE(driver_->Start());
  ASSERT_TRUE(WaitPhase("p", "Ready", Milliseconds(60000))) << Explain("p");
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return MetricLines({"volumed_csi_debts{", kDriver}).empty();
  }));
  EXPECT_EQ(MountsBelow(TargetOf("p", "v")).size(), 1u);
  bool is_published = false;
  for (const CsiFakeEntry& entry : LogOf(kDriver)) {
    if (entry.rpc == "NodePublishVolume" && entry.volume == "h-other") is_published = true;
    if (entry.rpc != "NodeUnpublishVolume") continue;
    EXPECT_FALSE(is_published) << "it may have taken the mount of the other volume";
  }
}

}  // namespace
}  // namespace volumed::absent_driver_test
