// Loop devices of which the path that the kernel shows does not tell which file they have: somebody
// attached them in another mount namespace, or the mount was taken away since. Those of somebody
// else stop nobody, and a file never has a second one.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fakes/must.h"
#include "integration/hangfs/hangfs_mount.h"
#include "integration/mounter/block_mount_fixture.h"
#include "places.h"

namespace volumed {
namespace {

// A pool's file has a directory of its own, and the name that all have.
class OtherLoopsTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_.emplace(Image("disk"));
    ASSERT_TRUE(disk_->valid());
    Mkfs("xfs", disk_->path());
    ASSERT_NO_FATAL_FAILURE(MountPool());
    ASSERT_EQ(::mkdir(Path("mnt/volume-1").c_str(), 0755), 0);
    Image("mnt/volume-1/image");
  }
  void TearDown() override {
    if (disk_) Must(local_->Call(DetachLoops{Ours()}, {}));
    while (!scratch().empty() && ::umount2(Path("mnt").c_str(), UMOUNT_NOFOLLOW) == 0) {
    }
    disk_.reset();
    BlockMountTest::TearDown();
  }

  void MountPool() {
    ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), "xfs", 0, nullptr), 0);
  }
  SafePath Ours() const { return {scratch(), "mnt/volume-1/image"}; }
  static std::string Shown(const LoopDevice& loop) {
    const std::string name = loop.path().substr(std::string("/dev/").size());
    std::ifstream file("/sys/block/" + name + "/loop/backing_file");
    std::string shown;
    std::getline(file, shown);
    return shown;
  }
  void AttachListAndDetach() {
    for (const bool is_first : {true, false}) {
      const auto loop = local_->Call(AttachLoop{Ours()}, {});
      ASSERT_TRUE(loop.ok()) << loop.error().ToString();
      EXPECT_EQ(loop->changed, is_first);
    }
    const auto list = local_->Call(ListLoops{Ours()}, {});
    ASSERT_TRUE(list.ok()) << list.error().ToString();
    EXPECT_EQ(list->loops.size(), 1u);
    const auto detached = local_->Call(DetachLoops{Ours()}, {});
    ASSERT_TRUE(detached.ok()) << detached.error().ToString();
    EXPECT_TRUE(detached->changed);
  }
  // Whatever it is shown as, it is the one that the file has.
  void ExpectIsTheFiles(const LoopDevice& loop) {
    const auto attached = local_->Call(AttachLoop{.path = Ours(), .block_size = 512}, {});
    ASSERT_TRUE(attached.ok()) << attached.error().ToString();
    EXPECT_FALSE(attached->changed) << "shown as " << Shown(loop);
    EXPECT_EQ(attached->device.path, loop.path());
    const auto list = local_->Call(ListLoops{Ours()}, {});
    ASSERT_TRUE(list.ok()) << list.error().ToString();
    ASSERT_EQ(list->loops.size(), 1u);
    EXPECT_EQ(list->loops[0].path, loop.path());
  }
  static void ShutDown(const std::string& place) {
    constexpr unsigned long kShutDown = _IOR('X', 125, uint32_t);  // XFS_IOC_GOINGDOWN
    const Descriptor mounted(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    uint32_t without_its_log = 2;
    ASSERT_EQ(::ioctl(mounted.get(), kShutDown, &without_its_log), 0);
  }

  std::optional<LoopDevice> disk_;
};

// Every image of every pool ends with the name of a file at the top of somebody's filesystem.
TEST_F(OtherLoopsTest, AFailedFileThatIsShownByTheNameOfEachImageStoppedEachAttachment) {
  const LoopDevice disk(Image("broken"));
  ASSERT_TRUE(disk.valid());
  Mkfs("xfs", disk.path());
  ASSERT_EQ(::mount(disk.path().c_str(), Path("mnt2").c_str(), "xfs", 0, nullptr), 0);
  const LoopDevice others(Image("mnt2/image"));
  ASSERT_TRUE(others.valid());
  ASSERT_NO_FATAL_FAILURE(ShutDown(Path("mnt2")));
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(Shown(others), "/image");
  ASSERT_NO_FATAL_FAILURE(AttachListAndDetach());
}

// It was an error of the kernel's ioctl, and nobody heard what the node lacks.
TEST_F(OtherLoopsTest, ANodeWithoutALoopControlWasAFaultOfTheAgent) {
  constexpr char kControl[] = "/dev/loop-control";
  ASSERT_EQ(::mount(Image("control").c_str(), kControl, nullptr, MS_BIND, nullptr), 0);
  const Result<AttachedLoop> attached = local_->Call(AttachLoop{Ours()}, {});
  EXPECT_EQ(::umount2(kControl, MNT_DETACH), 0);
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(attached.error().maybe_applied());
  EXPECT_NE(attached.error().message().find("`modprobe loop`"), std::string::npos)
      << attached.error().message();
}

class SilentLoopsTest : public OtherLoopsTest {
 protected:
  // A loop device on a server that does not answer, whose mount the agent does not see.
  void AttachFar() {
    ASSERT_TRUE(MakeImage(Path("far-image"), kImageBytes));
    ASSERT_EQ(::mount("far", Path("mnt2").c_str(), "tmpfs", 0, nullptr), 0);
    ASSERT_EQ(::mkdir(Path("mnt2/far").c_str(), 0755), 0);
    hangfs_ = std::make_unique<HangfsMount>(HangfsPath(), Path("mnt2/far"), Path("far-control"),
                                            Path("far-image"));
    if (!hangfs_->mounted()) GTEST_SKIP() << "skipped: needs /dev/fuse";
    others_.emplace(Path("mnt2/far/image"));
    ASSERT_TRUE(others_->valid());
  }
  void TearDown() override {
    if (hangfs_) hangfs_->Heal();
    others_.reset();
    hangfs_.reset();
    OtherLoopsTest::TearDown();
  }

  std::unique_ptr<HangfsMount> hangfs_;
  std::optional<LoopDevice> others_;
};

// Such a path lies on the root, as the agent sees it, which always answers.
TEST_F(SilentLoopsTest, ASilentFileOfAnotherMountNamespaceStoppedEachAttachment) {
  ASSERT_NO_FATAL_FAILURE(AttachFar());
  if (IsSkipped()) return;
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(Shown(*others_), "/image");
  hangfs_->Hang();
  ASSERT_NO_FATAL_FAILURE(AttachListAndDetach());
  hangfs_->Heal();
  ASSERT_NO_FATAL_FAILURE(AttachListAndDetach());
}

TEST_F(SilentLoopsTest, ASilentFileThatIsShownByTheNameOfEachImageStoppedEachAttachment) {
  ASSERT_NO_FATAL_FAILURE(AttachFar());
  if (IsSkipped()) return;
  ASSERT_EQ(::umount2(Path("mnt2/far").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(Shown(*others_), "/image");
  hangfs_->Die();
  ASSERT_NO_FATAL_FAILURE(AttachListAndDetach());
}

TEST_F(OtherLoopsTest, ABindOfAVolumesDirectoryThatWasTakenAwayHidesNoLoopDevice) {
  ASSERT_EQ(::mount(Path("mnt/volume-1").c_str(), Path("mnt2").c_str(), nullptr, MS_BIND, nullptr),
            0);
  const LoopDevice loop(Path("mnt2/image"));
  ASSERT_TRUE(loop.valid());
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(Shown(loop), "/image");
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheFiles(loop));
}

TEST_F(OtherLoopsTest, ABindOfTheFileUnderAnotherNameThatWasTakenAwayHidesNoLoopDevice) {
  ASSERT_TRUE(MakeImage(Path("other"), 0));
  ASSERT_EQ(
      ::mount(Path("mnt/volume-1/image").c_str(), Path("other").c_str(), nullptr, MS_BIND, nullptr),
      0);
  const LoopDevice loop(Path("other"));
  ASSERT_TRUE(loop.valid());
  ASSERT_EQ(::umount2(Path("other").c_str(), MNT_DETACH), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheFiles(loop));
}

TEST_F(OtherLoopsTest, APoolThatWasUnmountedLazilyAndMountedAgainHasItsLoopDevices) {
  const LoopDevice loop(Path("mnt/volume-1/image"));
  ASSERT_TRUE(loop.valid());
  ASSERT_EQ(::umount2(Path("mnt").c_str(), MNT_DETACH), 0);
  ASSERT_EQ(Shown(loop), "/volume-1/image");
  ASSERT_NO_FATAL_FAILURE(MountPool());
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheFiles(loop));
}

// A loop device is asked once as long as it has its file, and not longer.
TEST_F(OtherLoopsTest, ALoopDeviceThatCameToHaveTheFileIsNotTakenForTheOneThatItWas) {
  LoopDevice before(Image("mnt/volume-1/other"));
  ASSERT_TRUE(before.valid());
  EXPECT_EQ(Must(local_->Call(ListLoops{Ours()}, {})).loops.size(), 0u);
  ASSERT_EQ(Shell("losetup -d " + before.path()), 0);
  ASSERT_EQ(::mount(Path("mnt/volume-1").c_str(), Path("mnt2").c_str(), nullptr, MS_BIND, nullptr),
            0);
  ASSERT_EQ(Shell("losetup " + before.path() + " " + Path("mnt2/image")), 0);
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectIsTheFiles(before));
}

// A process that changes a loop device has it locked for as long as what is written to it waits.
class LockedLoop {
 public:
  // The filesystem of the loop device's file is frozen.
  explicit LockedLoop(const std::string& path) {
    Start([path] {
      const Descriptor device(::open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
      void* block = nullptr;
      if (::posix_memalign(&block, 4096, 4096) != 0) return;
      (void)!::pwrite(device.get(), block, 4096, 0);
    });
    AwaitStack("submit_bio");
    Start([path] {
      const Descriptor device(::open(path.c_str(), O_RDWR | O_CLOEXEC));
      loop_info64 info = {};
      ::ioctl(device.get(), LOOP_SET_STATUS64, &info);
    });
    AwaitStack("blk_mq_freeze_queue_wait");
  }
  ~LockedLoop() {
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
  }
  LockedLoop(const LockedLoop&) = delete;
  LockedLoop& operator=(const LockedLoop&) = delete;

  bool is_locked() const { return is_locked_; }

 private:
  void Start(const std::function<void()>& work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      work();
      ::_exit(0);
    }
    pids_.push_back(pid);
  }
  void AwaitStack(const std::string& function) {
    is_locked_ = false;
    for (int i = 0; i < 2000 && !is_locked_; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      std::ifstream file("/proc/" + std::to_string(pids_.back()) + "/stack");
      const std::string stack((std::istreambuf_iterator<char>(file)),
                              std::istreambuf_iterator<char>());
      is_locked_ = stack.find(function) != std::string::npos;
    }
  }

  std::vector<pid_t> pids_;
  bool is_locked_ = false;
};

class LockedLoopsTest : public OtherLoopsTest {
 protected:
  // Of a loop device of the file: while it is locked there is no second one, and then it is found.
  void ExpectRefusedWhileLocked(const LoopDevice& loop) {
    const Descriptor mounted(::open(Path("mnt").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::ioctl(mounted.get(), FIFREEZE, 0), 0);
    {
      const LockedLoop locked(loop.path());
      const auto attached = local_->Call(AttachLoop{Ours()}, {});
      ASSERT_EQ(::ioctl(mounted.get(), FITHAW, 0), 0);
      if (!locked.is_locked()) GTEST_SKIP() << "skipped: needs the stacks of processes";
      ASSERT_FALSE(attached.ok());
      EXPECT_EQ(attached.error().code(), Code::kUnavailable) << attached.error().ToString();
    }
    ASSERT_NO_FATAL_FAILURE(ExpectIsTheFiles(loop));
  }
};

// It does not answer either, though its file would: the file had got a second one.
TEST_F(LockedLoopsTest, ALoopDeviceThatSomebodyChangesIsNotTakenForOneThatIsSilent) {
  ASSERT_EQ(::mount(Path("mnt/volume-1").c_str(), Path("mnt2").c_str(), nullptr, MS_BIND, nullptr),
            0);
  const LoopDevice loop(Path("mnt2/image"));
  ASSERT_TRUE(loop.valid());
  ASSERT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectRefusedWhileLocked(loop));
}

// Whoever changes a loop device may wait for its disk, as volumed itself does that sets direct I/O:
// each attachment of the node waited with it.
TEST_F(OtherLoopsTest, ALoopDeviceOfADiskThatHangsStoppedEachAttachmentAsSomebodyChangedIt) {
  const LoopDevice disk(Image("other-disk"));
  ASSERT_TRUE(disk.valid());
  Mkfs("xfs", disk.path());
  ASSERT_EQ(::mount(disk.path().c_str(), Path("mnt2").c_str(), "xfs", 0, nullptr), 0);
  ASSERT_EQ(::mkdir(Path("mnt2/volume-2").c_str(), 0755), 0);
  {
    const LoopDevice others(Image("mnt2/volume-2/image"));
    ASSERT_TRUE(others.valid());
    const Descriptor mounted(::open(Path("mnt2").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::ioctl(mounted.get(), FIFREEZE, 0), 0);
    const LockedLoop locked(others.path());
    AttachListAndDetach();
    ASSERT_EQ(::ioctl(mounted.get(), FITHAW, 0), 0);
    if (!locked.is_locked()) GTEST_SKIP() << "skipped: needs the stacks of processes";
  }
  EXPECT_EQ(::umount2(Path("mnt2").c_str(), MNT_DETACH), 0);
}

// It was shown below what lies on another disk, as the agent sees it, and under another name: the
// file had got a second one.
TEST_F(LockedLoopsTest, AHardLinkOfTheFileBelowACoveringMountIsNotTakenForAnotherDisks) {
  ASSERT_EQ(::mount(Path("mnt").c_str(), Path("mnt2").c_str(), nullptr, MS_BIND, nullptr), 0);
  ASSERT_EQ(::link(Path("mnt/volume-1/image").c_str(), Path("mnt/link").c_str()), 0);
  const LoopDevice loop(Path("mnt2/link"));
  ASSERT_TRUE(loop.valid());
  ASSERT_EQ(::mount("cover", Path("mnt2").c_str(), "tmpfs", 0, nullptr), 0);
  ASSERT_NO_FATAL_FAILURE(ExpectRefusedWhileLocked(loop));
  for (int mounts = 2; mounts > 0; --mounts) ::umount2(Path("mnt2").c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace volumed
