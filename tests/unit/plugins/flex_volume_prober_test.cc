// The prober of flexVolume drivers, on real directories and a kernel that runs fake drivers.
#include "plugins/flex_volume_prober.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/manual_clock.h"
#include "base/simulated_scheduler.h"
#include "fakes/fake_kernel.h"
#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kGood[] = R"({"status":"Success","capabilities":{"attach":false}})";

class FlexVolumeProberTest : public ::testing::Test {
 protected:
  FlexVolumeProberTest()
      : prober_({scheduler_, nullptr, kernel_, log_},
                {.directory = root_, .first_wait = Duration::zero()},
                [this](const std::string& plugin) { changed_.push_back(plugin); }) {}

  // In the directory, and as a program of the kernel that answers `init` so.
  void Install(const std::string& driver, const std::string& file, const std::string& answer) {
    const std::string path = root_ + "/" + driver + "/" + file;
    answers_[path] = answer;
    kernel_.AddProgram(path, [this, path](FakeKernel&, const std::vector<std::string>& words) {
      asked_.push_back(words.at(0).substr(root_.size()) + " " + words.at(1));
      return ProgramEnd{0, answers_.at(path)};
    });
    fs::create_directories(root_ + "/" + driver);
    std::ofstream(path) << "#!/bin/sh\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  void Remove(const std::string& driver) {
    fs::remove_all(root_ + "/" + driver);
    kernel_.Remove(root_ + "/" + driver);
  }
  // "+vendor/driver" and "-vendor/driver" of what the manager would hear now.
  std::vector<std::string> Told() {
    std::vector<std::string> told;
    for (const ProbeEvent& event : prober_.Probe().events) {
      const bool added = event.op == ProbeOperation::kAddOrUpdate;
      EXPECT_EQ(event.plugin != nullptr, added);
      told.push_back((added ? "+" : "-") + event.plugin_name);
    }
    return told;
  }
  std::vector<std::string> Look(Duration for_time = std::chrono::milliseconds(100)) {
    prober_.LookAgain();
    scheduler_.RunFor(for_time);
    return Told();
  }

  TempDirectory scratch_;
  const std::string root_ = scratch_.path() + "/exec";
  ManualClock clock_;
  SimulatedScheduler scheduler_{1, clock_};
  FakeKernel kernel_;
  std::vector<std::string> lines_;
  Logger log_{LogOptions{LogLevel::kDebug, LogOptions::Target::kCallback,
                         [this](LogLevel, std::string_view line) { lines_.emplace_back(line); }},
              clock_};
  std::map<std::string, std::string> answers_;
  std::vector<std::string> asked_, changed_;
  FlexVolumeProber prober_;
};

TEST_F(FlexVolumeProberTest, ADriverIsThereOnceItHasAnsweredToInit) {
  Install("v~d", "d", kGood);
  ASSERT_TRUE(prober_.Init().ok());
  EXPECT_THAT(Told(), IsEmpty()) << "nobody waits for a driver";
  EXPECT_EQ(prober_.WhyMissing("v/d"), "flexVolume driver \"v/d\" has not answered to init yet");
  EXPECT_THAT(Look(), ElementsAre("+v/d"));
  EXPECT_THAT(asked_, ElementsAre("/v~d/d init"));
  EXPECT_THAT(changed_, ElementsAre("v/d"));
  EXPECT_THAT(Look(), IsEmpty()) << "nothing has changed";
}

TEST_F(FlexVolumeProberTest, WhatItSaysItCanIsWhatItsPluginCan) {
  Install("v~d", "d", R"({"status":"Success"})");
  Install("v~e", "e", kGood);
  ASSERT_TRUE(prober_.Init().ok());
  scheduler_.RunFor(std::chrono::milliseconds(100));
  for (const ProbeEvent& event : prober_.Probe().events) {
    EXPECT_EQ(event.plugin->AsAttachable() != nullptr, event.plugin_name == "v/d");
  }
}

TEST_F(FlexVolumeProberTest, ComesChangesGoesAndComesAgain) {
  ASSERT_TRUE(prober_.Init().ok());
  EXPECT_THAT(Look(), IsEmpty());
  Install("v~d", "d", kGood);
  EXPECT_THAT(Look(), ElementsAre("+v/d"));
  Install("v~d", "d", kGood);  // written anew
  EXPECT_THAT(Look(), ElementsAre("+v/d"));
  Remove("v~d");
  EXPECT_THAT(Look(), ElementsAre("-v/d"));
  EXPECT_EQ(
      prober_.WhyMissing("v/d"),
      "flexVolume driver \"v/d\" is not installed: there is no executable " + root_ + "/v~d/d");
  Install("v~d", "d", kGood);
  EXPECT_THAT(Look(), ElementsAre("+v/d"));
  EXPECT_THAT(changed_, ElementsAre("v/d", "v/d", "v/d", "v/d"));
}

TEST_F(FlexVolumeProberTest, AnInitThatFailsIsRepeatedAndKeepsNoOtherWaiting) {
  Install("v~bad", "bad", "what?");
  Install("v~good", "good", kGood);
  ASSERT_TRUE(prober_.Init().ok());
  EXPECT_THAT(Look(), ElementsAre("+v/good"));
  EXPECT_THAT(prober_.WhyMissing("v/bad"),
              HasSubstr("flexVolume driver v/bad: init failed: the driver ended with exit status "
                        "0: what it printed (5 bytes) is no JSON object"));
  answers_[root_ + "/v~bad/bad"] = kGood;
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_THAT(Told(), ElementsAre("+v/bad"));
  EXPECT_THAT(lines_, testing::Contains(HasSubstr("flexVolume driver cannot be used")));
}

TEST_F(FlexVolumeProberTest, AnAnswerOfADriverThatWasReplacedMeanwhileIsNotTaken) {
  Install("v~d", "d", R"({"status":"Success"})");
  ASSERT_TRUE(prober_.Init().ok());
  Remove("v~d");
  EXPECT_THAT(Look(), IsEmpty()) << "it went before it was ever known";
}

TEST_F(FlexVolumeProberTest, ADriverThatOthersMayChangeIsNotRun) {
  Install("v~d", "d", kGood);
  kernel_.SetAttributes(root_ + "/v~d/d", 0777, 0, 0);
  ASSERT_TRUE(prober_.Init().ok());
  EXPECT_THAT(Look(), IsEmpty());
  EXPECT_THAT(asked_, IsEmpty());
  EXPECT_THAT(prober_.WhyMissing("v/d"), HasSubstr("may be written by others than root"));
}

TEST_F(FlexVolumeProberTest, ADriverThatAttachesNeedsAVendor) {
  Install("plain", "plain", R"({"status":"Success"})");
  Install("other", "other", kGood);
  ASSERT_TRUE(prober_.Init().ok());
  EXPECT_THAT(Look(), ElementsAre("+other"));
  EXPECT_THAT(prober_.WhyMissing("plain"), HasSubstr("needs a vendor"));
}

}  // namespace
}  // namespace volumed
