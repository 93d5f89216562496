// What a test can make FakeKernel do: faults, hangs, the end of the agent, a reboot, copies.
#include "fakes/fake_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>

#include "base/manual_clock.h"
#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SafePath Pods(const std::string& relative = "") { return {"/pods", relative}; }

Mount Tmpfs(const std::string& relative) { return {"tmpfs", "tmpfs", Pods(relative), {}}; }

class FakeKernelTest : public ::testing::Test {
 protected:
  FakeKernelTest() { kernel_.AddDirectory("/pods/a"); }
  Result<Changed> Make(const std::string& name) {
    return kernel_.Call(MakeDirectory{Pods(name)}, {});
  }

  FakeKernel kernel_;
};

TEST_F(FakeKernelTest, FailsTheNextCallsOfOneRequestOnly) {
  kernel_.FailNext("MakeDirectory", EIO, Outcome::kNotApplied, 2);
  EXPECT_TRUE(kernel_.Call(MakeFile{Pods("f")}, {}).ok());
  EXPECT_EQ(Make("x").error().sys_errno(), EIO);
  EXPECT_EQ(Make("x").error().sys_errno(), EIO);
  EXPECT_FALSE(kernel_.Exists("/pods/x"));
  EXPECT_TRUE(Make("x").ok());
}

TEST_F(FakeKernelTest, AFaultMayLeaveItsEffect) {
  kernel_.FailNext("MakeDirectory", Error::MaybeApplied(Code::kUnavailable, "worker died"), 1,
                   true);
  EXPECT_TRUE(Make("x").error().maybe_applied());
  EXPECT_TRUE(kernel_.Exists("/pods/x"));
}

TEST_F(FakeKernelTest, FailsOnlyBelowAPathWhenAskedTo) {
  kernel_.FailNextBelow("", "/pods/a", Error::NotApplied(Code::kDataLoss, "bad disk"));
  EXPECT_TRUE(Make("ab").ok());
  EXPECT_EQ(Make("a/x").error().code(), Code::kDataLoss);
}

TEST_F(FakeKernelTest, FailsTheCallWithANumber) {
  kernel_.FailAt(2, Error::NotApplied(Code::kDataLoss, "bad disk"));
  EXPECT_TRUE(Make("x").ok());
  EXPECT_FALSE(Make("y").ok());
  EXPECT_TRUE(Make("y").ok());
}

TEST_F(FakeKernelTest, HangsUntilItIsTakenBackAndTellsTheHookFirst) {
  ManualClock clock;
  kernel_.Hang("/pods/a");
  kernel_.SetHangHook([&clock](const AnyRequest& request, Deadline deadline) {
    EXPECT_EQ(RequestName(request), "StatFs");
    clock.AdvanceTo(deadline.when());
  });
  CallOptions options;
  options.deadline = Deadline::After(clock, std::chrono::seconds(7));
  const Result<FsInfo> hung = kernel_.Call(StatFs{Pods("a")}, options);
  EXPECT_EQ(hung.error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(hung.error().maybe_applied());
  EXPECT_TRUE(options.deadline.Passed(clock));
  EXPECT_TRUE(kernel_.Call(StatFs{Pods()}, options).ok());
  kernel_.Unhang("/pods/a");
  EXPECT_TRUE(kernel_.Call(StatFs{Pods("a")}, options).ok());
}

TEST_F(FakeKernelTest, AHungFilesystemHangsThroughItsBindsToo) {
  kernel_.AddMount("nfs4", "server:/x", "/pods/a");
  kernel_.AddDirectory("/pods/b");
  ASSERT_TRUE(kernel_.Call(BindMount{Pods("a"), Pods("b")}, {}).ok());
  kernel_.Hang("/pods/a");
  EXPECT_EQ(kernel_.Call(StatFs{Pods("b")}, {}).error().code(), Code::kDeadlineExceeded);
}

TEST_F(FakeKernelTest, WhatAsksNoFilesystemDoesNotHang) {
  kernel_.AddMount("nfs4", "server:/x", "/pods/a");
  kernel_.Hang("/pods/a");
  EXPECT_TRUE(kernel_.Call(ListMounts{}, {}).ok());
  const Result<FileInfo> info = kernel_.Call(Stat{Pods("a"), false, true}, {});
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->is_mount_point);
  EXPECT_FALSE(kernel_.Call(Unmount{Pods("a")}, {}).ok());
  EXPECT_TRUE(kernel_.Call(Unmount{Pods("a"), true}, {}).ok());
}

TEST_F(FakeKernelTest, ADeadlineThatHasPassedAndACancelAreNotApplied) {
  ManualClock clock;
  kernel_.SetClock(&clock);
  CallOptions late;
  late.deadline = Deadline::At(clock.Now());
  const Result<Changed> refused = kernel_.Call(MakeDirectory{Pods("x")}, late);
  EXPECT_EQ(refused.error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(refused.error().maybe_applied());
  CancelToken token;
  token.Cancel();
  CallOptions cancelled;
  cancelled.cancel = &token;
  EXPECT_EQ(kernel_.Call(MakeDirectory{Pods("x")}, cancelled).error().code(), Code::kCancelled);
  EXPECT_FALSE(kernel_.Exists("/pods/x"));
}

TEST_F(FakeKernelTest, TheCrashComesBeforeOrAfterTheEffectAndThenNothingMoves) {
  kernel_.CrashAtCall(2, FakeKernel::CrashPoint::kBefore);
  ASSERT_TRUE(Make("x").ok());
  EXPECT_THROW((void)Make("y").ok(), SimulatedCrash);
  EXPECT_TRUE(kernel_.crashed());
  EXPECT_EQ(Make("z").error().code(), Code::kUnavailable);
  EXPECT_EQ(kernel_.call_count(), 2u);

  kernel_.Revive();
  EXPECT_EQ(kernel_.call_count(), 0u);
  EXPECT_FALSE(kernel_.Exists("/pods/y"));
  EXPECT_FALSE(kernel_.Exists("/pods/z"));
  kernel_.CrashAtCall(1, FakeKernel::CrashPoint::kAfter);
  EXPECT_THROW((void)Make("y").ok(), SimulatedCrash);
  EXPECT_TRUE(kernel_.Exists("/pods/y"));
  kernel_.Revive();
  EXPECT_TRUE(Make("z").ok());
}

TEST_F(FakeKernelTest, DieEndsTheAgentWithoutAThrow) {
  kernel_.Die();
  EXPECT_EQ(kernel_.Call(ListMounts{}, {}).error().code(), Code::kUnavailable);
}

TEST_F(FakeKernelTest, AReviveForgetsFaultsAndHangs) {
  kernel_.FailNext("", EIO, Outcome::kNotApplied, 100);
  kernel_.Hang("/pods");
  kernel_.Revive();
  EXPECT_TRUE(Make("x").ok());
}

TEST_F(FakeKernelTest, ARebootLeavesTheRootFilesystemOnly) {
  kernel_.AddFile("/pods/kept", "k");
  ASSERT_TRUE(kernel_.Call(Tmpfs("a"), {}).ok());
  kernel_.AddFile("/pods/a/lost", "l");
  ASSERT_TRUE(kernel_.Call(MakeShared{Pods()}, {}).ok());
  kernel_.Reboot();
  EXPECT_EQ(kernel_.DumpMounts(), "");
  EXPECT_TRUE(kernel_.Exists("/pods/kept"));
  EXPECT_TRUE(kernel_.Exists("/pods/a"));
  EXPECT_FALSE(kernel_.Exists("/pods/a/lost"));
}

TEST_F(FakeKernelTest, ACloneGoesItsOwnWay) {
  ASSERT_TRUE(kernel_.Call(Tmpfs("a"), {}).ok());
  kernel_.FailNext("", EIO, Outcome::kNotApplied);
  const std::unique_ptr<FakeKernel> copy = kernel_.Clone();
  EXPECT_EQ(copy->DumpTree("/"), kernel_.DumpTree("/"));
  EXPECT_EQ(copy->DumpMounts(), kernel_.DumpMounts());
  EXPECT_EQ(copy->call_count(), 0u);
  ASSERT_TRUE(copy->Call(Unmount{Pods("a")}, {}).ok());
  EXPECT_NE(copy->DumpMounts(), kernel_.DumpMounts());
  EXPECT_TRUE(kernel_.IsMountPoint("/pods/a"));
}

TEST_F(FakeKernelTest, TheLogTellsCallsAndResultsButNoContents) {
  WriteAtomicPayload write;
  write.target = Pods("a");
  write.files = {{"token", Secret<std::string>("s3cr3t"), 0600, {}}};
  ASSERT_TRUE(kernel_.Call(write, {}).ok());
  ASSERT_FALSE(kernel_.Call(ReadFile{Pods("none")}, {}).ok());
  EXPECT_THAT(kernel_.call_log(), ElementsAre("1 WriteAtomicPayload /pods/a -> changed",
                                              HasSubstr("2 ReadFile /pods/none -> NotFound")));
  EXPECT_THAT(kernel_.CallLogText() + kernel_.DumpTree("/"), Not(HasSubstr("s3cr3t")));
}

TEST_F(FakeKernelTest, DumpsSayWhatIsThere) {
  kernel_.AddFile("/pods/f", "ab", 0640, 1, 2);
  kernel_.AddSymlink("/pods/l", "f");
  kernel_.AddMount("xfs", "/dev/vdb", "/pods/a", {"ro"});
  EXPECT_THAT(kernel_.DumpTree("/pods"), HasSubstr("/pods/f file 0640 1:2 2 bytes #"));
  EXPECT_THAT(kernel_.DumpTree("/pods"), HasSubstr("/pods/l symlink 0777 0:0 -> f\n"));
  EXPECT_EQ(kernel_.DumpMounts(), "/pods/a xfs /dev/vdb / ro,relatime rw\n");
  EXPECT_EQ(kernel_.DumpTree("/none"), "");
}

TEST_F(FakeKernelTest, AMistakeOfTheTestIsToldAtOnce) {
  kernel_.AddFile("/pods/f", "");
  EXPECT_THROW(kernel_.AddFile("/pods/f/x", ""), std::logic_error);
  EXPECT_THROW(kernel_.AddSymlink("/pods/f", "x"), std::logic_error);
  EXPECT_THROW(kernel_.AddDirectory("relative"), std::logic_error);
}

TEST_F(FakeKernelTest, AnAdministratorCanRemoveAndUnmount) {
  ASSERT_TRUE(kernel_.Call(Tmpfs("a"), {}).ok());
  kernel_.AddMount("tmpfs", "x", "/pods/a/deep");
  EXPECT_THROW(kernel_.Remove("/pods"), std::logic_error);
  kernel_.UnmountBelow("/pods");
  EXPECT_EQ(kernel_.DumpMounts(), "");
  kernel_.Remove("/pods");
  EXPECT_FALSE(kernel_.Exists("/pods"));
}

TEST_F(FakeKernelTest, TheCallHookRunsBeforeTheCallAndMayChangeTheWorld) {
  kernel_.SetCallHook([this](const AnyRequest&) { kernel_.AddFile("/pods/x", ""); });
  EXPECT_EQ(Make("x").error().code(), Code::kAlreadyExists);
}

}  // namespace
}  // namespace volumed
