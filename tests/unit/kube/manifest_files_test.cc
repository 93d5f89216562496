#include "kube/manifest_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kube/manifest_reader.h"
#include "unit/kube/kube_testing.h"

namespace volumed {
namespace {

// Files and the time, without a disk.
class ManifestFilesTest : public testing::Test {
 protected:
  void Read(const std::string& file, const std::string& text, bool by_event = true) {
    ManifestReading reading{.file = file};
    reading.Take(DecodeManifest("/d/" + file, text));
    reading.stamp.size = static_cast<int64_t>(text.size());
    files_.Apply(std::move(reading), Look(by_event));
  }
  void Found(const std::string& file, ManifestReading::What what,
             const std::string& unproven = "") {
    files_.Apply(
        {file, what, what == ManifestReading::What::kUnreadable ? "cannot be read: EIO" : "", {}},
        Look(true, unproven));
  }
  ManifestLook Look(bool by_event, const std::string& unproven = "") {
    return {now_, by_event, ++scan_, unproven};
  }
  // "x:present w:held".
  std::string States() {
    ManifestMoment moment;
    moment.now = now_;
    moment.now_unix_millis = 1000 + (now_ - TimePoint()) / std::chrono::milliseconds(1);
    moment.settle = std::chrono::seconds(10);
    moment.busy = busy_;
    moment.elsewhere = elsewhere_;
    judgement_ = files_.Judge(moment);
    std::string text;
    for (const ObjectWithOrigin& object : judgement_.objects) {
      static constexpr const char* kNames[] = {":present", ":held", ":going"};
      text += (text.empty() ? "" : " ") + MetaOf(*object.object).name +
              kNames[static_cast<int>(object.presence)];
    }
    return text;
  }
  void Pass(int seconds) { now_ += std::chrono::seconds(seconds); }

  ManifestFiles files_{"/d"};
  uint64_t scan_ = 0;
  TimePoint now_{};
  std::map<std::string, std::string> busy_;
  ManifestDoubts elsewhere_;
  ManifestJudgement judgement_;
};

TEST_F(ManifestFilesTest, WhatGoesIsLookedAtOnceMoreAfterItsTime) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  EXPECT_EQ(States(), "a:present");
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "a:going");
  EXPECT_EQ(judgement_.next_due, now_ + std::chrono::seconds(10));
  EXPECT_EQ(judgement_.objects.front().goes_at_unix_millis, 11'000);
  Pass(10);
  EXPECT_EQ(States(), "a:going");
  EXPECT_EQ(judgement_.due_files, std::set<std::string>{"a.yaml"});
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "");
  EXPECT_FALSE(files_.HasKnownObjects());
}

TEST_F(ManifestFilesTest, WhatTheLastLookFindsStays) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "a:going");
  Pass(10);
  Read("a.yaml", ConfigMapYaml("a", "2"));
  EXPECT_EQ(States(), "a:present");
}

TEST_F(ManifestFilesTest, WritersDelayAndDoNotRenew) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kGone);
  States();
  busy_ = {{"b.yaml", "is being written"}};
  Pass(10);
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "a:held");
  EXPECT_EQ(judgement_.incomplete_because, "/d/b.yaml is being written");
  busy_.clear();
  EXPECT_EQ(States(), "");
}

// What may have gone there was not missed for as long as the doubt lasted.
TEST_F(ManifestFilesTest, ADoubtAboutAnotherDirectoryRenewsTheSettleTime) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "a:going");
  ManifestDoubts suspect;
  suspect.suspect = {"second", "/e/q.yaml", "is not right in all its parts", scan_ + 100};
  ManifestDoubts absent;
  absent.absent = {"second", "/e", "is missing", now_};
  for (const ManifestDoubts& doubts : {suspect, absent}) {
    elsewhere_ = doubts;
    EXPECT_EQ(States(), "a:held");
    EXPECT_EQ(judgement_.objects.front().may_be_in_source, "second");
    Pass(100);
    EXPECT_EQ(States(), "a:held");
    elsewhere_ = {};
    EXPECT_EQ(States(), "a:going");
    EXPECT_EQ(judgement_.next_due, now_ + std::chrono::seconds(10));
  }
}

TEST_F(ManifestFilesTest, AnUnprovenAbsenceIsHeldUntilAnEventOfItsFileShowsIt) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kGone, "nobody saw it");
  Pass(100);
  EXPECT_EQ(States(), "a:held");
  EXPECT_EQ(judgement_.incomplete_because, "nobody saw it");
  // The directory is listed again for another reason, and the file is there without the object.
  Read("a.yaml", ConfigMapYaml("b", "1"), /*by_event=*/false);
  EXPECT_EQ(States(), "a:held b:present");
  Read("a.yaml", ConfigMapYaml("b", "2"), /*by_event=*/true);
  EXPECT_EQ(States(), "a:going b:present");
}

TEST_F(ManifestFilesTest, WhatWasSeenToGoIsNotDoubtedByALaterListing) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kGone);
  Found("a.yaml", ManifestReading::What::kGone, "nobody saw it");
  EXPECT_EQ(States(), "a:going");
  files_.DoubtAbsences("events were lost");
  EXPECT_EQ(States(), "a:held");
}

TEST_F(ManifestFilesTest, AnObjectThatIsInAnotherFileNowIsPresent) {
  Read("a.yaml", ConfigMapYaml("x", "1"));
  Read("b.yaml", ConfigMapYaml("x", "1"));
  EXPECT_EQ(States(), "x:present x:present");
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "x:present");
  EXPECT_EQ(judgement_.objects.front().file, "/d/b.yaml");
}

TEST_F(ManifestFilesTest, AnUnreadableFileSaysHowMuchOfItStays) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Found("a.yaml", ManifestReading::What::kUnreadable);
  EXPECT_EQ(States(), "a:held");
  EXPECT_EQ(ProblemsText(judgement_.problems),
            "/d/a.yaml: cannot be read: EIO; 1 object of its last good state stay\n");
  Found("a.yaml", ManifestReading::What::kChanging);
  EXPECT_EQ(States(), "a:held");
  EXPECT_TRUE(files_.AbsentFrom({"a.yaml"}).empty());
  EXPECT_EQ(files_.AbsentFrom({"b.yaml"}), std::vector<std::string>{"a.yaml"});
}

TEST_F(ManifestFilesTest, AcceptedDisorderHidesNothingUntilItChanges) {
  Read("a.yaml", ConfigMapYaml("a", "1"));
  Read("bad.yaml", "{{{");
  files_.Accept({});
  EXPECT_EQ(States(), "a:present");
  EXPECT_EQ(judgement_.incomplete_because, "");
  Found("a.yaml", ManifestReading::What::kGone);
  EXPECT_EQ(States(), "a:going");
  Read("bad.yaml", "{{{{");
  EXPECT_EQ(States(), "a:held");
}

TEST_F(ManifestFilesTest, TwoOfOneNameInAFileAreAProblemOfTheSecond) {
  Read("a.yaml", ConfigMapYaml("a", "1") + "---\n" + ConfigMapYaml("a", "2"));
  EXPECT_EQ(States(), "a:present");
  EXPECT_NE(ProblemsText(judgement_.problems).find("twice"), std::string::npos);
}

TEST_F(ManifestFilesTest, AnUnknownFieldIsAWarningAndNoDisorderUntilItIsMended) {
  const std::string slip = ConfigMapYaml("a", "1") + "dta: {k: v}\n";
  Read("a.yaml", slip);
  EXPECT_EQ(States(), "a:present");
  EXPECT_EQ(ProblemsText(judgement_.problems), "");
  EXPECT_EQ(judgement_.incomplete_because, "");
  EXPECT_EQ(
      ProblemsText(judgement_.warnings),
      "/d/a.yaml: document 1: ConfigMap default/a: dta: is not a field that Kubernetes knows, "
      "and is ignored; did you mean \"data\"?\n");
  Read("a.yaml", ConfigMapYaml("a", "1"));
  States();
  EXPECT_EQ(ProblemsText(judgement_.warnings), "");
}

TEST(ManifestNames, AreYamlAndJsonWithoutDot) {
  for (const char* good : {"a.yaml", "a.yml", "a.json", "x.y.yaml"})
    EXPECT_TRUE(IsManifestName(good));
  for (const char* bad : {"", ".a.yaml", "a.yaml~", "a.txt", "yaml", "..data", "a.yaml.swp"}) {
    EXPECT_FALSE(IsManifestName(bad)) << bad;
  }
}

}  // namespace
}  // namespace volumed
