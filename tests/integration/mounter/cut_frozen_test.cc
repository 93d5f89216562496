// CutFrozen and ThawFilesystem on real filesystems: what a cut has, who may be killed meanwhile,
// and that nothing stays frozen.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include "integration/mounter/cut_image_fixture.h"
#include "os/freeze_point.h"
#include "os/thawer.h"
#include "os/worker_kernel.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

class CutFrozenTest : public CutImageTest {
 protected:
  // Whether a write that begins now is done.
  bool WriteEnds(int number) const {
    const pid_t writer = ::fork();
    if (writer == 0) {
      const std::string path = Path("mnt2/w" + std::to_string(number));
      const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
      ::_exit(file >= 0 && ::write(file, "x", 1) == 1 ? 0 : errno);
    }
    const std::optional<int> status = AwaitEnd(writer);
    if (!status) return false;
    EXPECT_EQ(*status, 0) << "status of the writer; errno " << WEXITSTATUS(*status);
    return true;
  }
  // The status of a child that ends within the patience. Else the filesystem is thawed.
  std::optional<int> AwaitEnd(pid_t child) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        (void)local_->Call(ThawFilesystem{point_}, {});
        ::waitpid(child, &status, 0);
        return std::nullopt;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    return status;
  }
  // Whether all children end, those of children that have died included.
  bool AllEnd() const {
    bool all = true;
    while (::waitid(P_ALL, 0, nullptr, WEXITED | WNOHANG | WNOWAIT) == 0) {
      all = AwaitEnd(-1).has_value() && all;
    }
    return all;
  }
  // An agent that makes a cut through a worker. It writes to `syncs` after each sync of it, the
  // last of which is followed by the freeze.
  [[noreturn]] void BeAgent(Duration longest, int syncs) const {
    const RealClock clock;
    WorkerKernelOptions options;
    options.worker_path = VolumedWorkerPath();
    const auto kernel = WorkerKernel::Create(options, clock);
    if (!kernel.ok()) ::_exit(1);
    CallOptions call;
    call.deadline = Deadline::After(clock, longest);
    call.progress = [syncs](int64_t) { (void)!::write(syncs, "s", 1); };
    (void)(*kernel)->Call(cut_, call);
    ::_exit(0);
  }
  // Kills every thawer of this test, if there is one now.
  static void KillThawers(pid_t parent) {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream stat(entry.path() / "stat");
      int pid = 0;
      std::string name;
      std::string state;
      int of = 0;
      if (!(stat >> pid >> name >> state >> of)) continue;
      if (name == "(volumed-thawer)" && of == parent) ::kill(pid, SIGKILL);
    }
  }
};

TEST_P(CutFrozenTest, ACutHasWhatWasThereAndIsMountedBesideItsSource) {
  const FrozenCut cut = Must(local_->Call(cut_, {}));
  std::printf("%s: frozen %ld us, stall %ld us\n", GetParam(), static_cast<long>(cut.frozen_us),
              static_cast<long>(cut.stall_us));
  EXPECT_LE(cut.frozen_us, cut.stall_us);
  std::ofstream(Path("mnt2/f")) << "later";
  const ChangeFilesystemUuid change{In("cut"), {}, GetParam(), source_uuid_, copy_uuid_};
  EXPECT_EQ(RenameAndRead(change).code(), Code::kFailedPrecondition);
}

TEST_P(CutFrozenTest, WhatMustNotBeFrozenIsRefused) {
  const std::optional<MountEntry> pool = Mounted("mnt");
  ASSERT_TRUE(pool);
  CutFrozen of_pool = cut_;
  of_pool.never.clear();
  of_pool.freeze = {{{scratch(), "mnt"}, pool->device_major, pool->device_minor}};
  CutFrozen other = cut_;
  other.freeze[0].device_minor += 1;
  CutFrozen never = cut_;
  never.never = {{scratch(), "mnt2/f"}};
  for (const CutFrozen& refused : {of_pool, other, never}) {
    const auto answer = local_->Call(refused, {});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), Code::kFailedPrecondition) << answer.error().ToString();
    EXPECT_FALSE(answer.error().maybe_applied());
  }
  EXPECT_FALSE(std::filesystem::exists(Path("mnt/cut")));
}

// The later clone would take the place of the earlier one, and both would count as cuts.
TEST_P(CutFrozenTest, AFileIsNotMadeOfTwoPartsOfACut) {
  cut_.cuts.push_back({In("image"), {}, In("cut")});
  const auto cut = local_->Call(cut_, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kInvalidArgument) << cut.error().ToString();
  EXPECT_FALSE(cut.error().maybe_applied());
  EXPECT_FALSE(std::filesystem::exists(Path("mnt/cut")));
}

TEST_P(CutFrozenTest, SomebodyElsesFreezeIsNeitherTakenNorEnded) {
  const OpenedPoint open = Must(OpenFreezePoint(point_, {}));
  ASSERT_EQ(FreezeFilesystem(open.root.get()), 0);
  const auto cut = local_->Call(cut_, {});
  EXPECT_EQ(ThawFrozen(open.root.get()), 0) << "it was thawed by the cut that had failed";
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().sys_errno(), EBUSY);
  EXPECT_FALSE(cut.error().maybe_applied());
  EXPECT_FALSE(std::filesystem::exists(Path("mnt/cut")));
}

TEST_P(CutFrozenTest, NothingStaysFrozenWhoeverIsKilledAndWhenever) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const pid_t worker = ::fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
      ::_exit(local_->Call(cut_, {}).ok() ? 0 : 1);
    }
    // A cut takes some hundred milliseconds, most of them before the freeze.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200'000));
    if (round % 2 == 0) {
      ::kill(worker, SIGKILL);
    } else {
      KillThawers(worker);
    }
    EXPECT_TRUE(WriteEnds(round)) << "round " << round;
    EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
    EXPECT_TRUE(WriteEnds(round)) << "round " << round;
    EXPECT_FALSE(Must(local_->Call(ThawFilesystem{point_}, {})).changed) << "round " << round;
  }
}

// The worker goes on if its agent is gone, and is killed in the middle of its cut if the agent
// lives and has no patience.
TEST_P(CutFrozenTest, NothingStaysFrozenWhetherTheAgentDiesOrKillsItsWorker) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  std::mt19937 random(2);
  int amid = 0;
  for (int round = 0; round < 40; ++round) {
    const bool dies = round % 2 == 0;
    const milliseconds moment(random() % 150);
    int ends[2] = {-1, -1};
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const Descriptor reader(ends[0]);
    Descriptor writer(ends[1]);
    const pid_t agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) BeAgent(dies ? kPatience : moment + milliseconds(50), writer.get());
    writer.Reset();
    char sync = 0;
    if (::read(reader.get(), &sync, 1) == 1) ++amid;
    if (dies) {
      std::this_thread::sleep_for(moment);
      EXPECT_EQ(::kill(agent, SIGKILL), 0);
    }
    EXPECT_TRUE(WriteEnds(round)) << "round " << round;
    EXPECT_TRUE(AllEnd()) << "round " << round;
    EXPECT_TRUE(WriteEnds(round)) << "round " << round;
    EXPECT_FALSE(Must(local_->Call(ThawFilesystem{point_}, {})).changed) << "round " << round;
  }
  EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
  EXPECT_GE(amid, 20) << "the agents did not come as far as the cut";
}

// F3: the unmount of what is frozen succeeds, and leaves it frozen with its device. The thawer has
// the mount open, so that it cannot happen.
TEST_P(CutFrozenTest, WhatIsFrozenCannotBeUnmountedWhileItsThawerLives) {
  OpenedPoint open = Must(OpenFreezePoint(point_, {}));
  std::optional<Thawer> thawer =
      Must(Thawer::Start(VolumedWorkerPath(), open.root.get(), kFreezeLimit));
  ASSERT_TRUE(thawer->BeginFreeze().ok());
  ASSERT_EQ(FreezeFilesystem(open.root.get()), 0);
  open.root.Reset();
  EXPECT_EQ(::umount2(Path("mnt2").c_str(), 0), -1);
  EXPECT_EQ(errno, EBUSY);
  thawer.reset();  // as its freezer's death is
  EXPECT_FALSE(Must(local_->Call(ThawFilesystem{point_}, {})).changed);
  EXPECT_EQ(::umount2(Path("mnt2").c_str(), 0), 0);
}

TEST_P(CutFrozenTest, AThawerThawsAtItsLimitAndSaysSo) {
  const OpenedPoint open = Must(OpenFreezePoint(point_, {}));
  Thawer thawer = Must(Thawer::Start(VolumedWorkerPath(), open.root.get(), milliseconds(100)));
  ASSERT_TRUE(thawer.BeginFreeze().ok());
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(FreezeFilesystem(open.root.get()), 0);
  EXPECT_TRUE(WriteEnds(1));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
  EXPECT_EQ(ThawFrozen(open.root.get()), EINVAL);
  EXPECT_FALSE(thawer.End());
}

TEST_P(CutFrozenTest, ACutThatTakesLongerThanItMayIsAborted) {
  cut_.longest_us = 1;
  const auto cut = local_->Call(cut_, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kAborted) << cut.error().ToString();
  EXPECT_FALSE(std::filesystem::exists(Path("mnt/cut")));
  EXPECT_TRUE(WriteEnds(1));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, CutFrozenTest, ::testing::Values("ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
