// Workers that are killed, that hang and that lose their agent: on a filesystem that stops
// answering.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "integration/hangfs/hangfs_mount.h"
#include "integration/mount_namespace_fixture.h"
#include "os/answers.h"
#include "os/worker_kernel.h"
#include "os/worker_keys.h"
#include "os/worker_process.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;

// A caller that is killed before hangfs has taken its question can be killed: on a slow machine
// that takes long.
constexpr auto kTimeToBeAsleep = milliseconds(500);

class WorkerKernelTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* name : {"keys", "hung", "data"}) {
      ASSERT_EQ(::mkdir(Path(name).c_str(), 0755), 0);
    }
    options_.worker_path = VolumedWorkerPath();
    options_.key_directory = Path("keys");
    Start();
  }

  void TearDown() override {
    kernel_.reset();
    hangfs_.reset();
    MountNamespaceTest::TearDown();
  }

  void Start() {
    auto created = WorkerKernel::Create(options_, clock_);
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    kernel_ = std::move(created).value();
  }

  void StartHangfs() {
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), Path("hung"), Path("control"));
    ASSERT_TRUE(hangfs_->mounted()) << "hangfs did not start";
  }

  std::string Path(const std::string& relative) const { return scratch() + "/" + relative; }
  SafePath At(const std::string& relative) const { return {scratch(), relative}; }
  CallOptions In(const std::string& domain, milliseconds timeout, const std::string& key = "") {
    CallOptions options;
    options.domain = domain;
    options.key = key;
    options.deadline = Deadline::After(clock_, timeout);
    return options;
  }
  // A call that hangs while hangfs does.
  Result<FsInfo> AskHangfs(milliseconds timeout, const std::string& key = "") {
    return kernel_->Call(StatFs{At("hung")}, In("hung", timeout, key));
  }

  // Waits for something that another process does. False after ten seconds.
  static bool Eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }

  // For an agent after this one.
  bool IsHeldForOthers(const std::string& key) {
    auto held = KeysOfOthers::Read(options_.key_directory);
    return held.ok() && !held->Check({key}).ok();
  }

  // The children of this process that are workers and alive.
  static std::vector<pid_t> WorkerPids() {
    std::vector<pid_t> pids;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream in(task.path() / "children");
      for (pid_t pid = 0; in >> pid;) {
        std::string number;
        std::string name;
        std::string state;
        std::ifstream("/proc/" + std::to_string(pid) + "/stat") >> number >> name >> state;
        if (name == "(volumed-worker)" && state != "Z") pids.push_back(pid);
      }
    }
    return pids;
  }

  RealClock clock_;
  WorkerKernelOptions options_;
  std::unique_ptr<WorkerKernel> kernel_;
  std::unique_ptr<HangfsMount> hangfs_;
};

TEST_F(WorkerKernelTest, AMissingWorkerProgramIsAnErrorAtStart) {
  WorkerKernelOptions options = options_;
  options.worker_path = Path("nothing");
  auto created = WorkerKernel::Create(options, clock_);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().sys_errno(), ENOENT);
  options = options_;
  options.masked_features = {"no-such-feature"};
  EXPECT_EQ(WorkerKernel::Create(options, clock_).error().code(), Code::kInvalidArgument);
}

TEST_F(WorkerKernelTest, TheFastLaneUsesOneWorker) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok());
  }
  EXPECT_EQ(kernel_->stats().spawned, 2u);
  EXPECT_EQ(kernel_->stats().requests, 100u);
  EXPECT_EQ(kernel_->stats().busy, 0);
  EXPECT_EQ(WorkerPids().size(), 2u);
}

// A burst starts dozens of workers, and most of a start was the loading of these.
TEST_F(WorkerKernelTest, AWorkerLoadsNoCxxLibraries) {
#ifdef VOLUMED_SANITIZED
  GTEST_SKIP() << "sanitizers bring a C++ runtime of their own";
#endif
  ASSERT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok());
  ASSERT_TRUE(kernel_->Call(Stat{At("data")}, In("other", seconds(10))).ok());
  const std::vector<pid_t> pids = WorkerPids();
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/maps");
    const std::string maps((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_THAT(maps, HasSubstr("libmount"));
    EXPECT_THAT(maps, Not(HasSubstr("libstdc++")));
    EXPECT_THAT(maps, Not(HasSubstr("libprotobuf")));
  }
}

TEST_F(WorkerKernelTest, WorkersEndWithTheirAgent) {
  // Between fork and exec a worker is not to be told from this program.
  ASSERT_TRUE(Eventually([&] { return WorkerPids().size() == 2u; }));
  kernel_.reset();
  EXPECT_TRUE(WorkerPids().empty());
}

TEST_F(WorkerKernelTest, ALargeSecretPayloadAndALargeListingCross) {
  std::vector<PayloadFile> files;
  for (int i = 0; i < 3000; ++i) {
    files.push_back({"a-file-with-quite-a-long-name-" + std::to_string(i),
                     Secret<std::string>(std::string(100, 'x'))});
  }
  auto written = kernel_->Call(WriteAtomicPayload{At("data"), files, {}}, In("", seconds(30)));
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  auto listing = kernel_->Call(ListDirectory{At("data")}, In("", seconds(30)));
  ASSERT_TRUE(listing.ok());
  EXPECT_EQ(listing->entries.size(), 3002u);
}

// The worker that took it lives on, and must not keep it.
TEST_F(WorkerKernelTest, ALockBelongsToTheAgentAndGoesWithItsDescriptor) {
  const TakeFileLock take{At("lock"), "agent one"};
  auto held = kernel_->Call(take, {});
  ASSERT_TRUE(held.ok()) << held.error().ToString();
  ASSERT_NE(held->pin, nullptr);
  const auto taken = kernel_->Call(take, {});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), Code::kAborted);
  // An agent's workers end with it: they are others for whoever comes later.
  kernel_.reset();
  Start();
  EXPECT_EQ(kernel_->Call(take, {}).error().code(), Code::kAborted);
  held->pin.reset();
  EXPECT_TRUE(Eventually([&] { return kernel_->Call(take, {}).ok(); }));
}

TEST_F(WorkerKernelTest, AHungCallEndsAtItsDeadlineAndItsWorkerIsKilled) {
  StartHangfs();
  ASSERT_TRUE(AskHangfs(seconds(10)).ok());
  hangfs_->Hang();
  const auto before = clock_.Now();
  auto answer = AskHangfs(milliseconds(200));
  const auto took = clock_.Now() - before;
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(answer.error().maybe_applied());
  EXPECT_THAT(answer.error().message(), HasSubstr("StatFs " + Path("hung")));
  EXPECT_GE(took, milliseconds(200));
  EXPECT_LT(took, seconds(2));
  EXPECT_EQ(kernel_->stats().killed, 1u);
  EXPECT_EQ(kernel_->stats().deadline_exceeded, 1u);
  hangfs_->Heal();
  EXPECT_TRUE(AskHangfs(seconds(10)).ok());
  EXPECT_EQ(kernel_->stats().stuck_total, 0u);
}

TEST_F(WorkerKernelTest, AWorkerThatCannotDieIsStuckUntilItDoes) {
  StartHangfs();
  hangfs_->Die();
  auto answer = AskHangfs(kTimeToBeAsleep, "volume-1");
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 1; }));
  ASSERT_EQ(kernel_->stuck_operations().size(), 1u);
  const StuckOperation stuck = kernel_->stuck_operations()[0];
  EXPECT_EQ(stuck.key, "volume-1");
  EXPECT_EQ(stuck.domain, "hung");
  EXPECT_EQ(stuck.request, "StatFs");
  EXPECT_EQ(stuck.path, Path("hung"));

  // It keeps its key: nobody else may work on that volume.
  EXPECT_TRUE(IsHeldForOthers("volume-1"));
  auto second = kernel_->Call(Stat{At("data")}, In("other", seconds(10), "volume-1"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code(), Code::kAborted);
  EXPECT_FALSE(second.error().maybe_applied());
  EXPECT_THAT(second.error().message(), HasSubstr("an earlier worker still holds"));

  hangfs_->Heal();
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 0; }));
  EXPECT_TRUE(kernel_->stuck_operations().empty());
  EXPECT_EQ(kernel_->stats().stuck_total, 1u);
  EXPECT_FALSE(IsHeldForOthers("volume-1"));
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("other", seconds(10), "volume-1")).ok());
}

TEST_F(WorkerKernelTest, AProgramThatIgnoresEverythingEndsWithItsWorkerAtTheDeadline) {
  const auto before = clock_.Now();
  const auto end =
      kernel_->Call(RunProgram{{"/bin/sh", "-c",
                                "trap '' TERM INT HUP PIPE; echo begun; while :; do sleep 600; "
                                "done"}},
                    In("programs", milliseconds(300), "volume-1"));
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(end.error().maybe_applied());
  EXPECT_LT(clock_.Now() - before, seconds(2));
  // The shell and its sleep had the key's lock, too: none of them is left.
  EXPECT_TRUE(Eventually([&] { return !IsHeldForOthers("volume-1"); }));
  EXPECT_EQ(kernel_->stats().stuck_now, 0);
}

TEST_F(WorkerKernelTest, AProgramThatCannotDieIsLeftToItselfAndCounted) {
  StartHangfs();
  hangfs_->Die();
  const auto before = clock_.Now();
  const auto end = kernel_->Call(RunProgram{{"/bin/cat", Path("hung/file")}},
                                 In("programs", kTimeToBeAsleep, "volume-1"));
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), Code::kDeadlineExceeded);
  EXPECT_LT(clock_.Now() - before, seconds(2)) << "its worker is dead, and it is not waited for";
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 1; }));
  EXPECT_EQ(kernel_->stuck_operations().at(0).request, "RunProgram");
  EXPECT_EQ(kernel_->stuck_operations().at(0).path, "/bin/cat");
  EXPECT_TRUE(IsHeldForOthers("volume-1"));
  hangfs_->Heal();
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 0; }));
  EXPECT_FALSE(IsHeldForOthers("volume-1"));
}

TEST_F(WorkerKernelTest, AProgramsEndAndItsLastWordsAreAnswered) {
  const auto run = [&](const std::string& script) {
    const auto end = kernel_->Call(RunProgram{{"/bin/sh", "-c", script}}, In("", seconds(20)));
    if (!end.ok()) return end.error().ToString();
    return std::to_string(end->exit_status) + ":" + end->output;
  };
  EXPECT_EQ(run("echo out; echo err >&2; exit 7"), "7:out\nerr\n");
  EXPECT_EQ(run("kill -9 $$"), "137:");
  EXPECT_EQ(run("cat; echo $PATH; ls /proc/self/fd | wc -l"),
            "0:/usr/sbin:/usr/bin:/sbin:/bin\n6\n")
      << "stdin, out, err, the worker's life and the page of its keys, ls's";
  EXPECT_EQ(run("sleep 2 & echo gone"), "0:gone\n") << "what it leaves behind is not waited for";
  EXPECT_EQ(run("head -c 100000 /dev/zero").size(), 2u + 4096u);
  RunProgram with_secret{{"/bin/echo", "a", "(secret)"}, {{2, Secret<std::string>("hush")}}, 3};
  EXPECT_EQ(kernel_->Call(with_secret, In("", seconds(20)))->output, "sh\n");
  with_secret.secret_arguments.emplace(3, Secret<std::string>("hush"));
  EXPECT_EQ(kernel_->Call(with_secret, In("", seconds(20))).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(kernel_->Call(RunProgram{{Path("none")}}, In("", seconds(20))).error().sys_errno(),
            ENOENT);
}

// Such a call took the fast worker, which all others wait for, until it was killed.
TEST_F(WorkerKernelTest, ACallWithoutADomainOnWhatIsMountedBelowTheRootDoesNotTakeTheFastLane) {
  options_.agent_root = scratch();
  Start();
  StartHangfs();
  ASSERT_TRUE(kernel_->Call(ListMounts{scratch()}, In("", seconds(10))).ok());
  hangfs_->Hang();
  std::thread hung(
      [&] { EXPECT_TRUE(kernel_->Call(StatFs{At("hung")}, In("", seconds(60))).ok()); });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().busy == 1; }))
      << "it has a worker of its filesystem's";
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok());
  }
  const auto place =
      kernel_->Call(Stat{.path = At("hung"), .only_mount_point = true}, In("", seconds(10)));
  ASSERT_TRUE(place.ok()) << place.error().ToString();
  EXPECT_TRUE(place->is_mount_point) << "which asks the mount itself for nothing";
  hangfs_->Heal();
  hung.join();
}

TEST_F(WorkerKernelTest, APlaceAnswersAlsoIfItIsMissingAndNotIfItHangs) {
  StartHangfs();
  EXPECT_TRUE(CheckAnswers(*kernel_, clock_, Path("data")).ok());
  EXPECT_TRUE(CheckAnswers(*kernel_, clock_, Path("none/at/all")).ok());
  EXPECT_TRUE(CheckAnswers(*kernel_, clock_, Path("hung/file")).ok());
  std::filesystem::create_directory_symlink(Path("hung"), Path("link"));
  hangfs_->Hang();
  for (const char* name : {"hung", "hung/file", "link", "link/file"}) {
    const Status answers = CheckAnswers(*kernel_, clock_, Path(name), milliseconds(200));
    ASSERT_FALSE(answers.ok()) << name;
    EXPECT_EQ(answers.error().message(), Path(name) + " does not answer");
  }
  hangfs_->Heal();
  EXPECT_TRUE(CheckAnswers(*kernel_, clock_, Path("link/file")).ok());
}

TEST_F(WorkerKernelTest, OneDeadDomainStopsNoOther) {
  StartHangfs();
  hangfs_->Hang();
  std::vector<std::thread> hung;
  for (int i = 0; i < 10; ++i) {
    hung.emplace_back([&] { EXPECT_TRUE(AskHangfs(seconds(60)).ok()); });
  }
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().busy == 4; }));
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().waiting == 6; }));
  // One more is not let in: it waits, and has done nothing.
  auto late = AskHangfs(milliseconds(50));
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(late.error().maybe_applied());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok());
    ASSERT_TRUE(kernel_->Call(Stat{At("data")}, In("other", seconds(10))).ok());
    ASSERT_TRUE(kernel_->Call(ListMounts{}, In("", seconds(10))).ok());
  }
  EXPECT_EQ(kernel_->stats().busy, 4);
  hangfs_->Heal();
  for (std::thread& thread : hung) thread.join();
  EXPECT_EQ(kernel_->stats().busy, 0);
  EXPECT_EQ(kernel_->stats().waiting, 0);
}

// Four pods with such a hostPath kept all others from the filesystem that the link lies on, until
// the dead one answered.
TEST_F(WorkerKernelTest, ALinkFromAnotherFilesystemToADeadOneHoldsNobodyUpThere) {
  StartHangfs();
  std::filesystem::create_symlink(Path("hung/file"), Path("data/link"));
  hangfs_->Die();
  const std::string link = Path("data/link");
  const auto look = [&](const std::string& path) {
    IdentifyStorage request;
    request.path = {path, "", Resolve::kBeneath};
    return kernel_->Call(request, In(path, kTimeToBeAsleep)).error();
  };
  for (int i = 0; i < options_.max_per_domain; ++i) {
    EXPECT_EQ(look(link).code(), Code::kDeadlineExceeded) << i;
  }
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == options_.max_per_domain; }));
  EXPECT_EQ(look(link).code(), Code::kUnavailable);
  EXPECT_EQ(kernel_->stuck_operations().at(0).domain, "path " + link);
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In(Path("data"), seconds(20))).ok());
  hangfs_->Heal();
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 0; }));
}

TEST_F(WorkerKernelTest, ASubPathOntoADeadFilesystemHasTheLaneOfThat) {
  StartHangfs();
  hangfs_->Die();
  for (int i = 0; i < options_.max_per_domain; ++i) {
    PrepareSubPath request;
    request.volume = {scratch(), ""};
    request.sub_path = "hung/file";
    request.parent = At("data");
    request.target = At("data/target");
    (void)kernel_->Call(request, In(scratch(), kTimeToBeAsleep));
  }
  for (const StuckOperation& stuck : kernel_->stuck_operations()) {
    EXPECT_NE(stuck.domain, kernel_->Locate(scratch()).lane);
  }
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In(Path("data"), seconds(20))).ok());
  hangfs_->Heal();
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 0; }));
}

TEST_F(WorkerKernelTest, ADomainFullOfStuckWorkersIsRefusedAtOnce) {
  options_.max_per_domain = 1;
  Start();
  StartHangfs();
  hangfs_->Die();
  EXPECT_EQ(AskHangfs(kTimeToBeAsleep).error().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 1; }));
  auto refused = AskHangfs(seconds(60));
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("other", seconds(10))).ok());
}

TEST_F(WorkerKernelTest, AHigherLimitAdmitsWhatWaitsAndALowerOneEndsNothing) {
  options_.max_per_domain = 1;
  Start();
  StartHangfs();
  hangfs_->Hang();
  CancelToken cancel;
  CallOptions running = In("hung", seconds(30));
  running.cancel = &cancel;
  std::thread first([&] {
    EXPECT_EQ(kernel_->Call(StatFs{At("hung")}, running).error().code(), Code::kCancelled);
  });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().busy == 1; }));
  std::thread second(
      [&] { EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("hung", seconds(30))).ok()); });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().waiting == 1; }));
  kernel_->SetLimits(64, 2);
  second.join();
  kernel_->SetLimits(64, 1);
  EXPECT_EQ(kernel_->stats().busy, 1);
  EXPECT_EQ(kernel_->Call(Stat{At("data")}, In("hung", milliseconds(50))).error().code(),
            Code::kDeadlineExceeded);
  cancel.Cancel();
  first.join();
}

TEST_F(WorkerKernelTest, TheFastLaneGoesOnAfterItsWorkerWasKilled) {
  StartHangfs();
  hangfs_->Hang();
  std::thread first([&] {
    EXPECT_EQ(kernel_->Call(StatFs{At("hung")}, In("", milliseconds(300))).error().code(),
              Code::kDeadlineExceeded);
  });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().busy == 1; }));
  // These wait behind it, and are served by its successor.
  std::vector<std::thread> queue;
  for (int i = 0; i < 5; ++i) {
    queue.emplace_back(
        [&] { EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok()); });
  }
  first.join();
  for (std::thread& thread : queue) thread.join();
  EXPECT_EQ(kernel_->stats().killed, 1u);
}

// The two fast workers waited for the disk, vol_data.json after vol_data.json, and all mounts for
// them.
TEST_F(WorkerKernelTest, AFileThatIsSyncedTakesNoFastWorker) {
  StartHangfs();
  hangfs_->Hang();
  std::vector<std::thread> hung;
  for (int i = 0; i < 64; ++i) {
    hung.emplace_back([&] { (void)kernel_->Call(StatFs{At("hung")}, In("", seconds(60))); });
  }
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().waiting > 0; }));
  WriteFile write;
  write.path = At("synced");
  write.content = Secret<std::string>("content");
  EXPECT_TRUE(kernel_->Call(write, In("", seconds(10))).ok());
  write.path = At("unsynced");
  write.unsynced = true;
  EXPECT_EQ(kernel_->Call(write, In("", milliseconds(200))).error().code(),
            Code::kDeadlineExceeded);
  hangfs_->Heal();
  for (std::thread& thread : hung) thread.join();
}

TEST_F(WorkerKernelTest, AWorkerThatDiesWithItsRequestIsMaybeApplied) {
  StartHangfs();
  hangfs_->Hang();
  const std::vector<pid_t> pids = WorkerPids();
  std::thread call([&] {
    auto answer = AskHangfs(seconds(20));
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kUnavailable);
    EXPECT_TRUE(answer.error().maybe_applied());
    EXPECT_THAT(answer.error().message(), HasSubstr("killed by signal 9"));
  });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().requests == 1; }));
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  call.join();
  EXPECT_EQ(kernel_->stats().died, 1u);
}

TEST_F(WorkerKernelTest, AWorkerThatDiedIdleIsReplacedWithoutAnError) {
  for (const pid_t pid : WorkerPids()) ::kill(pid, SIGKILL);
  EXPECT_TRUE(Eventually([&] {
    return kernel_->Call(Stat{At("data")}, In("", seconds(10))).ok() &&
           kernel_->Call(Stat{At("data")}, In("some", seconds(10))).ok();
  }));
  EXPECT_TRUE(Eventually([&] { return WorkerPids().size() == 2; })) << WorkerPids().size();
}

TEST_F(WorkerKernelTest, CancelEndsACallThatWaitsAndOneThatHangs) {
  options_.max_per_domain = 1;
  Start();
  StartHangfs();
  hangfs_->Hang();
  CancelToken cancel_running;
  CancelToken cancel_waiting;
  CallOptions running = In("hung", seconds(30));
  running.cancel = &cancel_running;
  CallOptions waiting = running;
  waiting.cancel = &cancel_waiting;
  std::thread first([&] {
    auto answer = kernel_->Call(StatFs{At("hung")}, running);
    EXPECT_EQ(answer.error().code(), Code::kCancelled);
    EXPECT_TRUE(answer.error().maybe_applied());
  });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().busy == 1; }));
  std::thread second([&] {
    auto answer = kernel_->Call(StatFs{At("hung")}, waiting);
    EXPECT_EQ(answer.error().code(), Code::kCancelled);
    EXPECT_FALSE(answer.error().maybe_applied());
  });
  ASSERT_TRUE(Eventually([&] { return kernel_->stats().waiting == 1; }));
  cancel_waiting.Cancel();
  second.join();
  cancel_running.Cancel();
  first.join();
  EXPECT_EQ(kernel_->stats().cancelled, 2u);
}

TEST_F(WorkerKernelTest, AMustFinishCallOutlastsItsDeadline) {
  StartHangfs();
  hangfs_->Hang();
  std::thread call([&] {
    CallOptions options = In("hung", milliseconds(50));
    options.must_finish = true;
    EXPECT_TRUE(kernel_->Call(StatFs{At("hung")}, options).ok());
  });
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().slow_now == 1; }));
  hangfs_->Heal();
  call.join();
  EXPECT_EQ(kernel_->stats().slow_now, 0);
  EXPECT_EQ(kernel_->stats().killed, 0u);
}

TEST_F(WorkerKernelTest, IsMountPointIsAnsweredWhileTheFilesystemHangs) {
  StartHangfs();
  hangfs_->Hang();
  auto info = kernel_->Call(Stat{At("hung"), false, true}, In("hung", seconds(5)));
  ASSERT_TRUE(info.ok()) << info.error().ToString();
  EXPECT_TRUE(info->is_mount_point);
  EXPECT_EQ(info->type, FileType::kDirectory);
  auto unmounted = kernel_->Call(Unmount{At("hung")}, In("hung", seconds(5)));
  ASSERT_TRUE(unmounted.ok()) << unmounted.error().ToString();
  EXPECT_TRUE(unmounted->changed);
}

TEST_F(WorkerKernelTest, AForcedUnmountFreesAStuckCaller) {
  StartHangfs();
  hangfs_->Die();
  EXPECT_EQ(AskHangfs(kTimeToBeAsleep).error().code(), Code::kDeadlineExceeded);
  EXPECT_EQ(kernel_->Call(Unmount{At("hung")}, In("other", seconds(5))).error().sys_errno(), EBUSY);
  auto forced = kernel_->Call(Unmount{At("hung"), true}, In("other", seconds(5)));
  ASSERT_TRUE(forced.ok()) << forced.error().ToString();
  EXPECT_TRUE(Eventually([&] { return kernel_->stats().stuck_now == 0; }));
}

TEST_F(WorkerKernelTest, KeysExcludeEachOtherAndLeaveNothingBehind) {
  auto of_another = WorkerKeys::Create(options_.key_directory);
  ASSERT_TRUE(of_another.ok());
  of_another->Write({"something", "a/b c"}, "StatFs /mnt (pid 7)");
  kernel_.reset();
  Start();
  const auto answer = kernel_->Call(Stat{At("data")}, In("", seconds(5), "a/b c"));
  EXPECT_EQ(answer.error().code(), Code::kAborted);
  EXPECT_FALSE(answer.error().maybe_applied());
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(5), "other")).ok());
  of_another->CloseLock();
  EXPECT_TRUE(kernel_->Call(Stat{At("data")}, In("", seconds(5), "a/b c")).ok());
  kernel_.reset();
  EXPECT_TRUE(std::filesystem::is_empty(options_.key_directory));
}

// The agent was ended between its writing of the keys and the worker's taking of the request.
TEST_F(WorkerKernelTest, WhatAWorkerWasSentAndHasNotTakenIsHeld) {
  StartHangfs();
  hangfs_->Die();
  auto worker = SpawnWorker({VolumedWorkerPath()}, options_.key_directory);
  ASSERT_TRUE(worker.ok());
  (*worker)->keys()->Write({"volume-1"}, "StatFs /mnt (pid 7)");
  EXPECT_TRUE(IsHeldForOthers("volume-1"));
  EXPECT_FALSE(IsHeldForOthers("volume-2"));
  (*worker)->channel().Close();
  EXPECT_TRUE((*worker)->WaitForDeath(seconds(10)));
  EXPECT_FALSE(IsHeldForOthers("volume-1"));
}

TEST_F(WorkerKernelTest, ManyThreadsManyDomains) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string domain = t % 4 == 0 ? "" : "domain-" + std::to_string(t % 4);
        if (!kernel_->Call(Stat{At("data")}, In(domain, seconds(30))).ok()) ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(kernel_->stats().requests, 800u);
  EXPECT_EQ(kernel_->stats().busy, 0);
}

}  // namespace
}  // namespace volumed
