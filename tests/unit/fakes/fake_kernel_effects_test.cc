// The rules of FakeKernel's world. That they are Linux' own is shown by the differential test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "fakes/fake_kernel.h"
#include "fakes/must.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SafePath In(const std::string& relative, Resolve resolve = Resolve::kNoSymlinks) {
  return {"/r", relative, resolve};
}

class FakeKernelEffectsTest : public ::testing::Test {
 protected:
  FakeKernelEffectsTest() {
    kernel_.AddDirectory("/r/a/b");
    kernel_.AddDirectory("/r/m");
    kernel_.AddFile("/r/a/f", "text", 0640);
  }
  Result<Done> Tmpfs(const std::string& where, std::vector<std::string> options = {}) {
    return kernel_.Call(Mount{"tmpfs", "tmpfs", In(where), std::move(options)}, {});
  }
  Result<Done> Bind(const std::string& from, const std::string& to, bool recursive = false) {
    return kernel_.Call(BindMount{In(from), In(to), false, recursive}, {});
  }

  FakeKernel kernel_;
};

TEST_F(FakeKernelEffectsTest, LinksAreFollowedOnlyWhereAllowedAndNeverOutOfTheRoot) {
  kernel_.AddSymlink("/r/in", "a/f");
  kernel_.AddSymlink("/r/up", "../etc");
  kernel_.AddSymlink("/r/abs", "/r/a/f");
  EXPECT_EQ(kernel_.Call(ReadFile{In("in")}, {}).error().sys_errno(), ELOOP);
  EXPECT_EQ(kernel_.Call(ReadFile{In("in", Resolve::kBeneath)}, {})->bytes, "text");
  EXPECT_EQ(kernel_.Call(ReadFile{In("up", Resolve::kBeneath)}, {}).error().sys_errno(), EXDEV);
  EXPECT_EQ(kernel_.Call(ReadFile{In("abs", Resolve::kBeneath)}, {}).error().sys_errno(), EXDEV);
  EXPECT_EQ(kernel_.Call(ReadFile{In("a/../a/f")}, {}).error().code(), Code::kInvalidArgument);
}

TEST_F(FakeKernelEffectsTest, AMountCoversAndUncovers) {
  ASSERT_TRUE(Tmpfs("a").ok());
  EXPECT_EQ(kernel_.Call(ReadFile{In("a/f")}, {}).error().code(), Code::kNotFound);
  ASSERT_TRUE(Tmpfs("a").ok());
  EXPECT_TRUE(kernel_.Call(Unmount{In("a")}, {})->changed);
  EXPECT_TRUE(kernel_.IsMountPoint("/r/a"));
  EXPECT_TRUE(kernel_.Call(Unmount{In("a")}, {})->changed);
  EXPECT_FALSE(kernel_.Call(Unmount{In("a")}, {})->changed);
  EXPECT_EQ(kernel_.Call(ReadFile{In("a/f")}, {})->bytes, "text");
}

TEST_F(FakeKernelEffectsTest, AMountWithAMountInItIsBusy) {
  ASSERT_TRUE(Tmpfs("a").ok());
  kernel_.AddDirectory("/r/a/deep");
  ASSERT_TRUE(Tmpfs("a/deep").ok());
  const Result<Changed> busy = kernel_.Call(Unmount{In("a")}, {});
  EXPECT_EQ(busy.error().sys_errno(), EBUSY);
  EXPECT_FALSE(busy.error().maybe_applied());
}

TEST_F(FakeKernelEffectsTest, MountPointsAndFullDirectoriesAreNotRemoved) {
  ASSERT_TRUE(Tmpfs("m").ok());
  EXPECT_EQ(kernel_.Call(RemoveDirectory{In("m")}, {}).error().sys_errno(), EBUSY);
  EXPECT_EQ(kernel_.Call(RemoveDirectory{In("a")}, {}).error().sys_errno(), ENOTEMPTY);
  EXPECT_FALSE(kernel_.Call(RemoveDirectory{In("none/x")}, {})->changed);
}

TEST_F(FakeKernelEffectsTest, ABindShowsTheSameFilesAndKeepsTheFlags) {
  ASSERT_TRUE(Tmpfs("a", {"nosuid", "noexec", "size=64k"}).ok());
  kernel_.AddFile("/r/a/x", "1");
  ASSERT_TRUE(kernel_.Call(BindMount{In("a"), In("m"), true}, {}).ok());
  EXPECT_EQ(kernel_.Find("/r/m/x").content, "1");
  EXPECT_EQ(kernel_.Call(MakeFile{In("m/y")}, {}).error().sys_errno(), EROFS);
  EXPECT_TRUE(kernel_.Call(MakeFile{In("a/y")}, {}).ok());
  EXPECT_THAT(kernel_.DumpMounts(),
              HasSubstr("/r/m tmpfs tmpfs / ro,nosuid,noexec,relatime rw,size=64k\n"));
}

TEST_F(FakeKernelEffectsTest, AFileAndADirectoryAreNotMountedOnEachOther) {
  EXPECT_EQ(Bind("a/f", "m").error().sys_errno(), EINVAL);
  kernel_.AddFile("/r/target", "");
  EXPECT_TRUE(Bind("a/f", "target").ok());
  EXPECT_EQ(kernel_.Find("/r/target").content, "text");
}

TEST_F(FakeKernelEffectsTest, OnlyARecursiveBindTakesTheMountsBelow) {
  ASSERT_TRUE(Tmpfs("a/b").ok());
  kernel_.AddFile("/r/a/b/x", "");
  ASSERT_TRUE(Bind("a", "m").ok());
  EXPECT_FALSE(kernel_.Exists("/r/m/b/x"));
  ASSERT_TRUE(Bind("a", "m", true).ok());
  EXPECT_TRUE(kernel_.Exists("/r/m/b/x"));
}

TEST_F(FakeKernelEffectsTest, MountsUnderASharedMountAppearAtItsPeers) {
  EXPECT_TRUE(kernel_.Call(MakeShared{In("a")}, {})->changed);
  EXPECT_FALSE(kernel_.Call(MakeShared{In("a")}, {})->changed);
  ASSERT_TRUE(Bind("a", "m").ok());
  ASSERT_TRUE(Tmpfs("a/b").ok());
  EXPECT_TRUE(kernel_.IsMountPoint("/r/m/b"));
  ASSERT_TRUE(kernel_.Call(Unmount{In("m/b")}, {})->changed);
  EXPECT_FALSE(kernel_.IsMountPoint("/r/a/b"));
}

TEST_F(FakeKernelEffectsTest, BindsFromTheAgentsOwnFilesystemArePrivate) {
  FakeKernelOptions options;
  options.agent_root = "/r";
  FakeKernel anchored(options);
  anchored.AddDirectory("/r/a");
  anchored.AddDirectory("/t/x");
  ASSERT_TRUE(anchored.Call(MakeShared{{"/r", ""}}, {}).ok());
  ASSERT_TRUE(anchored.Call(BindMount{In("a"), {"/t", "x"}}, {}).ok());
  EXPECT_THAT(anchored.DumpMounts(), HasSubstr("/t/x ext4 /dev/root /r/a rw,relatime rw\n"));
}

TEST_F(FakeKernelEffectsTest, RemoveTreeStopsAtMountsAndTakesWhatLiesOutside) {
  ASSERT_TRUE(Tmpfs("a/b").ok());
  const Result<Changed> removed = kernel_.Call(RemoveTree{In("a")}, {});
  EXPECT_EQ(removed.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(removed.error().maybe_applied());
  EXPECT_FALSE(kernel_.Exists("/r/a/f"));
  EXPECT_TRUE(kernel_.IsMountPoint("/r/a/b"));
  ASSERT_TRUE(kernel_.Call(Unmount{In("a/b")}, {}).ok());
  EXPECT_TRUE(kernel_.Call(RemoveTree{In("a")}, {})->changed);
  EXPECT_FALSE(kernel_.Call(RemoveTree{In("a")}, {})->changed);
}

TEST_F(FakeKernelEffectsTest, OwnershipChangesOnlyWhatIsWrongAndMarksTheRoot) {
  kernel_.AddSymlink("/r/a/l", "f");
  const ChangeOwnership request{In("a"), 2000, false, true};
  Result<OwnershipInfo> info = kernel_.Call(request, {});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->visited, 4);
  EXPECT_EQ(info->changed, 4);
  EXPECT_EQ(kernel_.Find("/r/a/f").mode, 0660u);
  EXPECT_EQ(kernel_.Find("/r/a/b").mode, 02775u);
  EXPECT_EQ(kernel_.Find("/r/a/l").gid, 2000u);
  EXPECT_TRUE(kernel_.Call(request, {})->skipped);
  kernel_.AddFile("/r/a/new", "");
  EXPECT_EQ(kernel_.Call(ChangeOwnership{In("a"), 2000}, {})->changed, 1);
}

TEST_F(FakeKernelEffectsTest, UsageCountsHardLinksOnceAndOneFilesystem) {
  kernel_.AddHardLink("/r/a/again", "/r/a/f");
  ASSERT_TRUE(Tmpfs("a/b").ok());
  kernel_.AddFile("/r/a/b/big", std::string(100000, 'x'));
  const Result<UsageInfo> usage = kernel_.Call(Usage{In("a")}, {});
  EXPECT_EQ(usage->inodes_used, 2);
  EXPECT_EQ(usage->used_bytes, 4096);
}

TEST_F(FakeKernelEffectsTest, ATmpfsIsFullAtItsSize) {
  ASSERT_TRUE(Tmpfs("m", {"size=8k"}).ok());
  WriteAtomicPayload write{
      In("m"), {{"x", Secret<std::string>(std::string(9000, 'x')), 0644, {}}}, {}};
  const Result<Changed> full = kernel_.Call(write, {});
  EXPECT_EQ(full.error().sys_errno(), ENOSPC);
  EXPECT_FALSE(full.error().maybe_applied());
  EXPECT_EQ(kernel_.Call(StatFs{In("m")}, {})->used_bytes, 0);
}

TEST_F(FakeKernelEffectsTest, APayloadIsPublishedThroughOneLink) {
  WriteAtomicPayload write{In("m"), {{"d/x", Secret<std::string>("1"), 0600, 1000}}, 2000};
  EXPECT_TRUE(kernel_.Call(write, {})->changed);
  EXPECT_FALSE(kernel_.Call(write, {})->changed);
  EXPECT_EQ(kernel_.Find("/r/m/d").content, "..data/d");
  const std::string first = kernel_.Find("/r/m/..data").content;
  const FakeFile file = kernel_.Find("/r/m/d/x");
  EXPECT_EQ(file.content, "1");
  EXPECT_EQ(file.mode, 0640u);
  EXPECT_EQ(file.uid, 1000u);
  EXPECT_EQ(file.gid, 2000u);

  write.files = {{"y", Secret<std::string>("2"), 0644, {}}};
  EXPECT_TRUE(kernel_.Call(write, {})->changed);
  EXPECT_FALSE(kernel_.Exists("/r/m/d"));
  EXPECT_FALSE(kernel_.Exists("/r/m/" + first));
  EXPECT_EQ(kernel_.Find("/r/m/y", true).content, "2");
}

TEST_F(FakeKernelEffectsTest, APayloadMendsWhatAnInterruptedRunLeft) {
  kernel_.AddSymlink("/r/m/..data_tmp", "..2026_01_01_00_00_00.1");
  kernel_.AddFile("/r/m/..2026_01_01_00_00_00.1/x", "half");
  WriteAtomicPayload write{In("m"), {{"x", Secret<std::string>("1"), 0644, {}}}, {}};
  EXPECT_TRUE(kernel_.Call(write, {})->changed);
  EXPECT_THAT(kernel_.DumpTree("/r/m"), Not(HasSubstr("..2026_01_01_00_00_00.1")));
  EXPECT_FALSE(kernel_.Exists("/r/m/..data_tmp"));
}

TEST_F(FakeKernelEffectsTest, RemountChangesTheFlagsOfOneMount) {
  ASSERT_TRUE(Tmpfs("m").ok());
  EXPECT_TRUE(kernel_.Call(Remount{In("m"), {"ro", "nosuid", "size=16k"}}, {}).ok());
  EXPECT_EQ(kernel_.DumpMounts(), "/r/m tmpfs tmpfs / ro,nosuid,relatime rw,size=16k\n");
  EXPECT_EQ(kernel_.Call(Remount{In("a"), {"ro"}}, {}).error().code(), Code::kFailedPrecondition);
}

TEST_F(FakeKernelEffectsTest, MakeDirectoryHasExactlyTheModesAskedFor) {
  kernel_.SetAttributes("/r/a", 02775, 0, 7);
  EXPECT_TRUE(kernel_.Call(MakeDirectory{In("a/x/y"), 0700, 0750}, {})->changed);
  EXPECT_EQ(kernel_.Find("/r/a/x").mode, 0750u);
  EXPECT_EQ(kernel_.Find("/r/a/x/y").mode, 0700u);
  EXPECT_EQ(kernel_.Find("/r/a/x").gid, 7u);
  EXPECT_FALSE(kernel_.Call(MakeDirectory{In("a/x"), 0711}, {})->changed);
  EXPECT_TRUE(kernel_.Call(MakeDirectory{In("a/x"), 0711, {}, true}, {})->changed);
  EXPECT_EQ(kernel_.Call(MakeDirectory{In("q/x")}, {}).error().code(), Code::kNotFound);
}

TEST_F(FakeKernelEffectsTest, WhatAnOldKernelLacksIsNamed) {
  FakeKernelOptions options;
  options.features = KernelFeatures();
  FakeKernel old(options);
  old.AddDirectory("/r/a");
  EXPECT_EQ(old.Call(Mount{"tmpfs", "", In("a"), {"noswap"}}, {}).error().code(),
            Code::kUnimplemented);
  BindMount bind{In("a"), In("a")};
  bind.recursive_read_only = true;
  EXPECT_THAT(old.Call(bind, {}).error().message(), HasSubstr("mount-setattr"));
}

class FakeImageTest : public FakeKernelEffectsTest {
 protected:
  FakeImageTest() {
    SetFileSize set{In("a/image"), true};
    set.bytes = int64_t{1} << 30;
    made_ = kernel_.Call(set, {}).ok();
  }
  Result<AttachedLoop> Attach(const std::string& name = "a/image") {
    return kernel_.Call(AttachLoop{In(name)}, {});
  }

  bool made_ = false;
};

TEST_F(FakeImageTest, WithoutAFreeLoopDeviceNothingIsAttached) {
  ASSERT_TRUE(made_);
  kernel_.LimitLoops(0);
  const auto none = Attach();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kResourceExhausted);
  EXPECT_EQ(none.error().sys_errno(), ENOSPC);
  EXPECT_FALSE(none.error().maybe_applied());
  EXPECT_TRUE(kernel_.Call(ListLoops{In("a")}, {})->loops.empty());
  kernel_.LimitLoops(1);
  EXPECT_TRUE(Attach().ok());
}

TEST_F(FakeImageTest, AFreeLoopDeviceIsUsedAgainAsAnotherOne) {
  const auto first = Attach();
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(kernel_.Call(DetachLoops{In("a/image")}, {})->changed);
  const auto second = Attach();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->device.path, first->device.path);
  EXPECT_GT(second->device.facts.identity.disk_sequence,
            first->device.facts.identity.disk_sequence);
}

TEST_F(FakeImageTest, WhatIsOnAnImageStaysOverARebootAndAnotherLoopDevice) {
  const auto loop = Attach();
  ASSERT_TRUE(loop.ok());
  const DeviceIdentity blank = loop->device.facts.identity;
  ASSERT_TRUE(kernel_.Call(FormatDevice{loop->device.path, blank, "ext4", "uuid-1", {}}, {}).ok());
  ASSERT_TRUE(kernel_.Call(Mount{"ext4", loop->device.path, In("m"), {}}, {}).ok());
  kernel_.AddFile("/r/m/f", "kept");
  const auto stored = kernel_.StoredFiles();
  kernel_.Reboot();
  EXPECT_EQ(kernel_.StoredFiles(), stored);
  EXPECT_TRUE(kernel_.Call(ListLoops{In("a")}, {})->loops.empty());
  // Another file has the loop device now that this one had.
  SetFileSize set{In("a/other"), true};
  set.bytes = 1 << 20;
  ASSERT_TRUE(kernel_.Call(set, {}).ok());
  ASSERT_TRUE(Attach("a/other").ok());
  const auto again = Attach();
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again->device.path, loop->device.path);
  EXPECT_EQ(kernel_.Call(ProbeDevice{again->device.path}, {})->identity.uuid, "uuid-1");
  ASSERT_TRUE(kernel_.Call(Mount{"ext4", again->device.path, In("m"), {}}, {}).ok());
  EXPECT_EQ(kernel_.Call(ReadFile{In("m/f")}, {})->bytes, "kept");
}

TEST_F(FakeImageTest, ARemovedImageLivesAsLongAsItsLoopDevice) {
  const auto loop = Attach();
  ASSERT_TRUE(loop.ok());
  ASSERT_TRUE(
      kernel_
          .Call(FormatDevice{loop->device.path, loop->device.facts.identity, "xfs", "uuid-1", {}},
                {})
          .ok());
  ASSERT_TRUE(kernel_.Call(RemoveFile{In("a/image")}, {})->changed);
  EXPECT_EQ(kernel_.Call(ProbeDevice{loop->device.path}, {})->identity.uuid, "uuid-1");
  EXPECT_TRUE(kernel_.Call(ListLoops{In("a")}, {})->loops.at(0).deleted);
  ASSERT_TRUE(kernel_.Call(DetachLoops{In("a/image")}, {})->changed);
  EXPECT_TRUE(kernel_.Call(ListLoops{In("a")}, {})->loops.empty());
  EXPECT_FALSE(Attach().ok());
}

TEST_F(FakeImageTest, ALoopDeviceIsFoundByItsFileUnderAnotherPath) {
  kernel_.AddDirectory("/r/b");
  ASSERT_TRUE(kernel_.Call(BindMount{.source = In("a"), .target = In("b")}, {}).ok());
  const auto loop = Attach("b/image");
  ASSERT_TRUE(loop.ok()) << loop.error().ToString();
  const LoopList list = Must(kernel_.Call(ListLoops{In("a/image")}, {}));
  ASSERT_EQ(list.loops.size(), 1u);
  EXPECT_EQ(list.loops[0].path, loop->device.path);
  EXPECT_TRUE(kernel_.Call(ListLoops{In("a")}, {})->loops.empty()) << "by paths alone";
  EXPECT_TRUE(kernel_.Call(DetachLoops{In("a/image")}, {})->changed);
  EXPECT_TRUE(kernel_.Call(ListLoops{In("b")}, {})->loops.empty());
}

TEST_F(FakeImageTest, AnImageIsCopiedWithItsWorld) {
  const auto loop = Attach();
  ASSERT_TRUE(loop.ok());
  const auto copy = kernel_.Clone();
  ASSERT_TRUE(
      copy->Call(FormatDevice{loop->device.path, loop->device.facts.identity, "xfs", "uuid-1", {}},
                 {})
          .ok());
  EXPECT_EQ(copy->Device(loop->device.path).fs_type, "xfs");
  EXPECT_EQ(kernel_.Device(loop->device.path).fs_type, "");
}

TEST_F(FakeImageTest, ALimitedFilesystemGivesNoMoreThanItHas) {
  kernel_.LimitFilesystem("/r", 1 << 20);
  SetFileSize set{In("a/image")};
  set.bytes = int64_t{2} << 30;
  EXPECT_TRUE(kernel_.Call(set, {}).ok());
  EXPECT_EQ(kernel_.Call(Stat{In("a/image")}, {})->allocated_bytes, 0);
  set.allocate = true;
  const auto full = kernel_.Call(set, {});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().sys_errno(), ENOSPC);
  EXPECT_EQ(kernel_.Call(Stat{In("a/image")}, {})->size_bytes, set.bytes);
}

TEST_F(FakeImageTest, ALockIsHeldByOneAndGoesWithHim) {
  auto held = kernel_.Call(TakeFileLock{In("a/lock"), "node one"}, {});
  ASSERT_TRUE(held.ok());
  const auto taken = kernel_.Call(TakeFileLock{In("a/lock"), "node two"}, {});
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), Code::kAborted);
  EXPECT_THAT(taken.error().message(), HasSubstr("node one"));
  held->pin.reset();
  EXPECT_TRUE(kernel_.Call(TakeFileLock{In("a/lock"), "node two"}, {}).ok());
  EXPECT_EQ(kernel_.Find("/r/a/lock").content, "node two");
}

TEST_F(FakeImageTest, ALockOfAFullDiskIsTakenAndSaysWhatItSaid) {
  kernel_.AddFile("/r/a/lock", "", 0600);
  kernel_.LimitFilesystem("/r/a", 4096);  // of which "f" has all
  const auto held = kernel_.Call(TakeFileLock{In("a/lock"), "node one"}, {});
  ASSERT_TRUE(held.ok()) << held.error().ToString();
  EXPECT_EQ(kernel_.Find("/r/a/lock").content, "");
  EXPECT_EQ(kernel_.Call(TakeFileLock{In("a/lock"), "two"}, {}).error().code(), Code::kAborted);
}

}  // namespace
}  // namespace volumed
