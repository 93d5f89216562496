#include "interop/own_sanity_fixture.h"

#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "interop/pd_harness.h"

namespace volumed {
namespace {

// Why a case has failed: the status of the driver, if that is why, else all of the suite's words on
// one line.
std::string ReasonOf(const std::string& message) {
  static const std::regex kStatus("rpc error: (code = .*)");
  static const std::regex kBlanks("\\s+");
  std::smatch found;
  if (std::regex_search(message, found, kStatus)) return found[1];
  return std::regex_replace(message, kBlanks, " ");
}

// The cases of this state, as Outcome says.
std::string CasesOf(const std::string& json, const std::string& state) {
  const nlohmann::json suites = nlohmann::json::parse(ReadText(json), nullptr, false);
  std::vector<std::string> lines;
  if (!suites.is_array()) return "no report";
  for (const nlohmann::json& suite : suites) {
    for (const nlohmann::json& one : suite.at("SpecReports")) {
      if (one.at("State") != state) continue;
      std::string line;
      const nlohmann::json& within = one.at("ContainerHierarchyTexts");
      if (within.is_array()) {
        for (const nlohmann::json& name : within) line += name.get<std::string>() + ", ";
      }
      line += one.at("LeafNodeText").get<std::string>() + ": ";
      // Without a failure it was never begun.
      line += one.contains("Failure") ? ReasonOf(one["Failure"].value("Message", "")) : "by name";
      lines.push_back(line + "\n");
    }
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

void OwnSanityFixture::SetUp() {
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
  std::filesystem::create_directory(pool());
  ASSERT_EQ(::mount(disk_->path().c_str(), pool().c_str(), pool_filesystem_.c_str(), 0, nullptr),
            0);
  settings["pool"] = "{fast: " + pool() + "}";
  settings["csi-serve"] = endpoint();
  settings["csi-max-volumes"] = "3";
  settings["csi-target-roots"] = "[" + scratch() + "]";
  settings["node-name"] = "n1";
}

void OwnSanityFixture::TearDown() {
  if (AgentRuns()) KillAgent();  // a test that was skipped has started none
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

void OwnSanityFixture::StartDriver(const std::string& profile, const std::string& level) {
  settings["csi-profile"] = profile;
  settings["csi-serve-level"] = level;
  ASSERT_NO_FATAL_FAILURE(StartReadyAgent());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Exists(endpoint()); })) << FailedParts();
}

OwnSanityFixture::Outcome OwnSanityFixture::RunSanity(const std::vector<std::string>& more) {
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
                                      "--csi.testvolumesize=" + std::to_string(volume_bytes_),
                                      "--csi.testvolumeexpandsize=" + std::to_string(grown_bytes_),
                                      "--csi.testvolumeparameters=" + parameters,
                                      "--csi.testvolumemutableparameters=" + changes,
                                      "--csi.testnodevolumeattachlimit",
                                      "--ginkgo.no-color",
                                      "--ginkgo.json-report=" + cases,
                                      "--ginkgo.v"};
  command.insert(command.end(), more.begin(), more.end());
  PeerProcess sanity;
  EXPECT_TRUE(sanity.Start(command, report, report));
  Outcome outcome;
  outcome.status = sanity.Wait();
  outcome.skipped = CasesOf(cases, "skipped");
  outcome.failed = CasesOf(cases, "failed");
  const std::string text = ReadText(report);
  const std::string begin = " -- ";
  const size_t said = text.rfind(begin);
  const size_t from = said == std::string::npos ? 0 : said + begin.size();
  outcome.words =
      said == std::string::npos ? text : text.substr(from, text.find('\n', from) - from);
  RecordProperty("csi_sanity", outcome.words);
  return outcome;
}

void OwnSanityFixture::ExpectSanity(const std::vector<std::string>& more, const std::string& words,
                                    const std::string& skipped) {
  const Outcome outcome = RunSanity(more);
  EXPECT_EQ(outcome.status, 0) << ReadText(scratch() + "/sanity.log");
  EXPECT_EQ(outcome.words, words);
  EXPECT_EQ(outcome.skipped, skipped);
  ExpectNothingLeft();
}

std::string OwnSanityFixture::LeftInPool() const {
  std::string left;
  for (const char* kind : {"/volumes", "/cuts"}) {
    if (!std::filesystem::exists(pool() + kind)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(pool() + kind)) {
      left += entry.path().filename().string() + " ";
    }
  }
  return left;
}

// The cut of a clone goes after the answer to whoever made the clone.
void OwnSanityFixture::ExpectNothingLeft() const {
  EXPECT_TRUE(Eventually(kPatience, [this] { return LeftInPool().empty(); })) << LeftInPool();
}

}  // namespace volumed
