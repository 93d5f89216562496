// Questions about the mount table whose answer the kept one does not have: directories above mounts
// were renamed, and a process has another root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "fakes/must.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/hidden_mount.h"
#include "mounter/mount_refs.h"
#include "os/mount_table.h"
#include "os/worker_kernel.h"
#include "places.h"

namespace volumed {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class MountRefsTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* name : {"old", "old/pool", "stage", "elsewhere"}) Directory(name);
    ASSERT_EQ(::mount("pool", Path("old/pool").c_str(), "tmpfs", 0, nullptr), 0);
    for (const char* name : {"old/pool/v", "old/pool/v/data", "old/pool/v/data/m"}) Directory(name);
    WorkerKernelOptions options;
    options.worker_path = VolumedWorkerPath();
    kernel_ = Must(WorkerKernel::Create(options, clock_));
  }
  void TearDown() override {
    kernel_.reset();
    MountNamespaceTest::TearDown();
  }

  std::string Path(const std::string& name) const { return scratch() + "/" + name; }
  void Directory(const std::string& name) { ASSERT_EQ(::mkdir(Path(name).c_str(), 0755), 0); }
  void Bind(const std::string& from, const std::string& to) {
    ASSERT_EQ(::mount(Path(from).c_str(), Path(to).c_str(), nullptr, MS_BIND, nullptr), 0);
  }
  void Rename() { ASSERT_EQ(::rename(Path("old").c_str(), Path("new").c_str()), 0); }
  std::vector<std::string> MountsOf(const std::string& name) {
    return Must(FindMountsOfTree(*kernel_, Path(name), {}));
  }

  RealClock clock_;
  std::unique_ptr<WorkerKernel> kernel_;
};

// A pool's disk was mounted before a directory above it was renamed, and its first volume was
// something else than itself until somebody asked for the disk.
TEST_F(MountRefsTest, AVolumeOfAPoolBelowARenamedDirectoryWasSomethingElse) {
  Rename();
  Bind("new/pool/v/data", "stage");
  for (int i = 0; i < 2; ++i) {
    const MountEntry staged = *Must(FindMountAt(*kernel_, Path("stage"), {}));
    EXPECT_TRUE(Must(ShowsWhatIsAt(*kernel_, staged, Path("new/pool/v/data"), {})));
    EXPECT_FALSE(Must(ShowsWhatIsAt(*kernel_, staged, Path("new/pool/v"), {})));
  }
  EXPECT_EQ(Must(FindMountAround(*kernel_, Path("new/pool/v"), {}))->mount_point, Path("new/pool"));
}

// Its unpublishing said that there was nothing.
TEST_F(MountRefsTest, AMountOfARenamedDirectoryIsFoundByWhoeverLooksAnew) {
  Rename();
  EXPECT_FALSE(Must(FindMountAt(*kernel_, Path("new/pool"), {})));
  EXPECT_TRUE(Must(FindMountAtAnew(*kernel_, Path("new/pool"), {})));
  EXPECT_TRUE(Must(FindMountAt(*kernel_, Path("new/pool"), {})));
  EXPECT_FALSE(Must(FindMountAtAnew(*kernel_, Path("old/pool"), {})));
}

TEST_F(MountRefsTest, ATreeIsMountedWhereAPartOfItShowsAndWhereSomethingIsMountedInIt) {
  EXPECT_THAT(MountsOf("old/pool/v"), IsEmpty());
  Rename();
  EXPECT_THAT(MountsOf("new/pool/v"), IsEmpty());
  Bind("new/pool/v/data/m", "elsewhere");
  EXPECT_THAT(MountsOf("new/pool/v"), UnorderedElementsAre(Path("elsewhere")));
  ASSERT_EQ(::umount(Path("elsewhere").c_str()), 0);
  ASSERT_EQ(::mount("other", Path("new/pool/v/data/m").c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_THAT(MountsOf("new/pool/v"), UnorderedElementsAre(Path("new/pool/v/data/m")));
  ASSERT_EQ(::umount(Path("new/pool/v/data/m").c_str()), 0);
  Bind("new/pool/v/data", "new/pool/v/data");
  EXPECT_THAT(MountsOf("new/pool/v"), SizeIs(1));
  EXPECT_THAT(MountsOf("new/pool/v/data"), SizeIs(1));
}

// By another way to the directory than the path that is asked for.
TEST_F(MountRefsTest, WhatIsMountedInATreeByAnotherMountOfItsFilesystemIsFound) {
  Bind("old/pool", "stage");
  ASSERT_EQ(::mount("other", Path("stage/v/data/m").c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_THAT(MountsOf("old/pool/v"), UnorderedElementsAre(Path("stage/v/data/m")));
  EXPECT_THAT(MountsOf("old/pool/v/data/m"), UnorderedElementsAre(Path("stage/v/data/m")));
}

// As a kubelet in a container binds its directory, with / shared. What was mounted there was taken
// for its propagated copy, which is hidden: it was not published, and could not be unpublished.
TEST_F(MountRefsTest, AMountBelowADirectoryThatIsBoundOverItselfWasHidden) {
  Directory("kubelet");
  Directory("kubelet/stage");
  ASSERT_EQ(::mount(nullptr, scratch().c_str(), nullptr, MS_SHARED, nullptr), 0);
  Bind("kubelet", "kubelet");
  ASSERT_EQ(::mount("volume", Path("kubelet/stage").c_str(), "tmpfs", 0, nullptr), 0);
  const MountSnapshot whole(Must(ReadMountTable()));
  ASSERT_THAT(whole.Find({.below = Path("kubelet/stage")}), SizeIs(2));
  const MountEntry staged = *Must(FindMountAt(*kernel_, Path("kubelet/stage"), {}));
  EXPECT_EQ(staged.mount_id, whole.FindCovering(Path("kubelet/stage"))->mount_id);
  EXPECT_FALSE(Must(FindMountHiding(*kernel_, staged, {})));
  ASSERT_EQ(::mount("over", Path("kubelet").c_str(), "tmpfs", 0, nullptr), 0);
  const MountEntry hidden = *Must(FindMountAt(*kernel_, Path("kubelet/stage"), {}));
  EXPECT_TRUE(Must(FindMountHiding(*kernel_, hidden, {})));
  ASSERT_EQ(::mount(nullptr, scratch().c_str(), nullptr, MS_PRIVATE | MS_REC, nullptr), 0);
}

// The disk of a directory was mounted after something in it, which was taken for what hides.
TEST_F(MountRefsTest, AMountThatIsHiddenItselfHidAllThatCameLater) {
  Directory("k");
  Directory("k/pods");
  ASSERT_EQ(::mount("early", Path("k/pods").c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_EQ(::mount("disk", Path("k").c_str(), "tmpfs", 0, nullptr), 0);
  for (const char* name : {"k/pods", "k/pods/v"}) Directory(name);
  ASSERT_EQ(::mount("volume", Path("k/pods/v").c_str(), "tmpfs", 0, nullptr), 0);
  const MountEntry volume = *Must(FindMountAt(*kernel_, Path("k/pods/v"), {}));
  EXPECT_FALSE(Must(FindMountHiding(*kernel_, volume, {})));
  const MountEntry early = *Must(FindMountAt(*kernel_, Path("k/pods"), {}));
  EXPECT_EQ(Must(FindMountHiding(*kernel_, early, {}))->source, "disk");
}

// In a process of its own: whether it says that its root has a mount.
int RootIsMountedIn(const std::string& root) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::chroot(root.c_str()) != 0 || ::chdir("/") != 0) ::_exit(2);
    const Status is_mounted = CheckRootIsMounted();
    const bool is_refusal =
        !is_mounted.ok() && is_mounted.error().code() == Code::kFailedPrecondition;
    ::_exit(is_mounted.ok() ? 0 : is_refusal ? 1 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// What is mounted over such a root hid everything, and a volume that was bound was deleted.
TEST_F(MountRefsTest, AProcessWhoseRootIsNoMountPointIsRefused) {
  EXPECT_TRUE(CheckRootIsMounted().ok());
  Directory("root");
  Directory("root/proc");
  ASSERT_EQ(::mount("/proc", Path("root/proc").c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_EQ(RootIsMountedIn(Path("root")), 1);
  ASSERT_EQ(::mount(Path("root").c_str(), Path("root").c_str(), nullptr, MS_BIND | MS_REC, nullptr),
            0);
  EXPECT_EQ(RootIsMountedIn(Path("root")), 0);
}

}  // namespace
}  // namespace volumed
