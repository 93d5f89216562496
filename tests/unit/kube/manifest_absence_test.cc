// What the manifest directory makes of absence: the law of docs/OBJECTS.md, sentence by
// sentence, on real files.
#include <poll.h>
#include <sys/mount.h>

#include "unit/kube/manifest_directory_fixture.h"

namespace volumed {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class ManifestAbsenceTest : public ManifestDirectoryTest {
 protected:
  static std::string Map(const std::string& name, const std::string& value = "1") {
    return ConfigMapYaml(name, value);
  }
  static std::string Pair(const std::string& a, const std::string& b) {
    return Map(a) + "---\n" + Map(b);
  }
  // Present are the objects of these files, and the source is in order.
  void HaveFiles(const std::vector<std::string>& names) {
    fs::create_directories(directory_);
    for (const std::string& name : names) Write(name + ".yaml", PodYaml(name, "uid-" + name));
    Start();
    RunUntil([&] {
      for (const std::string& name : names) {
        if (StateOf(name) != "present") return false;
      }
      return last_->complete;
    });
    EXPECT_EQ(last_->incomplete_because, "");
  }
  void ExpectHeld(const std::string& name, const std::string& why) {
    RunUntil([&] { return StateOf(name) == "held"; });
    EXPECT_NE(ReasonOf(name).find(why), std::string::npos) << ReasonOf(name);
    EXPECT_NE(last_->incomplete_because.find(why), std::string::npos) << last_->incomplete_because;
    EXPECT_TRUE(last_->complete);
    // Much longer than the settle time.
    RunFor(5 * settle_);
    EXPECT_EQ(StateOf(name), "held") << name;
  }
};

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

// ---- the directory ------------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, ADirectoryThatIsRenamedAwayHoldsAll) {
  HaveFiles({"a"});
  fs::rename(directory_, root_ / "away");
  ExpectHeld("a", "No such file");
  EXPECT_TRUE(HasProblem("its last list stays"));
  fs::rename(root_ / "away", directory_);
  RunUntilState("a", "present");
  EXPECT_EQ(last_->incomplete_because, "");
  EXPECT_EQ(Problems(), "");
}

TEST_F(ManifestAbsenceTest, ADirectoryThatIsRemovedHoldsAllThoughItsFilesWereSeenToGo) {
  HaveFiles({"a"});
  fs::remove_all(directory_);
  ExpectHeld("a", "No such file");
}

TEST_F(ManifestAbsenceTest, AnotherDirectoryHoldsAllUntilItHasAll) {
  HaveFiles({"a", "b"});
  const KnownDirectory first = *last_->directory;
  fs::rename(directory_, root_ / "away");
  fs::create_directory(directory_);
  ExpectHeld("a", "another one");
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  // An unlink there proves nothing either.
  fs::remove(directory_ / "a.yaml");
  ExpectHeld("a", "another one");
  EXPECT_EQ(*last_->directory, first);
  Write("a.yaml", PodYaml("a", "uid-a"));
  Write("b.yaml", PodYaml("b", "uid-b"));
  RunUntil([&] { return last_->incomplete_because.empty(); });
  EXPECT_FALSE(*last_->directory == first);
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
}

TEST_F(ManifestAbsenceTest, ADirectoryThatIsUnmountedHoldsAllAndIsNotKeptFromIt) {
  fs::create_directory(directory_);
  if (::mount("volumed-test", directory_.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "may not mount";
  }
  HaveFiles({"a"});
  ASSERT_EQ(::umount2(directory_.c_str(), 0), 0) << "the source keeps it busy";
  ExpectHeld("a", "another one");
}

// No event tells of the mount; the look at the path before an object goes does.
TEST_F(ManifestAbsenceTest, ADirectoryMountedOverTakesNothingAway) {
  settle_ = milliseconds(200);
  HaveFiles({"a", "b"});
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "going");
  if (::mount("volumed-test", directory_.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "may not mount";
  }
  ExpectHeld("a", "another one");
  EXPECT_EQ(StateOf("b"), "held");
  ASSERT_EQ(::umount2(directory_.c_str(), 0), 0);
  RunUntilState("b", "present");
  RunUntilState("a", "absent");
}

TEST_F(ManifestAbsenceTest, AnOverflowHoldsWhatWasNotSeenToGo) {
  settle_ = milliseconds(100);
  HaveFiles({"a", "b"});
  // More events than the queue takes, of a name that is nobody's, and then the unlink.
  std::ifstream limit("/proc/sys/fs/inotify/max_queued_events");
  int most = 0;
  limit >> most;
  for (int i = 0; i <= most / 2; ++i) {
    fs::create_directory(directory_ / "noise");
    fs::remove(directory_ / "noise");
  }
  fs::remove(directory_ / "a.yaml");
  ExpectHeld("a", "events of the directory were lost");
  EXPECT_EQ(StateOf("b"), "present");
  // What is seen from then on counts.
  fs::remove(directory_ / "b.yaml");
  RunUntilState("b", "absent");
  EXPECT_EQ(StateOf("a"), "held");
  // Also of what was held: it comes, and is seen to go.
  Write("a.yaml", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  fs::remove(directory_ / "a.yaml");
  RunUntilState("a", "absent");
}

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

// ---- links --------------------------------------------------------------------------------------

TEST_F(ManifestAbsenceTest, ALinkWhoseTargetComesLaterIsRead) {
  HaveFiles({"a"});
  fs::remove(directory_ / "a.yaml");
  fs::create_symlink(root_ / "later" / "deep" / "a", directory_ / "a.yaml");
  RunUntilState("a", "held");
  fs::create_directory(root_ / "later");
  fs::create_directory(root_ / "later" / "deep");
  WriteFile(root_ / "later" / "deep" / "a", PodYaml("a", "uid-a"));
  RunUntilState("a", "present");
  EXPECT_EQ(Problems(), "");
}

TEST_F(ManifestAbsenceTest, ALinkOnTheWayToTheTargetThatIsChangedIsSeen) {
  MakeAndStart();
  for (const char* release : {"1", "2"}) {
    fs::create_directory(root_ / release);
    WriteFile(root_ / release / "a", Map("a", release));
  }
  fs::create_symlink("1", root_ / "current");
  fs::create_symlink(root_ / "current" / "a", directory_ / "a.yaml");
  RunUntilState("a", "present");
  fs::create_symlink("2", root_ / "next");
  fs::rename(root_ / "next", root_ / "current");
  RunUntil(
      [this] { return std::get<ConfigMapObject>(*last_->objects[0].object).data.at("k") == "2"; });
}

TEST_F(ManifestAbsenceTest, ADirectoryThatIsALinkIsFollowedWhenItIsChanged) {
  fs::create_directory(root_ / "r1");
  fs::create_directory(root_ / "r2");
  WriteFile(root_ / "r1" / "a.yaml", PodYaml("a", "uid-a"));
  WriteFile(root_ / "r2" / "a.yaml", PodYaml("a", "uid-a") + "---\n" + PodYaml("b", "uid-b"));
  fs::create_symlink("r1", directory_);
  Start();
  RunUntilState("a", "present");
  fs::create_symlink("r2", root_ / "new");
  fs::rename(root_ / "new", directory_);
  RunUntilState("b", "present");
  EXPECT_EQ(last_->incomplete_because, "") << "it has all that was known";
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
