// The CSI driver that the agent is, asked by csi-sanity: whatever it announces, the suite tries on
// the real daemon, whose pool is an xfs, or a btrfs for subvolumes, in a sparse file.
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
// Of the 103 cases of csi-sanity 5.6.0, which is for level 1.13; one of them is pending in every
// run.
constexpr char kOfCentral[] = "102 Passed | 0 Failed | 1 Pending | 0 Skipped";
constexpr char kOfNode[] = "80 Passed | 0 Failed | 1 Pending | 22 Skipped";
// The suite compares what it is told with a message that it has sent, sizes of its encoding
// included, which no answer equals: a driver that tells where its snapshots are fails it.
constexpr char kComparesEncodings[] =
    "should succeed when creating a snapshot with accessibility requirements";
// What is of the newer level is not announced: the health of volumes, and where snapshots are.
constexpr char kOfCentralAt12[] = "95 Passed | 0 Failed | 1 Pending | 7 Skipped";

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
    const CommandResult made = RunCommand({"mkfs." + pool_filesystem_, "-q", disk_->path()});
    ASSERT_EQ(made.exit_status, 0) << made.output;
    fs::create_directory(pool());
    ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), pool_filesystem_.c_str(), 0, nullptr),
              0);
    settings["pool"] = "{fast: " + pool() + "}";
    settings["csi-serve"] = endpoint();
    settings["csi-max-volumes"] = "3";
    settings["csi-target-roots"] = "[" + scratch() + "]";
    settings["node-name"] = "n1";
  }
  void TearDown() override {
    KillAgent();
    // Of a suite that has failed there may be volumes left.
    for (const char* kind : {"/mount/target", "/stage"}) {
      ::umount2((scratch() + kind).c_str(), MNT_DETACH);
    }
    (void)RunCommand({"sh", "-c",
                      "for loop in $(losetup -n -l -O NAME,BACK-FILE | grep ' " + pool() +
                          "/' | cut -d' ' -f1); do losetup -d $loop; done"});
    ::umount2(pool().c_str(), MNT_DETACH);
    disk_.reset();
    AgentTest::TearDown();
  }

  std::string pool() const { return scratch() + "/pool"; }
  std::string endpoint() const { return scratch() + "/csi.sock"; }

  void StartDriver(const std::string& profile, const std::string& level = "1.13") {
    settings["csi-profile"] = profile;
    settings["csi-serve-level"] = level;
    ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
    ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(endpoint()); })) << FailedParts();
  }

  // The suite's last words: "102 Passed | 0 Failed | ..".
  std::string RunSanity(const std::vector<std::string>& more) {
    const std::string report = scratch() + "/sanity.log";
    const std::string parameters = scratch() + "/parameters.yaml";
    const std::string changes = scratch() + "/changes.yaml";
    WriteText(parameters, class_parameters_);
    WriteText(changes, changes_);
    std::vector<std::string> command = {PeerPath("csi-sanity"),
                                        "--csi.endpoint=" + endpoint(),
                                        "--csi.mountdir=" + scratch() + "/mount",
                                        "--csi.stagingdir=" + scratch() + "/stage",
                                        "--csi.testvolumesize=" + std::to_string(384 * kMiB),
                                        "--csi.testvolumeexpandsize=" + std::to_string(512 * kMiB),
                                        "--csi.testvolumeparameters=" + parameters,
                                        "--csi.testvolumemutableparameters=" + changes,
                                        "--csi.testnodevolumeattachlimit",
                                        "--ginkgo.no-color",
                                        "--ginkgo.v"};
    command.insert(command.end(), more.begin(), more.end());
    PeerProcess sanity;
    EXPECT_TRUE(sanity.Start(command, report, report));
    const int status = sanity.Wait();
    const std::string text = ReadText(report);
    EXPECT_EQ(status, 0) << text;
    const std::string begin = " -- ";
    const size_t said = text.rfind(begin);
    if (said == std::string::npos) return text;
    const size_t from = said + begin.size();
    const std::string words = text.substr(from, text.find('\n', from) - from);
    RecordProperty("csi_sanity", words);
    return words;
  }
  // What a suite that cleans up has left.
  std::string LeftInPool() const {
    std::string left;
    for (const char* kind : {"/volumes", "/cuts"}) {
      if (!fs::exists(pool() + kind)) continue;
      for (const auto& entry : fs::directory_iterator(pool() + kind)) {
        left += entry.path().filename().string() + " ";
      }
    }
    return left;
  }

  // The cut of a clone goes after the answer to whoever made the clone.
  void ExpectNothingLeft() const {
    EXPECT_TRUE(Eventually(kPatience, [this] { return LeftInPool().empty(); })) << LeftInPool();
  }

  std::unique_ptr<LoopDevice> disk_;
  std::string pool_filesystem_ = "xfs";
  std::string class_parameters_ = "csi.storage.k8s.io/fstype: xfs\n";
  std::string changes_ = "directIO: \"false\"\n";
};

class OwnSubvolumesSanityTest : public OwnDriverSanityTest {
 protected:
  OwnSubvolumesSanityTest() {
    pool_filesystem_ = "btrfs";
    class_parameters_ = "backend: subvolume\n";
    changes_ = "quotaBytes: \"100000000\"\n";
  }
};

// Without a limit: that needs a kernel with project quotas.
class OwnDirectoriesSanityTest : public OwnDriverSanityTest {
 protected:
  OwnDirectoriesSanityTest() {
    class_parameters_ = "backend: directory\nquota: best-effort\n";
    changes_ = "{}\n";
  }
};

// What the two profiles leave out announces itself: it is skipped by the suite, and counted here.
TEST_F(OwnDriverSanityTest, HasNothingAgainstFilesystemsOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  EXPECT_EQ(RunSanity({}), kOfCentral);
  ExpectNothingLeft();
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstBlockVolumesOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  EXPECT_EQ(RunSanity({"--csi.testvolumeaccesstype=block"}), kOfCentral);
  ExpectNothingLeft();
}

TEST_F(OwnSubvolumesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  EXPECT_EQ(RunSanity({}), kOfCentral);
  ExpectNothingLeft();
}

TEST_F(OwnDirectoriesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  EXPECT_EQ(RunSanity({}), kOfCentral);
  ExpectNothingLeft();
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfAnOlderLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  EXPECT_EQ(RunSanity({}), kOfCentralAt12);
  ExpectNothingLeft();
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfItsNodeAlone) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("node"));
  EXPECT_EQ(RunSanity({"--ginkgo.skip=" + std::string(kComparesEncodings)}), kOfNode);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace volumed::own_driver_sanity_test
