// Absence in the files of one directory: what is evidence, what a file in disorder holds, and what
// that costs.
#include <poll.h>

#include "unit/kube/manifest_absence_fixture.h"

namespace volumed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// ---- what is evidence ---------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, AnUnlinkThatWasSeenIsEvidenceTheLastFilesToo) {
  settle_ = milliseconds(200);
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  EXPECT_EQ(StateOf("b"), "present");
  RunUntilState("a", "absent");
  fs::remove(directory_ / "b.yaml");
  RunUntilState("b", "going");
  RunUntilState("b", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestAbsenceTest, WhatIsAboutToGoIsToldWithItsTime) {
  settle_ = milliseconds(300);
  HaveFiles({"a"});
  const int64_t before = scheduler_->clock().WallUnixMillis();
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  const int64_t goes_at = GoesAt("a");
  EXPECT_GE(goes_at, before + 300);
  EXPECT_LE(goes_at, scheduler_->clock().WallUnixMillis() + 300);
  EXPECT_NE(ReasonOf("a").find("a.yaml any more"), std::string::npos);
  RunUntilState("a", "absent");
  EXPECT_GE(scheduler_->clock().WallUnixMillis(), goes_at);
}

TEST_F(ManifestAbsenceTest, ARenameOutCountsAsAnUnlink) {
  HaveFiles({"a"});
  fs::rename(directory_ / "a.yaml", root_ / "away.yaml");
  RunUntilState("a", "absent");
}

TEST_F(ManifestAbsenceTest, AFileInGoodOrderWithoutTheObjectIsEvidenceAfterTheSettleTime) {
  settle_ = milliseconds(300);
  MakeAndStart();
  Write("a.yaml", Pair("x", "w"));
  RunUntilState("w", "present");
  const TimePoint start = scheduler_->clock().Now();
  Write("a.yaml", Map("x"));
  RunUntilState("w", "going");
  RunUntilState("w", "absent");
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
  EXPECT_EQ(StateOf("x"), "present");
}

TEST_F(ManifestAbsenceTest, OtherFilesRenewNobodysSettleTime) {
  settle_ = milliseconds(500);
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  const int64_t goes_at = GoesAt("a");
  for (int i = 0; i < 8 && StateOf("a") == "going"; ++i) {
    EXPECT_EQ(GoesAt("a"), goes_at);
    RunFor(milliseconds(50));
    Replace("b.yaml", PodYaml("b", "uid-b"));
    if (i % 2 == 0) fs::remove(directory_ / "b.yaml");
  }
  Replace("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("a", "absent");
  RunUntilState("b", "present");
}

TEST_F(ManifestAbsenceTest, AnObjectThatWasBackHasItsWholeTimeAgain) {
  settle_ = milliseconds(400);
  HaveFiles({"a"});
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  RunFor(milliseconds(250));
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  const TimePoint start = scheduler_->clock().Now();
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
}

TEST_F(ManifestAbsenceTest, AnotherSettleTimeCountsForWhatIsAbsentAlready) {
  settle_ = hours(1);
  HaveFiles({"a"});
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  source_->SetSettle(milliseconds(10));
  RunUntilState("a", "absent");
}

// ---- files in disorder --------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, AFileInDisorderKeepsItsLastGoodObjects) {
  const std::vector<std::pair<std::string, std::function<void()>>> ways = {
      {"not right in all its parts", [&] { Write("a.yaml", "{{{"); }},
      {"holds no object", [&] { Write("a.yaml", ""); }},
      {"cannot follow its link: ENOENT",
       [&] {
         fs::remove(directory_ / "a.yaml");
         fs::create_symlink("nowhere", directory_ / "a.yaml");
       }},
      {"cannot follow its link: ELOOP",
       [&] {
         fs::remove(directory_ / "a.yaml");
         fs::create_symlink("a.yaml", directory_ / "a.yaml");
       }},
      {"is larger than", [&] { Write("a.yaml", std::string(kMaxManifestBytes + 1, ' ')); }},
      {"is not a regular file",
       [&] {
         fs::remove(directory_ / "a.yaml");
         fs::create_directory(directory_ / "a.yaml");
       }},
  };
  HaveFiles({"a", "b"});
  for (const auto& [why, spoil] : ways) {
    SCOPED_TRACE(why);
    spoil();
    ExpectHeld("a", why);
    EXPECT_EQ(StateOf("b"), "present");
    fs::remove_all(directory_ / "a.yaml");
    Write("a.yaml", PodYaml("a", "uid-a"));
    RunUntilState("a", "present");
    EXPECT_EQ(last_->incomplete_because, "");
  }
}

TEST_F(ManifestAbsenceTest, WhatIsPresentIsTakenWhateverDisorderTheRestIsIn) {
  HaveFiles({"a"});
  Write("a.yaml", PodYaml("new", "uid-new") + "---\nkind: [");
  RunUntilState("new", "present");
  ExpectHeld("a", "not right in all its parts");
}

TEST_F(ManifestAbsenceTest, AKindOfSomebodyElseIsNoDisorderButATypingErrorIs) {
  HaveFiles({"a", "b"});
  Write("a.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n");
  RunUntilState("a", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
  EXPECT_TRUE(HasProblem("is not handled"));
  Write("b.yaml", "apiVersion: v1\nkind: Podd\nmetadata: {name: b}\n");
  ExpectHeld("b", "not right in all its parts");
}

// They were taken for somebody else's Pod, and the pod went with its data.
TEST_F(ManifestAbsenceTest, AnApiVersionWithATypingErrorIsDisorder) {
  HaveFiles({"a"});
  const std::string pod = PodYaml("a", "uid-a");
  ASSERT_NE(pod.find("apiVersion: v1\n"), std::string::npos);
  for (const std::string version :
       {"core/v1", "v1/", "/v1", "api/v1", "k8s.io/v1", "kubernetes.io/v1", "storage.k8s.io/v1"}) {
    std::string typed = pod;
    typed.replace(typed.find(": v1\n") + 2, 2, version);
    Write("a.yaml", typed);
    ExpectHeld("a", "not right in all its parts");
    EXPECT_TRUE(HasProblem(version)) << Problems();
    Write("a.yaml", pod);
    RunUntilState("a", "present");
  }
  // Somebody else's.
  Write("a.yaml", "apiVersion: example.com/v1\nkind: Pod\nmetadata: {name: a}\n");
  RunUntilState("a", "absent");
}

// A manifest that was saved from a cluster took its pod away at once.
TEST_F(ManifestAbsenceTest, WhatAServerSetsIsLeftOutOfAManifest) {
  HaveFiles({"a"});
  std::string pod = PodYaml("a", "uid-a") + "status: {phase: Succeeded}\n";
  pod.insert(pod.find("  uid:"),
             "  deletionTimestamp: \"2024-01-01T00:00:00Z\"\n  deletionGracePeriodSeconds: 0\n");
  Write("b.yaml", PodYaml("b", "uid-b"));
  Write("a.yaml", pod);
  RunUntilState("b", "present");
  Settle();
  ASSERT_EQ(StateOf("a"), "present");
  for (const ObjectWithOrigin& one : last_->objects) {
    EXPECT_FALSE(MetaOf(*one.object).deletion_unix_millis) << MetaOf(*one.object).name;
    const Pod* const read = std::get_if<Pod>(one.object.get());
    EXPECT_TRUE(read == nullptr || read->status.phase == PodStatus().phase);
  }
}

TEST_F(ManifestAbsenceTest, WhatMayHaveMovedIntoAFileInDisorderIsHeld) {
  HaveFiles({"a"});
  Write("b.yaml", PodYaml("a", "uid-a") + "---\nkind: [a broken end");
  RunUntil([this] { return HasProblem("b.yaml"); });
  Write("b.yaml", "{{{ all broken");
  RunUntil([this] { return HasProblem("b.yaml: document 1: line"); });
  fs::remove(directory_ / "a.yaml");
  ExpectHeld("a", "may be in");
  // It is not there, as is seen when the file is right again: its time begins then.
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("a", "absent");
  EXPECT_EQ(StateOf("b"), "present");
}

TEST_F(ManifestAbsenceTest, AFileThatWasInDisorderBeforeTheObjectCameHoldsNothingElse) {
  fs::create_directory(directory_);
  Write("old.yaml", "{{{");
  Write("a.yaml", PodYaml("a", "uid-a"));
  Start();
  RunUntilState("a", "present");
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
  // Until it changes.
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  Write("old.yaml", "{{{{");
  Settle();
  fs::remove(directory_ / "a.yaml");
  ExpectHeld("a", "old.yaml");
}

TEST_F(ManifestAbsenceTest, AFileThatWasBrokenMeanwhileHasTheWholeSettleTimeOnceItIsRight) {
  settle_ = milliseconds(400);
  MakeAndStart();
  Write("a.yaml", Pair("x", "w"));
  RunUntilState("w", "present");
  Write("a.yaml", "{{{");
  RunUntilState("w", "held");
  RunFor(2 * settle_);
  const TimePoint start = scheduler_->clock().Now();
  Write("a.yaml", Map("x"));
  RunUntilState("w", "going");
  RunUntilState("w", "absent");
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
}

TEST_F(ManifestAbsenceTest, NothingGoesWhileAFileIsBeingWritten) {
  settle_ = milliseconds(100);
  HaveFiles({"a", "b"});
  {
    std::ofstream slow(directory_ / "b.yaml", std::ios::trunc);
    slow << PodYaml("b", "uid-b") << std::flush;
    RunFor(milliseconds(20));
    fs::remove(directory_ / "a.yaml");
    RunFor(5 * settle_);
    EXPECT_EQ(StateOf("a"), "held");
    EXPECT_NE(ReasonOf("a").find("is being written"), std::string::npos);
    slow << "---\n" << PodYaml("a", "uid-a");
  }
  RunUntilState("a", "present");
}

// A touch of it had it read half-way, and what was to come went once the settle time was over.
TEST_F(ManifestAbsenceTest, AFileThatIsWrittenByAnotherNameIsNotReadHalfWay) {
  settle_ = milliseconds(100);
  const fs::path other = root_ / "other.yaml";
  MakeAndStart();
  Write("a.yaml", Pair("x", "w"));
  RunUntilState("w", "present");
  fs::create_hard_link(directory_ / "a.yaml", other);
  std::ofstream slow(other, std::ios::trunc);
  slow << Map("x") << std::flush;
  RunFor(milliseconds(20));
  ASSERT_EQ(::utimensat(AT_FDCWD, (directory_ / "a.yaml").c_str(), nullptr, 0), 0);
  RunFor(5 * settle_);
  EXPECT_NE(StateOf("w"), "going");
  EXPECT_NE(StateOf("w"), "absent");
  slow << "---\n" << Map("v");
  slow.close();
  // No event tells that it was closed.
  RunUntilState("v", "present");
  RunUntilState("w", "absent");
}

// ---- load ---------------------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, TheDirectoryAboveDoesNotWakeForOtherFilesThere) {
  HaveFiles({"a"});
  RunFor(milliseconds(50));
  const int lists = lists_;
  for (int i = 0; i < 100; ++i) {
    WriteFile(root_ / "neighbour", std::to_string(i));
    fs::rename(root_ / "neighbour", root_ / "other");
  }
  fs::remove(root_ / "other");
  // A descriptor that is readable is what wakes the loop.
  pollfd events{source_->event_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&events, 1, 0), 0);
  EXPECT_EQ(lists_, lists);
}

TEST_F(ManifestAbsenceTest, ALargeFileDelaysNoOther) {
  HaveFiles({"a"});
  std::string large;
  for (int i = 0; large.size() < 4 * 1024 * 1024; ++i) {
    large += "---\n" + Map("large-" + std::to_string(i), std::string(2000, 'x'));
  }
  Write("large.yaml", large);
  Write("small.yaml", PodYaml("small", "uid-small"));
  RunUntilState("small", "present");
  EXPECT_EQ(StateOf("large-0"), "absent") << "the large file came first";
  RunUntilState("large-0", "present");
}

TEST_F(ManifestAbsenceTest, ALargeFileThatIsRewrittenWhileItIsReadIsReadAgain) {
  MakeAndStart();
  const auto large = [](const std::string& name) {
    return Map(name, std::string(3 * 1024 * 1024, 'x'));
  };
  for (int i = 0; i < 5; ++i) {
    Replace("large.yaml", large("v" + std::to_string(i)));
    RunFor(milliseconds(3));
  }
  RunUntilState("v4", "present");
  for (int i = 0; i < 4; ++i) RunUntilState("v" + std::to_string(i), "absent");
}

}  // namespace
}  // namespace volumed
