// The rules of FakeKernel's world for copies of images and for frozen filesystems. That they are
// Linux' own is shown by cut_frozen_test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"
#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

// A pool on an xfs, an image with a filesystem in it, and that mounted.
class FakeCutTest : public ::testing::Test {
 protected:
  FakeCutTest() {
    kernel_.AddMount("xfs", "/dev/pool", "/pool");
    kernel_.AddDirectory("/vol");
    SetFileSize size{In("image"), true};
    size.bytes = int64_t{1} << 30;
    Must(kernel_.Call(size, {}));
    const AttachedLoop loop = Must(kernel_.Call(AttachLoop{In("image")}, {}));
    const DeviceIdentity blank = loop.device.facts.identity;
    Must(kernel_.Call(FormatDevice{loop.device.path, blank, "xfs", "old", {}}, {}));
    Must(kernel_.Call(Mount{"xfs", loop.device.path, {"/vol", ""}, {}}, {}));
    kernel_.AddFile("/vol/f", "kept");
    cut_.freeze = {Point()};
    cut_.never = {{"/pool", ""}};
    cut_.cuts = {{In("image"), {}, In("cut")}, {In("image"), {}, In("cut2")}};
  }
  static SafePath In(const std::string& name) { return {"/pool", name}; }
  FreezePoint Point() const {
    for (const MountEntry& mount : kernel_.Mounts()) {
      if (mount.mount_point == "/vol") {
        return {{"/vol", ""}, mount.device_major, mount.device_minor};
      }
    }
    return {};
  }
  // Takes the volume away, so that only its image is left.
  void Unstage() {
    Must(kernel_.Call(Unmount{{"/vol", ""}}, {}));
    Must(kernel_.Call(DetachLoops{In("image")}, {}));
  }
  std::string ReadCopy(const std::string& name) {
    const AttachedLoop loop = Must(kernel_.Call(AttachLoop{In(name)}, {}));
    kernel_.AddDirectory("/copy");
    const auto mounted = kernel_.Call(Mount{"xfs", loop.device.path, {"/copy", ""}, {}}, {});
    if (!mounted.ok()) return mounted.error().ToString();
    const std::string text = Must(kernel_.Call(ReadFile{{"/copy", "f"}}, {})).bytes;
    Must(kernel_.Call(Unmount{{"/copy", ""}}, {}));
    Must(kernel_.Call(DetachLoops{In(name)}, {}));
    return text;
  }

  FakeKernel kernel_;
  CutFrozen cut_;
};

TEST_F(FakeCutTest, ACloneHasWhatTheImageHadThenAndNothingLater) {
  Must(kernel_.Call(CloneFile{In("image"), {}, In("clone")}, {}));
  EXPECT_TRUE(kernel_.Image("/pool/clone").torn);
  EXPECT_TRUE(kernel_.Image("/pool/clone").dirty_log);
  kernel_.AddFile("/vol/f", "later");
  Unstage();
  EXPECT_EQ(ReadCopy("clone"), "kept");
  EXPECT_EQ(kernel_.Image("/pool/clone").identity.uuid, "old");
}

TEST_F(FakeCutTest, WhatNobodyWritesToIsNotTorn) {
  Unstage();
  Must(kernel_.Call(CloneFile{In("image"), {}, In("clone")}, {}));
  EXPECT_FALSE(kernel_.Image("/pool/clone").torn);
  EXPECT_FALSE(kernel_.Image("/pool/clone").dirty_log);
}

TEST_F(FakeCutTest, AFileThatIsNoCopyIsNeverOverwritten) {
  kernel_.AddFile("/pool/other", "mine");
  const auto clone = kernel_.Call(CloneFile{In("image"), {}, In("other")}, {});
  ASSERT_FALSE(clone.ok());
  EXPECT_EQ(clone.error().code(), Code::kAlreadyExists);
  EXPECT_FALSE(clone.error().maybe_applied());
  EXPECT_EQ(kernel_.Find("/pool/other").content, "mine");
  Must(kernel_.Call(CloneFile{In("image"), {}, In("clone")}, {}));
  EXPECT_TRUE(kernel_.Call(CloneFile{In("image"), {}, In("clone")}, {}).ok());
  EXPECT_EQ(kernel_.Call(CloneFile{In("other"), {}, In("clone")}, {}).error().code(),
            Code::kAlreadyExists);
}

TEST_F(FakeCutTest, ACutIsNotTornAndLeavesNothingFrozen) {
  const FrozenCut cut = Must(kernel_.Call(cut_, {}));
  EXPECT_EQ(cut.files.size(), 2u);
  EXPECT_GE(cut.stall_us, cut.frozen_us);
  EXPECT_FALSE(kernel_.IsFrozen("/vol"));
  EXPECT_FALSE(kernel_.Image("/pool/cut").torn);
  EXPECT_TRUE(kernel_.Image("/pool/cut").dirty_log);
  // Beside its source it has the same UUID.
  EXPECT_THAT(ReadCopy("cut2"), HasSubstr("EINVAL"));
  Must(kernel_.Call(DetachLoops{In("cut2")}, {}));
  Unstage();
  EXPECT_EQ(ReadCopy("cut2"), "kept");
}

TEST_F(FakeCutTest, ACutThatIsCutOffLeavesItFrozenAndWritersWait) {
  kernel_.CutOffNext("CutFrozen");
  const auto cut = kernel_.Call(cut_, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_TRUE(cut.error().maybe_applied());
  EXPECT_TRUE(kernel_.IsFrozen("/vol"));
  EXPECT_TRUE(kernel_.Exists("/pool/cut"));
  const auto write = kernel_.Call(MakeFile{{"/vol", "new"}}, {});
  ASSERT_FALSE(write.ok());
  EXPECT_EQ(write.error().code(), Code::kDeadlineExceeded);
  ASSERT_EQ(kernel_.blocked_writes().size(), 1u);
  EXPECT_THAT(kernel_.blocked_writes()[0], HasSubstr("MakeFile /vol/new"));
  EXPECT_TRUE(kernel_.Call(MakeFile{In("beside")}, {}).ok());
  // Somebody else's freeze is not taken over.
  EXPECT_EQ(kernel_.Call(cut_, {}).error().sys_errno(), EBUSY);
  EXPECT_TRUE(Must(kernel_.Call(ThawFilesystem{Point()}, {})).changed);
  EXPECT_FALSE(Must(kernel_.Call(ThawFilesystem{Point()}, {})).changed);
  EXPECT_TRUE(kernel_.Call(MakeFile{{"/vol", "new"}}, {}).ok());
}

TEST_F(FakeCutTest, AnAgentThatEndsInsideACutFindsItFrozenAndThawsIt) {
  kernel_.Revive();
  kernel_.CrashAtCall(1, FakeKernel::CrashPoint::kInside);
  EXPECT_THROW((void)kernel_.Call(cut_, {}), SimulatedCrash);
  kernel_.Revive();
  EXPECT_TRUE(kernel_.IsFrozen("/vol"));
  EXPECT_TRUE(Must(kernel_.Call(ThawFilesystem{Point()}, {})).changed);
}

// F3: the unmount of what is frozen succeeds, and it stays so with its device.
TEST_F(FakeCutTest, WhatIsUnmountedWhileItIsFrozenStaysFrozenWithItsDevice) {
  kernel_.CutOffNext("CutFrozen");
  ASSERT_FALSE(kernel_.Call(cut_, {}).ok());
  Unstage();
  EXPECT_EQ(Must(kernel_.Call(ListLoops{In("image")}, {})).loops.size(), 1u);
  kernel_.Reboot();
  EXPECT_TRUE(Must(kernel_.Call(ListLoops{In("image")}, {})).loops.empty());
}

TEST_F(FakeCutTest, ACutThatItsWatchThawedIsNone) {
  kernel_.LetThawerWin();
  const auto cut = kernel_.Call(cut_, {});
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), Code::kAborted);
  EXPECT_TRUE(cut.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists("/pool/cut"));
  EXPECT_FALSE(kernel_.IsFrozen("/vol"));
  EXPECT_TRUE(kernel_.Call(cut_, {}).ok());
}

TEST_F(FakeCutTest, WhatMustNotBeFrozenIsRefusedBeforeAnythingIsMade) {
  cut_.never = {{"/vol", "f"}};
  const auto never = kernel_.Call(cut_, {});
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().code(), Code::kFailedPrecondition);
  cut_.never.clear();
  cut_.freeze[0].device_minor += 1;
  EXPECT_EQ(kernel_.Call(cut_, {}).error().code(), Code::kFailedPrecondition);
  cut_.freeze = {Point()};
  cut_.cuts[1].to = cut_.cuts[0].to;
  EXPECT_EQ(kernel_.Call(cut_, {}).error().code(), Code::kInvalidArgument);
  EXPECT_FALSE(kernel_.Exists("/pool/cut"));
}

TEST_F(FakeCutTest, ACopyThatIsCutOffIsAHalfUntilItIsMadeAnew) {
  Unstage();
  kernel_.CutOffNext("CopyFile");
  const CopyFile copy{In("image"), {}, In("copy")};
  EXPECT_FALSE(kernel_.Call(copy, {}).ok());
  EXPECT_EQ(kernel_.Image("/pool/copy").fs_type, "");
  EXPECT_TRUE(kernel_.Call(copy, {}).ok());
  EXPECT_EQ(ReadCopy("copy"), "kept");
}

TEST_F(FakeCutTest, ACopyThatIsMadeAnewAndCutOffHasNothingOfTheEarlierOne) {
  Unstage();
  const CopyFile copy{In("image"), {}, In("copy")};
  Must(kernel_.Call(copy, {}));
  ASSERT_EQ(kernel_.Image("/pool/copy").fs_type, "xfs");
  kernel_.CutOffNext("CopyFile");
  EXPECT_FALSE(kernel_.Call(copy, {}).ok());
  EXPECT_EQ(kernel_.Image("/pool/copy").fs_type, "");
}

TEST_F(FakeCutTest, ACopyThatDoesNotFitIsNotSaidToBeDone) {
  kernel_.AddMount("ext4", "/dev/small", "/small");
  kernel_.LimitFilesystem("/small", 8192);
  kernel_.AddFile("/pool/data", std::string(20'000, 'x'));
  const auto copy = kernel_.Call(CopyFile{In("data"), {}, {"/small", "copy"}}, {});
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().sys_errno(), ENOSPC);
  EXPECT_TRUE(copy.error().maybe_applied());
  EXPECT_EQ(kernel_.Find("/small/copy").content, std::string(8192, 'x'));
}

TEST_F(FakeCutTest, NothingIsCopiedOrRenamedOnAReadOnlyFilesystem) {
  Unstage();
  const CopyFile copy{In("image"), {}, In("copy")};
  Must(kernel_.Call(copy, {}));
  Must(kernel_.Call(Remount{{"/pool", ""}, {"ro"}}, {}));
  CopyFile rest = copy;
  rest.from_offset = 4096;
  for (const CopyFile& again : {copy, rest}) {
    EXPECT_EQ(kernel_.Call(again, {}).error().sys_errno(), EROFS);
  }
  const ChangeFilesystemUuid change{In("copy"), {}, "xfs", "old", "new"};
  EXPECT_EQ(kernel_.Call(change, {}).error().sys_errno(), EROFS);
  EXPECT_EQ(kernel_.Image("/pool/copy").identity.uuid, "old");
}

TEST_F(FakeCutTest, AnotherUuidIsCutOffHalfWayAndGoesOn) {
  Must(kernel_.Call(cut_, {}));
  const ChangeFilesystemUuid change{In("cut"), {}, "xfs", "old", "new"};
  kernel_.CutOffNext("ChangeFilesystemUuid");
  EXPECT_FALSE(kernel_.Call(change, {}).ok());
  EXPECT_TRUE(kernel_.Image("/pool/cut").unmountable);
  EXPECT_TRUE(Must(kernel_.Call(change, {})).changed);
  EXPECT_FALSE(Must(kernel_.Call(change, {})).changed);
  EXPECT_EQ(kernel_.Image("/pool/cut").identity.uuid, "new");
  EXPECT_EQ(ReadCopy("cut"), "kept");
  const ChangeFilesystemUuid other{In("cut"), {}, "xfs", "old", "third"};
  EXPECT_EQ(kernel_.Call(other, {}).error().code(), Code::kFailedPrecondition);
}

TEST_F(FakeCutTest, ADeviceThatNobodyHasGetsAnotherUuid) {
  FakeDevice device;
  device.fs_type = "ext4";
  device.identity.uuid = "old";
  device.identity.size_bytes = 1 << 20;
  kernel_.AddDevice("/dev/dm-1", device);
  const ChangeFilesystemUuid change{{"/dev/dm-1", ""}, {}, "ext4", "old", "new"};
  kernel_.ChangeDevice("/dev/dm-1", [](FakeDevice& there) { there.claimed = true; });
  EXPECT_EQ(kernel_.Call(change, {}).error().code(), Code::kFailedPrecondition);
  kernel_.ChangeDevice("/dev/dm-1", [](FakeDevice& there) { there.claimed = false; });
  EXPECT_TRUE(Must(kernel_.Call(change, {})).changed);
  EXPECT_FALSE(Must(kernel_.Call(change, {})).changed);
  EXPECT_EQ(kernel_.Device("/dev/dm-1").identity.uuid, "new");
  StorageObject of_a_file;
  of_a_file.inode = 7;
  const ChangeFilesystemUuid expecting{{"/dev/dm-1", ""}, of_a_file, "ext4", "new", "third"};
  EXPECT_EQ(kernel_.Call(expecting, {}).error().code(), Code::kFailedPrecondition);
}

TEST_F(FakeCutTest, ExtentsOfACloneDifferWhereSomebodyWroteLater) {
  kernel_.WriteBlocks("/pool/image", 0, 1 << 20);
  Must(kernel_.Call(CloneFile{In("image"), {}, In("clone")}, {}));
  kernel_.WriteBlocks("/pool/image", 8192, 5000);
  const ExtentList now = Must(kernel_.Call(ListExtents{In("image")}, {}));
  const ExtentList then = Must(kernel_.Call(ListExtents{In("clone")}, {}));
  ASSERT_EQ(then.runs.size(), 1u);
  ASSERT_EQ(now.runs.size(), 3u);
  EXPECT_EQ(now.runs[0].physical, then.runs[0].physical);
  EXPECT_EQ(now.runs[1].logical, 8192);
  EXPECT_EQ(now.runs[1].bytes, 8192);
  EXPECT_EQ(now.runs[2].physical, then.runs[0].physical + 16384);
  ListExtents part{In("image"), {}, 8192, 1};
  EXPECT_EQ(Must(kernel_.Call(part, {})).runs, std::vector<FileExtentRun>{now.runs[1]});
  EXPECT_FALSE(Must(kernel_.Call(part, {})).done);
}

}  // namespace
}  // namespace volumed
