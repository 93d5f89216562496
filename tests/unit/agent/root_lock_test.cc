#include "agent/root_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

namespace volumed {
namespace {

namespace fs = std::filesystem;

class RootLockTest : public testing::Test {
 protected:
  RootLockTest() {
    std::string name = (fs::temp_directory_path() / "root-lock-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    root_ = (directory_ / "root").string();
  }
  ~RootLockTest() override { fs::remove_all(directory_); }

  fs::path directory_;
  std::string root_;
};

TEST_F(RootLockTest, AMissingRootBecomesOurs) {
  const Result<RootLock> lock = RootLock::Acquire(root_, false);
  ASSERT_TRUE(lock.ok()) << lock.error().ToString();
  EXPECT_FALSE(lock->adopted());
  EXPECT_EQ(fs::status(root_).permissions(), fs::perms(0750));
}

// The agent has no umask: anybody could have put another directory into the root's place.
TEST_F(RootLockTest, MissingParentsOfTheRootWereWritableForEverybody) {
  const mode_t before = ::umask(0);
  const Result<RootLock> lock = RootLock::Acquire((directory_ / "a/b/root").string(), false);
  ::umask(before);
  ASSERT_TRUE(lock.ok()) << lock.error().ToString();
  EXPECT_EQ(fs::status(directory_ / "a").permissions(), fs::perms(0755));
  EXPECT_EQ(fs::status(directory_ / "a/b").permissions(), fs::perms(0755));
}

// The agent waited for a reader of it, at its start and for ever.
TEST_F(RootLockTest, AFifoInThePlaceOfTheMarkIsNotWaitedFor) {
  ASSERT_TRUE(RootLock::Acquire(root_, false).ok());
  const std::string mark = root_ + "/volumed/created-by-volumed";
  ASSERT_TRUE(fs::remove(mark));
  ASSERT_EQ(::mkfifo(mark.c_str(), 0600), 0);
  const Result<RootLock> lock = RootLock::Acquire(root_, false);
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.error().message().find("mark " + root_), std::string::npos)
      << lock.error().message();
}

TEST_F(RootLockTest, TheSecondAgentIsToldWhoOwnsTheRoot) {
  const Result<RootLock> first = RootLock::Acquire(root_, false);
  ASSERT_TRUE(first.ok());
  const Result<RootLock> second = RootLock::Acquire(root_, false);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kUnavailable);
  EXPECT_NE(second.error().message().find("pid " + std::to_string(::getpid())), std::string::npos)
      << second.error().message();
}

TEST_F(RootLockTest, TheLockGoesWithItsOwner) {
  { ASSERT_TRUE(RootLock::Acquire(root_, false).ok()); }
  EXPECT_TRUE(RootLock::Acquire(root_, false).ok());
}

// A child that an agent had just forked when it was killed has its lock, until it execs or ends.
TEST_F(RootLockTest, ALockThatOutlivesItsOwnerForAMomentIsWaitedFor) {
  fs::create_directories(root_ + "/volumed");
  std::ofstream(root_ + "/volumed/created-by-volumed").flush();
  std::ofstream(root_ + "/volumed/lock") << "2147483647\n";  // no pid is that large
  const int left_over = ::open((root_ + "/volumed/lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(left_over, LOCK_EX | LOCK_NB), 0);
  auto taken = std::async(std::launch::async, [&] { return RootLock::Acquire(root_, false).ok(); });
  ::close(left_over);
  EXPECT_TRUE(taken.get());
}

// A new agent that was started right after kill -9 found the old one's lock and gave up.
TEST_F(RootLockTest, AnAgentThatIsBeingKilledIsWaitedFor) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result<RootLock> lock = RootLock::Acquire(root_, false);
    const char ok = lock.ok() ? 'y' : 'n';
    if (::write(ready[1], &ok, 1) == 1) ::pause();
    ::_exit(0);
  }
  char locked = 0;
  ASSERT_EQ(::read(ready[0], &locked, 1), 1);
  ASSERT_EQ(locked, 'y');
  auto taken = std::async(std::launch::async, [&] { return RootLock::Acquire(root_, false).ok(); });
  EXPECT_EQ(taken.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  ::kill(child, SIGKILL);
  EXPECT_TRUE(taken.get());
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RootLockTest, SomebodysRootNeedsAdopt) {
  fs::create_directories(root_ + "/pods/1234");
  const Result<RootLock> refused = RootLock::Acquire(root_, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  // It named the remedy alone, which takes away whatever no source knows.
  for (const char* part : {"adopt-root", "put a backup", "inline volumes with their data"}) {
    EXPECT_NE(refused.error().message().find(part), std::string::npos) << part;
  }
  EXPECT_FALSE(fs::exists(root_ + "/volumed")) << "a refused root is left as it was";

  const Result<RootLock> adopted = RootLock::Acquire(root_, true);
  ASSERT_TRUE(adopted.ok()) << adopted.error().ToString();
  EXPECT_TRUE(adopted->adopted());
}

// A process that ended when its arguments were read made the agent's start end in an exception.
TEST_F(RootLockTest, AProcessThatEndedWhileKubeletWasLookedForDidNotLetTheAgentStart) {
  fs::create_directories(root_ + "/pods/1234");
  std::atomic<bool> is_over{false};
  std::thread others([&] {
    while (!is_over) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_NO_THROW(EXPECT_TRUE(RootLock::CheckMayTake(root_, true).ok()));
  }
  is_over = true;
  others.join();
}

// A driver's socket waits for whoever comes, and the agent would not start before somebody had
// taken it away.
// It was said that another program had made it, and advised to take it over.
TEST_F(RootLockTest, ARootThatCannotBeLookedIntoWasSaidToBeSomebodyElses) {
  std::filesystem::create_directories(std::filesystem::path(root_).parent_path());
  std::filesystem::create_symlink(root_, root_);
  const Status refused = RootLock::CheckMayTake(root_, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().sys_errno(), ELOOP) << refused.error().ToString();
}

TEST_F(RootLockTest, ARootWithSocketsOfDriversAloneIsNobodysYet) {
  fs::create_directories(root_ + "/plugins_registry");
  fs::create_directories(root_ + "/plugins/disk.example.com");
  EXPECT_TRUE(RootLock::CheckMayTake(root_, false).ok());
  fs::create_directories(root_ + "/plugins/kubernetes.io/csi");
  EXPECT_FALSE(RootLock::CheckMayTake(root_, false).ok());
  fs::remove_all(root_ + "/plugins/kubernetes.io");
  fs::create_directories(root_ + "/pods");
  EXPECT_FALSE(RootLock::CheckMayTake(root_, false).ok());
}

TEST_F(RootLockTest, AFreshFilesystemWasRefusedForItsLostAndFound) {
  fs::create_directories(root_ + "/lost+found");
  EXPECT_TRUE(RootLock::CheckMayTake(root_, false).ok());
  // What fsck has found there was somebody's.
  std::ofstream(root_ + "/lost+found/#12").flush();
  EXPECT_FALSE(RootLock::CheckMayTake(root_, false).ok());
  fs::remove(root_ + "/lost+found/#12");
  fs::create_directories(root_ + "/pods");
  EXPECT_FALSE(RootLock::CheckMayTake(root_, false).ok());
}

TEST_F(RootLockTest, AnAdoptedRootStaysSomebodys) {
  fs::create_directories(root_ + "/pods");
  { ASSERT_TRUE(RootLock::Acquire(root_, true).ok()); }
  EXPECT_FALSE(RootLock::Acquire(root_, false).ok());
}

}  // namespace
}  // namespace volumed
