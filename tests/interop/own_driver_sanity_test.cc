// The CSI driver that the agent is, asked by csi-sanity: whatever it announces, the suite tries on
// the real daemon, whose pool is an xfs in a sparse file.
#include <sys/mount.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "integration/agent/agent_fixture.h"
#include "integration/loop_device.h"
#include "interop/pd_harness.h"

namespace volumed::own_driver_sanity_test {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kMiB = int64_t{1} << 20;

class OwnDriverSanityTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    const std::string why = WhyNoPeer("csi-sanity");
    if (!why.empty()) GTEST_SKIP() << why;
    ASSERT_TRUE(MakeImage(scratch() + "/disk", 16 * kGiB));
    disk_ = std::make_unique<LoopDevice>(scratch() + "/disk");
    ASSERT_TRUE(disk_->valid());
    const CommandResult made = RunCommand({"mkfs.xfs", "-q", disk_->path()});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    fs::create_directory(pool());
    ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), "xfs", 0, nullptr), 0);
    settings["pool"] = "{fast: " + pool() + "}";
    settings["csi-serve"] = endpoint();
    settings["csi-profile"] = "central";
    settings["csi-max-volumes"] = "3";
    settings["csi-target-roots"] = "[" + scratch() + "]";
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    KillAgent();
    ::umount2(pool().c_str(), MNT_DETACH);
    disk_.reset();
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  std::string endpoint() const { return scratch() + "/csi.sock"; }

  // The suite's last words: "Ran 61 of 103 Specs ..", and the line after them.
  std::string RunSanity(const std::vector<std::string>& more) {
    const std::string report = scratch() + "/sanity.log";
    const std::string parameters = scratch() + "/parameters.yaml";
    WriteText(parameters, "csi.storage.k8s.io/fstype: xfs\n");
    std::vector<std::string> command = {
        PeerPath("csi-sanity"),
        "--csi.endpoint=" + endpoint(),
        "--csi.mountdir=" + scratch() + "/mount",
        "--csi.stagingdir=" + scratch() + "/stage",
        "--csi.testvolumesize=" + std::to_string(384 * kMiB),
        "--csi.testvolumeexpandsize=" + std::to_string(512 * kMiB),
        "--csi.testvolumeparameters=" + parameters,
        "--csi.testnodevolumeattachlimit",
        "--ginkgo.no-color",
        "--ginkgo.v"};
    command.insert(command.end(), more.begin(), more.end());
    PeerProcess sanity;
    EXPECT_TRUE(sanity.Start(command, report, report));
    const int status = sanity.Wait();
    const std::string text = ReadText(report);
    EXPECT_EQ(status, 0) << text;
    const size_t ran = text.find("\nRan ");
    EXPECT_NE(ran, std::string::npos) << text;
    return ran == std::string::npos ? "" : text.substr(ran + 1);
  }
  // What a suite that cleans up has left.
  std::string LeftInPool() const {
    std::string left;
    for (const auto& volume : fs::directory_iterator(pool() + "/volumes")) {
      left += volume.path().filename().string() + " ";
    }
    return left;
  }

  std::unique_ptr<LoopDevice> disk_;
};

TEST_F(OwnDriverSanityTest, HasNothingAgainstVolumesOfAnImage) {
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(endpoint()); })) << FailedParts();
  const std::string said = RunSanity({});
  RecordProperty("csi_sanity", said.substr(0, said.find('\n')));
  EXPECT_EQ(LeftInPool(), "");
}

}  // namespace
}  // namespace volumed::own_driver_sanity_test
