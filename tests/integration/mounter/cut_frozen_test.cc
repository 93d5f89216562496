// CutFrozen, ThawFilesystem and ChangeFilesystemUuid on real filesystems: what a cut has, who may
// be killed meanwhile, and that nothing stays frozen.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/crc32c.h"
#include "base/random.h"
#include "fakes/must.h"
#include "integration/mounter/block_mount_fixture.h"
#include "os/freeze_point.h"
#include "os/thawer.h"
#include "os/worker_kernel.h"
#include "places.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kCutPoolBytes = int64_t{3} << 30;
constexpr int kFiles = 200;
constexpr milliseconds kFreezeLimit{1000};
// Nothing is frozen for longer than the limit and about as long again; a node that is busy with
// other tests gets this long. What stays frozen does so for ever.
constexpr milliseconds kPatience{10'000};

// A pool on an xfs at "mnt", an image in it, and that mounted at "mnt2".
class CutFrozenTest : public BlockMountTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    LocalKernelOptions options;
    options.thawer = VolumedWorkerPath();
    local_ = Must(LocalKernel::Create(options));
    disk_.emplace(BlockMountTest::Image("pool", kCutPoolBytes));
    ASSERT_TRUE(disk_->valid());
    Mkfs("xfs", disk_->path());
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "xfs", 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("copy").c_str(), 0755), 0);
    SetFileSize size{In("image"), true};
    size.bytes = kImageBytes;
    Must(local_->Call(size, {}));
    const AttachedLoop loop = Must(local_->Call(AttachLoop{In("image")}, {}));
    FormatDevice format{loop.device.path, loop.device.facts.identity, GetParam(), source_uuid_, {}};
    Must(local_->Call(format, {}));
    Must(local_->Call(Mount{GetParam(), loop.device.path, Volume(), {}}, {}));
    std::ofstream(Path("mnt2/f")) << "kept";
    const std::optional<MountEntry> entry = Mounted("mnt2");
    ASSERT_TRUE(entry);
    point_ = {Volume(), entry->device_major, entry->device_minor};
    cut_.freeze = {point_};
    cut_.never = {{scratch(), "mnt"}};
    cut_.cuts = {{In("image"), {}, In("cut")}};
    cut_.longest_us = std::chrono::microseconds(kFreezeLimit).count();
  }
  void TearDown() override {
    if (disk_) {
      (void)local_->Call(ThawFilesystem{point_}, {});
      ::umount2(Path("copy").c_str(), 0);
      ::umount2(Path("mnt2").c_str(), 0);
      for (const char* name : {"image", "cut"}) (void)local_->Call(DetachLoops{In(name)}, {});
    }
    BlockMountTest::TearDown();
  }
  SafePath In(const std::string& name) const { return {scratch(), "mnt/" + name}; }
  SafePath Volume() const { return {scratch(), "mnt2"}; }

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
  // Files that are in the journal of the filesystem alone when it is cut.
  void WriteFiles() const {
    for (int i = 0; i < kFiles; ++i) std::ofstream(Path("mnt2/n") + std::to_string(i)) << i;
  }
  // Those of them that the image that was cut and read has, and it is let go.
  int CountFilesOfCut() const {
    int count = 0;
    for (int i = 0; i < kFiles; ++i) {
      int content = -1;
      std::ifstream(Path("copy/n") + std::to_string(i)) >> content;
      if (content == i) ++count;
    }
    EXPECT_EQ(::umount2(Path("copy").c_str(), 0), 0);
    Must(local_->Call(DetachLoops{In("cut")}, {}));
    return count;
  }
  // What the volume's file holds on the image that was cut, which has this UUID.
  std::string ReadCut(const std::string& uuid) {
    const AttachedLoop loop = Must(local_->Call(AttachLoop{In("cut")}, {}));
    EXPECT_EQ(Must(local_->Call(ProbeDevice{loop.device.path}, {})).identity.uuid, uuid);
    Must(local_->Call(Mount{GetParam(), loop.device.path, {scratch(), "copy"}, {}}, {}));
    return Must(local_->Call(ReadFile{{scratch(), "copy/f"}}, {})).bytes;
  }
  // Does it in a process that is killed with its tools after a while.
  void CutOff(const ChangeFilesystemUuid& change, std::chrono::microseconds after) const {
    const pid_t worker = ::fork();
    ASSERT_GE(worker, 0);
    if (worker == 0) {
      ::setpgid(0, 0);
      (void)local_->Call(change, {});
      ::_exit(0);
    }
    ::setpgid(worker, worker);
    std::this_thread::sleep_for(after);
    EXPECT_EQ(::kill(-worker, SIGKILL), 0);
    EXPECT_EQ(::waitpid(worker, nullptr, 0), worker);
  }
  // Until what was killed has let go of the image.
  Result<FilesystemName> ChangeAgain(const ChangeFilesystemUuid& change) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (true) {
      Result<FilesystemName> changed = local_->Call(change, {});
      if (changed.ok() || changed.error().code() != Code::kFailedPrecondition) return changed;
      if (std::chrono::steady_clock::now() > end) return changed;
      std::this_thread::sleep_for(milliseconds(10));
    }
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

  // Nobody else's: tests that run at the same time see each other's filesystems.
  const std::string source_uuid_ = NewUuid();
  const std::string copy_uuid_ = NewUuid();
  std::optional<LoopDevice> disk_;
  FreezePoint point_;
  CutFrozen cut_;
};

TEST_P(CutFrozenTest, ACutHasWhatWasThereAndIsMountedBesideItsSource) {
  const FrozenCut cut = Must(local_->Call(cut_, {}));
  std::printf("%s: frozen %ld us, stall %ld us\n", GetParam(), static_cast<long>(cut.frozen_us),
              static_cast<long>(cut.stall_us));
  EXPECT_LE(cut.frozen_us, cut.stall_us);
  std::ofstream(Path("mnt2/f")) << "later";
  const ChangeFilesystemUuid change{In("cut"), {}, GetParam(), source_uuid_, copy_uuid_};
  EXPECT_TRUE(Must(local_->Call(change, {})).changed);
  EXPECT_FALSE(Must(local_->Call(change, {})).changed);
  EXPECT_EQ(ReadCut(copy_uuid_), "kept");
  const auto in_use = local_->Call(change, {});
  ASSERT_FALSE(in_use.ok());
  EXPECT_EQ(in_use.error().code(), Code::kFailedPrecondition);
}

TEST_P(CutFrozenTest, AnotherUuidThatWasCutOffAnywhereIsGoneOnWith) {
  WriteFiles();
  Must(local_->Call(cut_, {}));
  const bool is_xfs = std::string(GetParam()) == "xfs";
  std::mt19937 random(3);
  ChangeFilesystemUuid change{In("cut"), {}, GetParam(), source_uuid_, copy_uuid_};
  for (int round = 0; round < 25; ++round) {
    // About as long as it takes.
    CutOff(change, std::chrono::microseconds(random() % (is_xfs ? 250'000 : 120'000)));
    const Result<FilesystemName> again = ChangeAgain(change);
    ASSERT_TRUE(again.ok()) << "round " << round << ": " << again.error().ToString();
    // Never that of the source, which is mounted: btrfstune refuses it.
    change.old_uuid = std::exchange(change.new_uuid, NewUuid());
  }
  if (is_xfs) {
    EXPECT_EQ(Shell("xfs_repair -n " + Path("mnt/cut")), 0) << "superblocks differ";
  }
  EXPECT_EQ(ReadCut(change.old_uuid), "kept");
  EXPECT_EQ(CountFilesOfCut(), kFiles);
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

// A logical volume has no file, so that what is on it is reached by its device.
class FrozenDeviceTest : public CutFrozenTest {};

TEST_P(FrozenDeviceTest, ADeviceGetsAnotherUuidWhileNobodyHasIt) {
  Must(local_->Call(cut_, {}));
  const AttachedLoop loop = Must(local_->Call(AttachLoop{In("cut")}, {}));
  const ChangeFilesystemUuid change{
      {loop.device.path, ""}, {}, GetParam(), source_uuid_, copy_uuid_};
  EXPECT_TRUE(Must(local_->Call(change, {})).changed);
  EXPECT_FALSE(Must(local_->Call(change, {})).changed);
  EXPECT_EQ(ReadCut(copy_uuid_), "kept");
  const auto in_use = local_->Call(change, {});
  ASSERT_FALSE(in_use.ok());
  EXPECT_EQ(in_use.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(in_use.error().message().find("somebody has the device"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FrozenDeviceTest, ::testing::Values("ext4", "xfs"),
                         [](const auto& type) { return std::string(type.param); });

class FrozenXfsTest : public CutFrozenTest {
 protected:
  // Does it in a process that is killed before it writes for the nth time, and returns how often it
  // has written. Fewer times than n: it was done.
  int CutOffAtWrite(const ChangeFilesystemUuid& change, int n) const {
    const pid_t worker = ::fork();
    if (worker == 0) {
      ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
      ::raise(SIGSTOP);
      ::_exit(local_->Call(change, {}).ok() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(worker, &status, 0), worker);
    EXPECT_EQ(
        ::ptrace(PTRACE_SETOPTIONS, worker, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
    int writes = 0;
    while (::ptrace(PTRACE_SYSCALL, worker, nullptr, nullptr) == 0 &&
           ::waitpid(worker, &status, 0) == worker && WIFSTOPPED(status)) {
      __ptrace_syscall_info call = {};
      ::ptrace(PTRACE_GET_SYSCALL_INFO, worker, sizeof(call), &call);
      if (call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_pwrite64) continue;
      if (writes + 1 == n) ::kill(worker, SIGKILL);
      if (++writes < n) continue;
      EXPECT_EQ(::waitpid(worker, &status, 0), worker);
      return n;
    }
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    return writes;
  }
  // It is made anew, with a log that has something to replay.
  void CutAnew() {
    ::unlink(Path("mnt/cut").c_str());
    Must(local_->Call(cut_, {}));
    ASSERT_EQ(Shell("xfs_logprint -t " + Path("mnt/cut") + " | grep -q DIRTY"), 0);
  }
};

// xfs_db lost the cycle of the log for a while, and no kernel mounted what it left then.
TEST_P(FrozenXfsTest, AnotherUuidThatWasCutOffAtAnyWriteIsGoneOnWith) {
  WriteFiles();
  const ChangeFilesystemUuid change{In("cut"), {}, "xfs", source_uuid_, copy_uuid_};
  CutAnew();
  const int writes = CutOffAtWrite(change, INT_MAX);
  ASSERT_GT(writes, 8);
  std::set<int> points = {1, 2, 3, 4, writes / 2};
  for (int i = 0; i < 6; ++i) points.insert(writes - i);
  for (const int point : points) {
    SCOPED_TRACE("cut off at write " + std::to_string(point) + " of " + std::to_string(writes));
    CutAnew();
    ASSERT_EQ(CutOffAtWrite(change, point), point);
    const Result<FilesystemName> again = ChangeAgain(change);
    ASSERT_TRUE(again.ok()) << again.error().ToString();
    EXPECT_EQ(Shell("xfs_repair -n " + Path("mnt/cut")), 0);
    EXPECT_EQ(ReadCut(copy_uuid_), "kept");
    EXPECT_EQ(CountFilesOfCut(), kFiles);
  }
}

// After a change that was done. Its log begins as that of one that was cut off.
TEST_P(FrozenXfsTest, ALogThatHasSomethingToReplayIsNotWrittenAnew) {
  CutAnew();
  ChangeFilesystemUuid change{In("cut"), {}, "xfs", source_uuid_, copy_uuid_};
  Must(local_->Call(change, {}));
  EXPECT_EQ(ReadCut(copy_uuid_), "kept");
  std::ofstream(Path("copy/f")) << "later";
  ASSERT_EQ(Shell("xfs_io -x -c fsync -c 'shutdown -f' " + Path("copy/f")), 0);
  EXPECT_EQ(::umount2(Path("copy").c_str(), 0), 0);
  Must(local_->Call(DetachLoops{In("cut")}, {}));
  const std::string image = Path("mnt/cut");
  ASSERT_EQ(Shell("xfs_logprint -t " + image + " | grep -q DIRTY"), 0);
  const std::string first = "xfs_db -x -c 'sb 0' -c 'write uuid ";
  ASSERT_EQ(Shell(first + source_uuid_ + "' " + image), 0);
  EXPECT_FALSE(ChangeAgain(change).ok());
  ASSERT_EQ(Shell(first + copy_uuid_ + "' " + image), 0);
  EXPECT_FALSE(Must(ChangeAgain(change)).changed);
  EXPECT_EQ(ReadCut(copy_uuid_), "later");
  EXPECT_EQ(::umount2(Path("copy").c_str(), 0), 0);
}

// F2: the tool refuses the dirty log that a freeze leaves, and ends with status 0.
TEST_P(FrozenXfsTest, AnotherUuidIsBelievedOnlyIfItIsThere) {
  Must(local_->Call(cut_, {}));
  const std::string image = Path("mnt/cut");
  EXPECT_EQ(Shell("xfs_db -x -c 'uuid " + copy_uuid_ + "' " + image), 0);
  EXPECT_NE(Shell("blkid -p " + image + " | grep -q " + copy_uuid_), 0)
      << "F2 does not hold any more";
  EXPECT_TRUE(
      Must(local_->Call(ChangeFilesystemUuid{In("cut"), {}, "xfs", source_uuid_, copy_uuid_}, {}))
          .changed);
  EXPECT_EQ(Shell("blkid -p " + image + " | grep -q " + copy_uuid_), 0);
}

// A change that was cut off before it was done with the other superblocks passed for done.
TEST_P(FrozenXfsTest, AnotherUuidIsInEverySuperblock) {
  Must(local_->Call(cut_, {}));
  const ChangeFilesystemUuid change{In("cut"), {}, "xfs", source_uuid_, copy_uuid_};
  Must(local_->Call(change, {}));
  const std::string image = Path("mnt/cut");
  const std::string second = "xfs_db -x -c 'sb 1' ";
  ASSERT_EQ(Shell(second + "-c 'write uuid " + source_uuid_ + "' " + image), 0);
  ASSERT_NE(Shell(second + "-c 'p uuid' " + image + " | grep -q " + copy_uuid_), 0);
  EXPECT_FALSE(Must(local_->Call(change, {})).changed);
  EXPECT_EQ(Shell(second + "-c 'p uuid' " + image + " | grep -q " + copy_uuid_), 0);
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FrozenXfsTest, ::testing::Values("xfs"));

class FrozenBtrfsTest : public CutFrozenTest {
 protected:
  // In these superblocks of the cut, which then bear the right checksum.
  void EditSuperblocks(const std::vector<off_t>& places, size_t at, char bits) const {
    const Descriptor file(::open(Path("mnt/cut").c_str(), O_RDWR | O_CLOEXEC));
    for (const off_t place : places) {
      std::string block(4096, '\0');
      ASSERT_EQ(::pread(file.get(), block.data(), block.size(), place), 4096);
      block[at] = static_cast<char>(block[at] | bits);
      const uint32_t sum = ExtendCrc32c(0, std::string_view(block).substr(32));
      for (size_t i = 0; i < 4; ++i) block[i] = static_cast<char>(sum >> (8 * i));
      ASSERT_EQ(::pwrite(file.get(), block.data(), block.size(), place), 4096);
    }
  }
  Error WhyNotChanged() {
    const Result<FilesystemName> changed =
        local_->Call(ChangeFilesystemUuid{In("cut"), {}, "btrfs", source_uuid_, copy_uuid_}, {});
    EXPECT_FALSE(changed.ok());
    return changed.ok() ? Error::NotApplied(Code::kUnknown, "it was changed") : changed.error();
  }

  static constexpr off_t kFirst = 64 << 10;
  static constexpr off_t kSecond = 64 << 20;
};

// btrfstune refused it for ever, and no kernel mounted it.
TEST_P(FrozenBtrfsTest, AChangeThatWasCutOffAfterItsMarkIsGoneOnWith) {
  Must(local_->Call(cut_, {}));
  // As btrfstune marks it first: in each of its superblocks on a file of this size.
  ASSERT_NO_FATAL_FAILURE(EditSuperblocks({kFirst, kSecond}, 60, 1 << 4));
  EXPECT_NE(Shell("btrfstune -f -M " + copy_uuid_ + " " + Path("mnt/cut")), 0)
      << "the mark keeps nobody from anything any more";
  const ChangeFilesystemUuid change{In("cut"), {}, "btrfs", source_uuid_, copy_uuid_};
  EXPECT_TRUE(Must(local_->Call(change, {})).changed);
  EXPECT_EQ(ReadCut(copy_uuid_), "kept");
}

// What is written at the place of a superblock beyond the end of a file made the file that large.
TEST_P(FrozenBtrfsTest, AFilesystemThatSaysItIsLargerThanItsFileMadeThatLarger) {
  Must(local_->Call(cut_, {}));
  ASSERT_NO_FATAL_FAILURE(EditSuperblocks({kFirst}, 209 + 5, 1));  // 1 TiB, of its device's bytes
  const auto bytes = std::filesystem::file_size(Path("mnt/cut"));
  EXPECT_EQ(WhyNotChanged().code(), Code::kDataLoss);
  EXPECT_EQ(std::filesystem::file_size(Path("mnt/cut")), bytes);
}

// Its copies got another UUID, and were never mounted.
TEST_P(FrozenBtrfsTest, ASeedOfOtherFilesystemsIsNotGivenAnotherUuid) {
  Must(local_->Call(cut_, {}));
  ASSERT_NO_FATAL_FAILURE(EditSuperblocks({kFirst, kSecond}, 60, 1));
  EXPECT_EQ(WhyNotChanged().code(), Code::kFailedPrecondition);
}

// btrfstune commits a transaction, after which no kernel replays what an fsync has put into the
// log: what was made of a snapshot of a volume that had lost its node's power was never mounted.
TEST_P(FrozenBtrfsTest, WhatWasSyncedBeforeAPowerLossIsThereWithAnotherUuid) {
  ASSERT_EQ(Shell("sync -f " + Path("mnt2")), 0);
  std::ofstream(Path("mnt2/f")) << "synced";
  ASSERT_EQ(Shell("sync " + Path("mnt2/f")), 0);
  ASSERT_EQ(Shell("cp " + Path("mnt/image") + " " + Path("mnt/cut")), 0);
  ASSERT_EQ(Shell("btrfs inspect-internal dump-super " + Path("mnt/cut") +
                  " | grep -q '^log_root[[:space:]]*[1-9]'"),
            0);
  const ChangeFilesystemUuid change{In("cut"), {}, "btrfs", source_uuid_, copy_uuid_};
  EXPECT_TRUE(Must(local_->Call(change, {})).changed);
  EXPECT_EQ(ReadCut(copy_uuid_), "synced");
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FrozenBtrfsTest, ::testing::Values("btrfs"));

}  // namespace
}  // namespace volumed
