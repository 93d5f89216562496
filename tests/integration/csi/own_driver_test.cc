// The real daemon as a CSI driver: its own client registers it, as a kubelet does.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "integration/csi/csi_agent_fixture.h"
#include "places.h"

namespace volumed::own_driver_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDriver = "pool.volumed.io";

class OwnDriverTest : public CsiAgentTest {
 protected:
  void SetUp() override {
    CsiAgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directories(fs::path(endpoint()).parent_path());
    settings["csi-serve"] = endpoint();
    settings["csi-registry"] = root() + "/plugins_registry";
  }
  void TearDown() override {
    ::unsetenv("CSI_ENDPOINT");
    CsiAgentTest::TearDown();
  }

  std::string endpoint() const { return root() + "/plugins/" + kDriver + "/csi.sock"; }
  std::string registration() const { return root() + "/plugins_registry/" + kDriver + "-reg.sock"; }
  // How often a daemon of this test was told that it is registered.
  int Registrations() const {
    const std::string log = ReadText(log_path());
    const std::string told = "a kubelet has registered the CSI driver";
    int count = 0;
    for (size_t at = log.find(told); at != std::string::npos; at = log.find(told, at + 1)) ++count;
    return count;
  }
  bool WaitRegistered(int times) const {
    return Eventually(kPatience, [&] { return Registrations() >= times; });
  }
  bool IsPartFailing() { return FailedParts().find("csi-") != std::string::npos; }
  CommandResult RemoveSockets() const {
    return RunCommand({VolumedPath(), "remove-sockets", "--config", scratch() + "/config.yaml"});
  }
};

TEST_F(OwnDriverTest, ItsClientRegistersItAndCallsIt) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(WaitRegistered(1)) << Ctl({"get", "drivers", "-o", "yaml"}).output;
  EXPECT_NE(Ctl({"get", "drivers"}).output.find(kDriver), std::string::npos);
  const CommandResult info = Ctl({"csi", kDriver, "NodeGetInfo"});
  EXPECT_EQ(info.exit_status, 0) << info.output;
  EXPECT_NE(info.output.find("it-node"), std::string::npos) << info.output;
  EXPECT_FALSE(IsPartFailing()) << FailedParts();
}

TEST_F(OwnDriverTest, AnAgentThatStopsTakesItsRegistrationAwayAndOneThatIsKilledHasItTaken) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(registration()); }));
  EXPECT_NE(RemoveSockets().exit_status, 0) << "the agent lives";
  EXPECT_TRUE(Exists(registration()));
  EXPECT_EQ(StopAgent(), 0);
  EXPECT_FALSE(Exists(registration()));

  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(registration()); }));
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  EXPECT_TRUE(Exists(registration()));
  const CommandResult removed = RemoveSockets();
  EXPECT_EQ(removed.exit_status, 0) << removed.output;
  EXPECT_FALSE(Exists(registration()));
  EXPECT_EQ(RemoveSockets().exit_status, 0) << "there is nothing more";
}

TEST_F(OwnDriverTest, TheSocketOfAKilledAgentIsReplacedByTheNext) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitRegistered(1));
  ASSERT_NO_FATAL_FAILURE(KillAgent());
  ASSERT_TRUE(Exists(registration()));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(WaitRegistered(2)) << Ctl({"get", "drivers", "-o", "yaml"}).output;
  EXPECT_FALSE(IsPartFailing()) << FailedParts();
}

TEST_F(OwnDriverTest, WhatIsInTheWayOfItsSocketsKeepsNobodyElseWaiting) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(WaitRegistered(1));
  ASSERT_EQ(StopAgent(), 0);
  fs::remove(endpoint());
  WriteText(endpoint(), "in the way");
  WriteText(registration(), "in the way");
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  for (const char* part : {"csi-serve: ", "csi-registry: "}) {
    EXPECT_NE(FailedParts().find(part), std::string::npos) << FailedParts();
  }
  EXPECT_NE(FailedParts().find(endpoint() + " is not a socket"), std::string::npos);
  EXPECT_NE(FailedParts().find("not registered while csi-serve does not serve"), std::string::npos);
  EXPECT_EQ(ReadText(endpoint()), "in the way");
  fs::remove(endpoint());
  fs::remove(registration());
  EXPECT_TRUE(WaitRegistered(2));
  EXPECT_TRUE(Eventually(kPatience, [&] { return !IsPartFailing(); })) << FailedParts();
}

TEST_F(OwnDriverTest, ADriverAloneReadsNoManifestsAndRunsNoPods) {
  const auto pod = [](const std::string& name) {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           ", namespace: default, uid: uid-" + name +
           "}\nspec: {containers: [{name: c, image: x}]}\n";
  };
  settings.erase("csi-serve");
  settings.erase("csi-registry");
  settings["csi-only"] = "true";
  ::setenv("CSI_ENDPOINT", ("unix://" + endpoint()).c_str(), 1);
  WriteText(manifests() + "/pod.yaml", pod("from-a-manifest"));
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  EXPECT_TRUE(Eventually(kPatience, [&] { return Exists(endpoint()); }));
  EXPECT_FALSE(FindPod("from-a-manifest").has_value());
  const grpc::Status applied = Apply(pod("by-hand"));
  EXPECT_EQ(applied.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(applied.error_message().find("csi-only"), std::string::npos) << applied.error_message();
}

}  // namespace
}  // namespace volumed::own_driver_test
