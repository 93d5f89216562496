// Absence at a start, against what the last agent knew, and the administrator's word about it.
#include <atomic>

#include "unit/kube/manifest_absence_fixture.h"

namespace volumed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// ---- starts -------------------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, WhatWasRemovedFromTheKnownDirectoryWhileNobodyLookedIsGone) {
  settle_ = milliseconds(200);
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  const TimePoint start = scheduler_->clock().Now();
  Restart();
  EXPECT_EQ(StateOf("a"), "going");
  RunUntilState("a", "absent");
  EXPECT_GE(scheduler_->clock().Now() - start, settle_);
  EXPECT_EQ(StateOf("b"), "present");
}

TEST_F(ManifestAbsenceTest, AStartHoldsAllIfTheDirectoryIsEmptyMissingOrAnotherOne) {
  HaveFiles({"a", "b"});
  const SourceMemory memory = MemoryOf(*last_);
  const auto start = [&](const char* why) {
    SCOPED_TRACE(why);
    source_.reset();
    memory_ = memory;
    StartAnew();
    ExpectHeld("a", why);
    ExpectHeld("b", why);
  };
  fs::create_directory(root_ / "kept");
  for (const char* name : {"a.yaml", "b.yaml"}) {
    fs::rename(directory_ / name, root_ / "kept" / name);
  }
  start("held no manifest at all");
  fs::rename(directory_, root_ / "away");
  start("No such file");
  fs::create_directory(directory_);
  start("another one");
  Write("c.yaml", PodYaml("c", "uid-c"));
  start("another one");
  EXPECT_EQ(StateOf("c"), "present");
}

// A tool that fills an empty directory file by file is in no hurry.
TEST_F(ManifestAbsenceTest, AfterAStartInAnEmptyDirectoryOneFileDoesNotProveTheRestAway) {
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  fs::remove(directory_ / "b.yaml");
  Restart();
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  ExpectHeld("b", "held no manifest at all");
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("b", "present");
  EXPECT_EQ(last_->incomplete_because, "");
}

// The next start took the directory, which had another file by then, for proof that the rest was
// removed: a pod went with its data.
TEST_F(ManifestAbsenceTest, WhatIsHeldAfterAStartInAnEmptyDirectoryIsHeldAfterTheNextOne) {
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  fs::remove(directory_ / "b.yaml");
  Restart();
  Write("c.yaml", PodYaml("c", "uid-c"));
  RunUntilState("c", "present");
  for (int start = 0; start < 2; ++start) {
    Restart();
    ExpectHeld("a", "held no manifest at all");
    ExpectHeld("b", "held no manifest at all");
  }
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("b", "present");
  Restart();
  ExpectHeld("a", "held no manifest at all");
  // Once it was back, it goes as any other.
  fs::remove(directory_ / "b.yaml");
  RunUntilState("b", "absent");
  source_->Accept();
  RunUntilState("a", "absent");
  EXPECT_TRUE(last_->unproven.empty());
  Restart();
  EXPECT_EQ(StateOf("a"), "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestAbsenceTest, AtAStartAnyFileInDisorderHoldsWhatIsAbsent) {
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  Write("old.yaml", "{{{");
  Write("b.yaml", "{{{");
  Restart();
  ExpectHeld("a", "may be in");
  ExpectHeld("b", "b.yaml");
}

TEST_F(ManifestAbsenceTest, AnotherDirectoryThatHasAllBecomesTheKnownOneAtAStart) {
  HaveFiles({"a", "b"});
  fs::rename(directory_, root_ / "away");
  fs::copy(root_ / "away", directory_, fs::copy_options::recursive);
  Restart();
  EXPECT_EQ(StateOf("a"), "present");
  EXPECT_EQ(last_->incomplete_because, "");
  fs::remove(directory_ / "a.yaml");
  Restart();
  RunUntilState("a", "absent");
}

// As a disk does that is put back to an older image of itself.
TEST_F(ManifestAbsenceTest, AnOlderStateOfTheDirectoryWasTheKnownOne) {
  std::optional<KnownDirectory> before;
  seams_.identify = [&](const Descriptor& directory) -> Result<KnownDirectory> {
    ASSIGN_OR_RETURN(KnownDirectory now, IdentifyDirectory(directory));
    if (before) now.changed_unix_nanos = before->changed_unix_nanos;
    return now;
  };
  HaveFiles({"a"});
  if (!last_->directory->changed_unix_nanos) GTEST_SKIP() << "skipped: needs a lasting filesystem";
  const KnownDirectory older = *last_->directory;
  ::usleep(20'000);  // times of change are told in ticks of the kernel's clock
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntilState("b", "present");
  EXPECT_GT(last_->directory->changed_unix_nanos, older.changed_unix_nanos);
  fs::remove(directory_ / "b.yaml");
  before = older;
  Restart();
  ExpectHeld("b", "older state of the known one");
  EXPECT_EQ(StateOf("a"), "present");
  // Whatever happens to it later.
  before.reset();
  Restart();
  ExpectHeld("b", "older state of the known one");
  source_->Accept();
  RunUntilState("b", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestAbsenceTest, ADirectoryThatCannotBeRecognisedIsAnotherOneAtEachStart) {
  seams_.identify = [](const Descriptor&) { return KnownDirectory{"fuse", "", std::nullopt, {}}; };
  HaveFiles({"a", "b"});
  // While the agent runs it is known by its inode, which is watched.
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
  Restart();
  EXPECT_EQ(last_->incomplete_because, "");
  fs::remove(directory_ / "b.yaml");
  Restart();
  ExpectHeld("b", "another one");
}

TEST_F(ManifestAbsenceTest, ASecretIsUnknownWhileItsFileIsInDisorderAtAStart) {
  fs::create_directory(directory_);
  Write("s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: v}\n");
  Write("a.yaml", PodYaml("a", "uid-a"));
  Start();
  RunUntilState("s", "present");
  // While the agent runs, its last content is there.
  Write("s.yaml", "{{{");
  RunUntilState("s", "held");
  Restart();
  EXPECT_EQ(StateOf("s"), "unknown");
  EXPECT_NE(ReasonOf("s").find("s.yaml"), std::string::npos);
  fs::remove(directory_ / "s.yaml");
  RunUntilState("s", "absent");
}

TEST_F(ManifestAbsenceTest, ASourceThatIsOnRecordIsCompleteThoughItsDirectoryIsMissing) {
  memory_ = SourceMemory{{}, KnownDirectory{"ext4", "u", 1, 1}};
  StartAnew();
  EXPECT_TRUE(last_->complete);
  EXPECT_EQ(Names(), "");
  EXPECT_NE(last_->incomplete_because, "");
}

// ---- the administrator's word -------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, AcceptTakesAwayAtOnceWhatIsHeldOrGoing) {
  settle_ = hours(1);
  HaveFiles({"a", "b", "c"});
  Write("a.yaml", "{{{");
  fs::remove(directory_ / "b.yaml");
  RunUntil([this] { return StateOf("a") == "held" && StateOf("b") != "present"; });
  source_->Accept();
  RunUntil([this] { return StateOf("a") == "absent" && StateOf("b") == "absent"; });
  EXPECT_EQ(StateOf("c"), "present");
  // The file that is accepted hides nothing any more, until it changes.
  EXPECT_EQ(last_->incomplete_because, "");
  fs::remove(directory_ / "c.yaml");
  RunUntilState("c", "going");
}

TEST_F(ManifestAbsenceTest, AcceptMakesTheDirectoryThatIsThereTheKnownOne) {
  HaveFiles({"a"});
  fs::rename(directory_, root_ / "away");
  fs::create_directory(directory_);
  Write("b.yaml", PodYaml("b", "uid-b"));
  ExpectHeld("a", "another one");
  source_->Accept();
  RunUntilState("a", "absent");
  EXPECT_EQ(last_->incomplete_because, "");
  fs::remove(directory_ / "b.yaml");
  RunUntilState("b", "absent");
}

TEST_F(ManifestAbsenceTest, AcceptOfADirectoryThatIsMissingTakesAllAndCompletesANewOne) {
  Start();
  RunUntil([] { return true; });
  EXPECT_FALSE(last_->complete);
  source_->Accept();
  RunUntil([this] { return last_->complete; });
  fs::create_directory(directory_);
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  fs::rename(directory_, root_ / "away");
  RunUntilState("a", "held");
  source_->Accept();
  RunUntilState("a", "absent");
}

TEST_F(ManifestAbsenceTest, AcceptDoesNotTakeWhatLeavesAfterIt) {
  settle_ = hours(1);
  HaveFiles({"a", "b"});
  Write("a.yaml", "{{{");
  RunUntilState("a", "held");
  source_->Accept();
  fs::remove(directory_ / "b.yaml");
  RunUntilState("a", "absent");
  RunUntilState("b", "going");
}

// ---- what was not looked into yet ---------------------------------------------------------------

// What is on record of it made its list complete, and nobody could tell that nothing had been read.
TEST_F(ManifestAbsenceTest, ADirectoryOnRecordPassedForReadBeforeItsLargeFileWas) {
  HaveFiles({"a"});
  EXPECT_EQ(last_->unseen_because, "");
  source_.reset();
  memory_ = MemoryOf(*last_);
  Write("large.yaml", Map("large", std::string(512 * 1024, 'x')));
  last_.reset();
  bool was_unseen = false;
  Start();
  RunUntil([&] {
    EXPECT_TRUE(last_->complete);
    if (last_->unseen_because.empty()) return true;
    was_unseen = true;
    EXPECT_EQ(last_->unseen_because, kSourceIsBeingRead);
    return false;
  });
  EXPECT_TRUE(was_unseen);
  EXPECT_TRUE(Has("large")) << "it was not read yet";
}

// What was deleted for good by then may be what a PersistentVolume in the known one names.
TEST_F(ManifestAbsenceTest, AMountPointWithoutItsDiskPassedForTheDirectoryThatWasLookedInto) {
  HaveFiles({"a"});
  fs::rename(directory_, root_ / "away");
  fs::create_directory(directory_);
  Restart();
  RunUntil([&] { return last_->unseen_because.find("is another one") != std::string::npos; });
  fs::remove(directory_);
  fs::rename(root_ / "away", directory_);
  RunUntil([&] { return last_->unseen_because.empty(); });
}

TEST_F(ManifestAbsenceTest, AnotherDirectoryIsSeenOnceItIsAccepted) {
  HaveFiles({"a"});
  fs::rename(directory_, root_ / "away");
  fs::create_directory(directory_);
  Restart();
  RunUntil([&] { return last_->unseen_because.find("is another one") != std::string::npos; });
  source_->Accept();
  RunUntil([&] { return last_->unseen_because.empty(); });
}

TEST_F(ManifestAbsenceTest, ADirectoryPassedForReadBeforeAFileWasThatSomebodyWrote) {
  HaveFiles({"a"});
  source_.reset();
  memory_ = MemoryOf(*last_);
  Write("b.yaml", Map("b"));
  {
    const std::ofstream writer(directory_ / "b.yaml", std::ios::app);
    last_.reset();
    Start();
    RunUntil(
        [&] { return last_->unseen_because.find("b.yaml is being written") != std::string::npos; });
    EXPECT_FALSE(Has("b"));
  }
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_TRUE(Has("b"));
}

TEST_F(ManifestAbsenceTest, ADirectoryPassedForReadWithALinkThatLedNowhere) {
  HaveFiles({"a"});
  fs::create_symlink(root_ / "disk" / "b.yaml", directory_ / "b.yaml");
  fs::create_symlink(root_ / "disk" / "c.yaml", directory_ / "c.yaml");
  Restart();
  RunUntil([&] {
    return last_->unseen_because.find("b.yaml cannot follow its link: ") != std::string::npos &&
           last_->unseen_because.ends_with(", and 1 more files were not read");
  });
  fs::remove(directory_ / "b.yaml");
  fs::create_directory(root_ / "disk");
  std::ofstream(root_ / "disk" / "c.yaml") << Map("c");
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_TRUE(Has("c"));
}

// A PersistentVolume with a slip kept its storage from nobody, and it was deleted.
TEST_F(ManifestAbsenceTest, ADirectoryPassedForReadWithAFileThatMayHideAVolume) {
  HaveFiles({"a"});
  const std::vector<std::string> slips = {
      "a: [[", "",
      "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: keep}\nspec: {capacity: {storage: "
      "x1}}\n"};
  for (const std::string& slip : slips) {
    Write("b.yaml", slip);
    Restart();
    RunUntil([&] {
      return last_->unseen_because ==
             (directory_ / "b.yaml").string() +
                 (slip.empty() ? " is empty" : " is not right in all its parts");
    });
    Replace("b.yaml", Map("b"));
    RunUntil([&] { return last_->unseen_because.empty(); });
    fs::remove(directory_ / "b.yaml");
    RunUntilState("b", "absent");
  }
}

TEST_F(ManifestAbsenceTest, AFileThatCanHideNoVolumeKeepsNoDirectoryFromBeingRead) {
  HaveFiles({"a"});
  Write("b.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {volumes: 1}\n");
  Write("c.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: c}\n");
  Write("d.yaml", "# nothing yet\n");
  Restart();
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_TRUE(HasProblem("b.yaml")) << Problems();
}

// Whoever accepted was told that nothing goes, and the storage of the volume in the file was
// deleted.
TEST_F(ManifestAbsenceTest, AcceptMadeADirectoryPassForReadThoughAFileWasNot) {
  HaveFiles({"a"});
  source_.reset();
  memory_ = MemoryOf(*last_);
  Write("b.yaml", Map("b"));
  {
    const std::ofstream writer(directory_ / "b.yaml", std::ios::app);
    last_.reset();
    Start();
    const auto is_waited_for = [&] {
      return last_->unseen_because.find("b.yaml is being written") != std::string::npos;
    };
    RunUntil(is_waited_for);
    const int before = lists_;
    source_->Accept();
    RunUntil([&] { return lists_ > before; });
    RunFor(5 * settle_);
    EXPECT_TRUE(is_waited_for()) << last_->unseen_because;
  }
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_TRUE(Has("b"));
}

// A new directory whose mount did not answer was unmounted to be mounted anew: what was seen then
// had nothing, so storage of the volumes in the other one was deleted, and pods were taken away.
TEST_F(ManifestAbsenceTest, ThePlaceOfAMountThatNeverAnsweredPassedForTheNewDirectory) {
  std::atomic<bool> is_mounted = true;
  answers_ = [&](const std::string&) -> Status {
    if (!is_mounted) return OkStatus();
    return Error::NotApplied(Code::kUnavailable, "it does not answer");
  };
  fs::create_directories(directory_);
  Start();
  RunUntil([&] { return last_->incomplete_because.find("does not answer") != std::string::npos; });
  is_mounted = false;
  source_->MountsChanged({directory_});
  const std::string why = "may be the place where that one was mounted";
  RunUntil([&] { return last_->incomplete_because.find(why) != std::string::npos; });
  EXPECT_NE(last_->unseen_because.find(why), std::string::npos) << last_->unseen_because;
  Write("a.yaml", Map("a"));
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestAbsenceTest, AnEmptyDirectoryThatDidNotAnswerAtFirstIsSeenOnceItIsAccepted) {
  std::atomic<bool> answers = false;
  answers_ = [&](const std::string&) -> Status {
    if (answers) return OkStatus();
    return Error::NotApplied(Code::kUnavailable, "it does not answer");
  };
  fs::create_directories(directory_);
  Start();
  RunUntil([&] { return last_->incomplete_because.find("does not answer") != std::string::npos; });
  answers = true;
  source_->MountsChanged({directory_});
  RunUntil([&] { return last_->incomplete_because.find("no manifest") != std::string::npos; });
  source_->Accept();
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_EQ(last_->incomplete_because, "");
}

TEST_F(ManifestAbsenceTest, ADirectoryIsSeenOnceItWasThereAndThenForGood) {
  HaveFiles({"a"});
  fs::rename(directory_, root_ / "away");
  Restart();
  EXPECT_NE(last_->unseen_because.find("No such file"), std::string::npos) << last_->unseen_because;
  fs::rename(root_ / "away", directory_);
  RunUntil([&] { return last_->unseen_because.empty(); });
  EXPECT_EQ(StateOf("a"), "present");
  fs::rename(directory_, root_ / "away");
  ExpectHeld("a", "No such file");
  EXPECT_EQ(last_->unseen_because, "");
}

}  // namespace
}  // namespace volumed
