// ChangeFilesystemUuid on what was cut of real filesystems: who may be killed meanwhile, and what
// is left alone.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/random.h"
#include "integration/mounter/cut_image_fixture.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;

constexpr int kFiles = 200;

class CopyUuidTest : public CutImageTest {
 protected:
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
};

TEST_P(CopyUuidTest, AnotherUuidThatWasCutOffAnywhereIsGoneOnWith) {
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

INSTANTIATE_TEST_SUITE_P(Filesystems, CopyUuidTest, ::testing::Values("ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

// A logical volume has no file, so that what is on it is reached by its device.
class FrozenDeviceTest : public CopyUuidTest {};

TEST_P(FrozenDeviceTest, ADeviceGetsAnotherUuidWhileNobodyHasIt) {
  Must(local_->Call(cut_, {}));
  const AttachedLoop loop = Must(local_->Call(AttachLoop{In("cut")}, {}));
  const ChangeFilesystemUuid change{
      {loop.device.path, ""}, {}, GetParam(), source_uuid_, copy_uuid_};
  const Error in_use = RenameAndRead(change);
  EXPECT_EQ(in_use.code(), Code::kFailedPrecondition);
  EXPECT_NE(in_use.message().find("somebody has the device"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FrozenDeviceTest, ::testing::Values("ext4", "xfs"),
                         [](const auto& type) { return std::string(type.param); });

class FrozenXfsTest : public CopyUuidTest {
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

class FrozenBtrfsTest : public CopyUuidTest {
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
