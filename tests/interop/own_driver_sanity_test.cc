// The CSI driver that the agent is, asked by csi-sanity: whatever it announces, the suite tries on
// the real daemon, whose pool is an xfs, or a btrfs for subvolumes, in a sparse file.
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
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
// What is of the newer level is not announced: the health of volumes, where snapshots are, and one
// RPC about them.
constexpr char kOfCentralAt12[] = "92 Passed | 0 Failed | 1 Pending | 10 Skipped";
constexpr char kNewerThan12[] =
    R"(ControllerGetVolumeHealth [Controller Server], should fail when no volume id is provided: ControllerGetVolumeHealth not supported
ControllerGetVolumeHealth [Controller Server], should return health for a valid volume: ControllerGetVolumeHealth not supported
ControllerListVolumeHealth [Controller Server], should return appropriate response: ControllerListVolumeHealth not supported
CreateSnapshot [Controller Server], should succeed when creating a snapshot with accessibility requirements: SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported
GetSnapshot [Controller Server], should return an error when the specified snapshot id does not exist: GetSnapshot not supported
GetSnapshot [Controller Server], should return an error: GetSnapshot not supported
GetSnapshot [Controller Server], should return snapshot that match the specified snapshot id: GetSnapshot not supported
Node Service, NodeGetStorageHealth, should return appropriate response: NodeGetStorageHealth not supported
Node Service, NodeGetVolumeHealth, should fail when no volume id is provided: NodeGetVolumeHealth not supported
Node Service, NodeGetVolumeHealth, should return health for a valid volume: NodeGetVolumeHealth not supported
)";
// What is for all nodes, and one case that is left out by name.
constexpr char kOfNode[] = "80 Passed | 0 Failed | 1 Pending | 22 Skipped";
constexpr char kLeftOutByNode[] =
    R"(Controller Service [Controller Server], ControllerPublishVolume, should fail when no node id is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when no volume capability is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when no volume id is provided: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when publishing more volumes than the node max attach limit: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the node does not exist: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the volume does not exist: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerPublishVolume, should fail when the volume is already published but is incompatible: ControllerPublishVolume not supported
Controller Service [Controller Server], ControllerUnpublishVolume, should fail when no volume id is provided: ControllerUnpublishVolume not supported
Controller Service [Controller Server], CreateVolume, should create volume with a volume attribute class: Modify volume not supported
Controller Service [Controller Server], CreateVolume, should not create volume with an invalid volume attribute class: Modify Volume not supported
Controller Service [Controller Server], volume lifecycle, should be idempotent: Controller Publish, UnpublishVolume not supported
Controller Service [Controller Server], volume lifecycle, should work: Controller Publish, UnpublishVolume not supported
CreateSnapshot [Controller Server], should succeed when creating a snapshot with accessibility requirements: by name
ExpandVolume [Controller Server], should fail if no capacity range is given: ControllerExpandVolume not supported
ExpandVolume [Controller Server], should fail if no volume id is given: ControllerExpandVolume not supported
ExpandVolume [Controller Server], should work: ControllerExpandVolume not supported
ModifyVolume [Controller Server], should fail if no volume id is given: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail if specified mutable parameters are not supported by the volume: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail if volume does not exist: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should fail to modify a volume created with a volume attribute class if new mutable parameters are not supported by volume: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should modify a volume created with a volume attribute class: ControllerModifyVolume not supported
ModifyVolume [Controller Server], should modify a volume created without a volume attribute class: ControllerModifyVolume not supported
)";
// The suite compares what it is told with a message that it has sent, sizes of its encoding
// included, which no answer equals: a driver that tells where its snapshots are fails it.
constexpr char kComparesEncodings[] =
    "should succeed when creating a snapshot with accessibility requirements";
// Of the 92 cases of csi-sanity 5.4.0, which is for level 1.12; the same one is pending.
constexpr char kOlderOfCentral[] = "91 Passed | 0 Failed | 1 Pending | 0 Skipped";

class OwnDriverSanityTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    const std::string why = WhyNoPeer(suite_);
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

  struct Outcome {
    std::string words;    // the suite's last ones: "102 Passed | 0 Failed | .."
    std::string skipped;  // a line for each case, in the order of the alphabet
  };
  Outcome RunSanity(const std::vector<std::string>& more) {
    const std::string report = scratch() + "/sanity.log";
    const std::string cases = scratch() + "/sanity.json";
    const std::string parameters = scratch() + "/parameters.yaml";
    const std::string changes = scratch() + "/changes.yaml";
    WriteText(parameters, class_parameters_);
    WriteText(changes, changes_);
    std::vector<std::string> command = {PeerPath(suite_),
                                        "--csi.endpoint=" + endpoint(),
                                        "--csi.mountdir=" + scratch() + "/mount",
                                        "--csi.stagingdir=" + scratch() + "/stage",
                                        "--csi.testvolumesize=" + std::to_string(384 * kMiB),
                                        "--csi.testvolumeexpandsize=" + std::to_string(512 * kMiB),
                                        "--csi.testvolumeparameters=" + parameters,
                                        "--csi.testvolumemutableparameters=" + changes,
                                        "--csi.testnodevolumeattachlimit",
                                        "--ginkgo.no-color",
                                        "--ginkgo.json-report=" + cases,
                                        "--ginkgo.v"};
    command.insert(command.end(), more.begin(), more.end());
    PeerProcess sanity;
    EXPECT_TRUE(sanity.Start(command, report, report));
    const int status = sanity.Wait();
    const std::string text = ReadText(report);
    EXPECT_EQ(status, 0) << text;
    const std::string begin = " -- ";
    const size_t said = text.rfind(begin);
    if (said == std::string::npos) return {text, ""};
    const size_t from = said + begin.size();
    Outcome outcome = {text.substr(from, text.find('\n', from) - from), SkippedOf(cases)};
    RecordProperty("csi_sanity", outcome.words);
    return outcome;
  }
  // A case is its name, after the names of what it is in, and the suite's reason.
  static std::string SkippedOf(const std::string& json) {
    const nlohmann::json suites = nlohmann::json::parse(ReadText(json), nullptr, false);
    std::vector<std::string> lines;
    if (!suites.is_array()) return "no report";
    for (const nlohmann::json& suite : suites) {
      for (const nlohmann::json& one : suite.at("SpecReports")) {
        if (one.at("State") != "skipped") continue;
        std::string line;
        const nlohmann::json& within = one.at("ContainerHierarchyTexts");
        if (within.is_array()) {
          for (const nlohmann::json& name : within) line += name.get<std::string>() + ", ";
        }
        line += one.at("LeafNodeText").get<std::string>() + ": ";
        // Without a failure it was never begun.
        line += one.contains("Failure") ? one["Failure"].value("Message", "") : "by name";
        lines.push_back(line + "\n");
      }
    }
    std::sort(lines.begin(), lines.end());
    std::string text;
    for (const std::string& line : lines) text += line;
    return text;
  }
  // A suite that cleans up leaves nothing.
  void ExpectSanity(const std::vector<std::string>& more, const std::string& words,
                    const std::string& skipped = "") {
    const Outcome outcome = RunSanity(more);
    EXPECT_EQ(outcome.words, words);
    EXPECT_EQ(outcome.skipped, skipped);
    ExpectNothingLeft();
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
  std::string suite_ = "csi-sanity";
  std::string pool_filesystem_ = "xfs";
  std::string class_parameters_ = "csi.storage.k8s.io/fstype: xfs\n";
  std::string changes_ = "directIO: \"false\"\n";
};

class OwnDriverOlderSanityTest : public OwnDriverSanityTest {
 protected:
  OwnDriverOlderSanityTest() { suite_ = "csi-sanity-5.4"; }
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
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstBlockVolumesOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({"--csi.testvolumeaccesstype=block"}, kOfCentral);
}

TEST_F(OwnSubvolumesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDirectoriesSanityTest, HasNothingAgainstThoseOfADriverForAllNodes) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central"));
  ExpectSanity({}, kOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfAnOlderLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({}, kOfCentralAt12, kNewerThan12);
}

TEST_F(OwnDriverOlderSanityTest, HasNothingAgainstFilesystemsOfADriverOfItsLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({}, kOlderOfCentral);
}

TEST_F(OwnDriverOlderSanityTest, HasNothingAgainstBlockVolumesOfADriverOfItsLevel) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("central", "1.12"));
  ExpectSanity({"--csi.testvolumeaccesstype=block"}, kOlderOfCentral);
}

TEST_F(OwnDriverSanityTest, HasNothingAgainstADriverOfItsNodeAlone) {
  ASSERT_NO_FATAL_FAILURE(StartDriver("node"));
  ExpectSanity({"--ginkgo.skip=" + std::string(kComparesEncodings)}, kOfNode, kLeftOutByNode);
}

}  // namespace
}  // namespace volumed::own_driver_sanity_test
