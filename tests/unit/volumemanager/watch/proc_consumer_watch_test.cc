// Real processes; cgroups are directories of the test's own, which have the same files.
#include "volumemanager/watch/proc_consumer_watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/real_scheduler.h"

namespace volumed {
namespace {

class ProcConsumerWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/cgroupXXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    auto scheduler = RealScheduler::Create();
    ASSERT_TRUE(scheduler.ok());
    scheduler_ = std::move(scheduler).value();
    ProcConsumerWatchOptions options;
    options.cgroup_root = root_;
    options.poll_period = std::chrono::milliseconds(5);
    watch_ = std::make_unique<ProcConsumerWatch>(*scheduler_, scheduler_->loop(), options);
  }
  void TearDown() override {
    watch_.reset();
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  // Runs the loop until `gone` was told, or for two seconds. True if told.
  bool RunUntilGone() {
    const TimerId limit =
        scheduler_->PostAfter(std::chrono::seconds(2), [this] { scheduler_->Stop(); });
    scheduler_->Run();
    scheduler_->Cancel(limit);
    return gone_;
  }
  std::function<void()> Gone() {
    return [this] {
      gone_ = true;
      scheduler_->Stop();
    };
  }

  std::filesystem::path root_;
  std::unique_ptr<RealScheduler> scheduler_;
  std::unique_ptr<ProcConsumerWatch> watch_;
  bool gone_ = false;
};

class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~Child() { End(); }
  pid_t pid() const { return pid_; }
  void End() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

TEST_F(ProcConsumerWatchTest, TellsWhenAProcessEnds) {
  Child child;
  const auto watched = watch_->Watch(1, {child.pid(), 0, ""}, Gone());
  ASSERT_TRUE(watched.ok()) << watched.error().ToString();
  EXPECT_GT(watched->pid_start_time, 0u);
  EXPECT_EQ(watched->label.rfind("pid " + std::to_string(child.pid()) + " (", 0), 0u);
  scheduler_->Post([&] { child.End(); });
  EXPECT_TRUE(RunUntilGone());
}

TEST_F(ProcConsumerWatchTest, KnowsAProcessByItsStartTime) {
  Child child;
  const auto watched = watch_->Watch(1, {child.pid(), 0, ""}, Gone());
  ASSERT_TRUE(watched.ok());
  EXPECT_TRUE(watch_->Watch(2, {child.pid(), watched->pid_start_time, ""}, Gone()).ok());
  const auto reused = watch_->Watch(3, {child.pid(), watched->pid_start_time + 1, ""}, Gone());
  ASSERT_FALSE(reused.ok());
  EXPECT_EQ(reused.error().code(), Code::kFailedPrecondition);
  const pid_t pid = child.pid();
  child.End();
  EXPECT_EQ(watch_->Watch(4, {pid, 0, ""}, Gone()).error().code(), Code::kFailedPrecondition);
}

// Whoever held a pod with such a name made the list of all pods unreadable.
TEST_F(ProcConsumerWatchTest, AProcessMayCallItselfWhatIsNoText) {
  char name[16] = {};
  ASSERT_EQ(::prctl(PR_GET_NAME, name), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, "\xff"), 0);
  const auto watched = watch_->Watch(1, {::getpid(), 0, ""}, Gone());
  ::prctl(PR_SET_NAME, name);
  ASSERT_TRUE(watched.ok()) << watched.error().ToString();
  EXPECT_EQ(watched->label, "pid " + std::to_string(::getpid()) + " (\\xff)");
}

TEST_F(ProcConsumerWatchTest, AnUnwatchedProcessIsNotTold) {
  Child child;
  ASSERT_TRUE(watch_->Watch(1, {child.pid(), 0, ""}, Gone()).ok());
  watch_->Unwatch(1);
  watch_->Unwatch(1);
  Child other;
  bool other_gone = false;
  ASSERT_TRUE(watch_
                  ->Watch(2, {other.pid(), 0, ""},
                          [&] {
                            other_gone = true;
                            scheduler_->Stop();
                          })
                  .ok());
  scheduler_->Post([&] {
    child.End();
    other.End();
  });
  EXPECT_FALSE(RunUntilGone());
  EXPECT_TRUE(other_gone);
}

TEST_F(ProcConsumerWatchTest, TellsWhenACgroupOfVersion2IsEmpty) {
  Write("pod/cgroup.procs", "");
  Write("pod/cgroup.events", "populated 1\nfrozen 0\n");
  const auto watched = watch_->Watch(1, {0, 0, "/pod"}, Gone());
  ASSERT_TRUE(watched.ok()) << watched.error().ToString();
  EXPECT_EQ(watched->label, "cgroup /pod");
  scheduler_->Post([&] { Write("pod/cgroup.events", "populated 0\nfrozen 0\n"); });
  EXPECT_TRUE(RunUntilGone());
}

TEST_F(ProcConsumerWatchTest, TellsWhenACgroupOfVersion2IsRemoved) {
  Write("pod/cgroup.procs", "");
  Write("pod/cgroup.events", "populated 1\n");
  ASSERT_TRUE(watch_->Watch(1, {0, 0, (root_ / "pod").string()}, Gone()).ok());
  scheduler_->Post([&] { std::filesystem::remove_all(root_ / "pod"); });
  EXPECT_TRUE(RunUntilGone());
}

TEST_F(ProcConsumerWatchTest, ReadsTheTasksOfACgroupOfVersion1) {
  Write("systemd/pod/cgroup.procs", "12\n");
  ASSERT_TRUE(watch_->Watch(1, {0, 0, "/pod"}, Gone()).ok());
  scheduler_->Post([&] { Write("systemd/pod/cgroup.procs", ""); });
  EXPECT_TRUE(RunUntilGone());
}

TEST_F(ProcConsumerWatchTest, RefusesCgroupsThatCannotHold) {
  Write("empty/cgroup.procs", "");
  Write("empty/cgroup.events", "populated 0\n");
  const auto code = [&](const std::string& cgroup) {
    return watch_->Watch(1, {0, 0, cgroup}, Gone()).error().code();
  };
  EXPECT_EQ(code("/empty"), Code::kFailedPrecondition);
  EXPECT_EQ(code("/missing"), Code::kFailedPrecondition);
  EXPECT_EQ(code("relative"), Code::kInvalidArgument);
  EXPECT_EQ(code("/a/../../etc"), Code::kInvalidArgument);
}

TEST(ParseStartTimeTest, FindsTheFieldBehindAnyCommand) {
  const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20 21";
  EXPECT_EQ(*ParseStartTime("77 (sh)" + rest), 4242u);
  EXPECT_EQ(*ParseStartTime("77 (a) b (c) d)" + rest + "\n"), 4242u);
  EXPECT_FALSE(ParseStartTime("77 (sh) S 1 2").ok());
  EXPECT_FALSE(ParseStartTime("").ok());
}

}  // namespace
}  // namespace volumed
