// Absence of a whole directory, and of what links lead to: renamed, unmounted, another one.
#include <sys/mount.h>

#include "unit/kube/manifest_absence_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

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

}  // namespace
}  // namespace volumed
