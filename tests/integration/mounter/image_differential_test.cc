// The same requests about images, their loop devices and locks to LocalKernel, on a disk's
// filesystem, and to FakeKernel: equal answers, errors and outcomes. And what only the real kernel
// can show.
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "fakes/must.h"
#include "integration/mounter/image_world.h"

namespace volumed {
namespace {

void SizeImage(ImageWorld& world) {
  world.Step("grow nothing", world.Size(kImageBytes));
  world.Step("no size", world.Size(0, true));
  world.Step("make", world.Size(kImageBytes, true));
  world.Step("make again", world.Size(kImageBytes, true));
  world.Step("make another", world.Size(kImageBytes * 2, true));
  world.Step("shrink", world.Size(kImageBytes - 4096));
  world.Step("stat", Stat{world.Image()});
  SetFileSize other = world.Size(kImageBytes + 4096);
  other.expected = {"tmpfs", "", 1, ""};
  world.Step("grow another", other);
  SetFileSize same = world.Size(kImageBytes + 4096);
  same.expected = Must(world.kernel.Call(world.Size(kImageBytes), {})).object;
  world.Step("grow it", same);
  world.Step("grow a directory", SetFileSize{.path = world.pool, .bytes = 4096});
  world.Step("make over a directory",
             SetFileSize{.path = world.pool.Below("d"), .make = true, .bytes = 4096});
}

void AttachImage(ImageWorld& world) {
  world.Step("attach a directory", AttachLoop{world.pool});
  world.Step("attach nothing", AttachLoop{world.pool.Below("none")});
  world.Step("empty file", MakeFile{world.pool.Below("empty")});
  world.Step("attach an empty file", AttachLoop{world.pool.Below("empty")});
  AttachLoop odd = world.Attach();
  odd.block_size = 1000;
  world.Step("odd blocks", odd);
  AttachLoop other = world.Attach();
  other.expected = {"tmpfs", "", 1, ""};
  world.Step("attach another", other);
  world.AwaitNoLoops();
  world.Step("attach", world.Attach());
  world.Step("attach again", world.Attach());
  AttachLoop small = world.Attach();
  small.block_size = 512;
  world.Step("other blocks", small);
  AttachLoop read_only = world.Attach();
  read_only.read_only = true;
  world.Step("read-only after all", read_only);
  world.Step("list", ListLoops{world.pool});
  world.Step("list the file", ListLoops{world.Image()});
  world.Step("list another", ListLoops{world.pool.Below("imag")});
  world.Step("pool is busy", Unmount{world.pool});
}

void UseImage(ImageWorld& world, const std::string& type) {
  world.Step("probe", ProbeDevice{world.Loop().path, true, false});
  world.Step("format",
             FormatDevice{world.Loop().path, world.Probed(), type, ImageUuid(), {}, false, false});
  world.MountIt(type);
  world.Step("write", WriteFile{world.place.Below("f"), Secret<std::string>("kept")});
  world.Step("unmount", Unmount{world.place});
  world.Step("detach", DetachLoops{world.Image()});
  world.AwaitNoLoops();
  world.Step("detach again", DetachLoops{world.Image()});
  world.Step("attach", world.Attach());
  world.MountIt(type);
  world.Step("read", ReadFile{world.place.Below("f")});

  const auto grown = world.kernel.Call(world.Size(kImageBytes * 3 / 2), {});
  world.text += "grow the file: " + std::string(grown.ok() && grown->changed ? "yes" : "no") + "\n";
  world.Step("not told", IdentifyDevice{{world.Loop().path, ""}});
  ConfigureLoop configure{world.Loop().path, world.Loop().facts.identity, true};
  DeviceIdentity wrong = configure.expected;
  wrong.disk_sequence += 1;
  world.Step("tell another", ConfigureLoop{configure.device, wrong, true});
  world.Step("tell no loop device", ConfigureLoop{world.Image().Display(), wrong, true});
  world.Step("tell", configure);
  world.Step("told", IdentifyDevice{{world.Loop().path, ""}});
  configure.direct_io = false;
  world.Step("cached", configure);
  for (const int64_t kib : {256, 256, 0, 3, -4}) {
    configure.read_ahead_kib = kib;
    world.Step("read ahead", configure);
  }
  SetIoLimits limit{configure.device, configure.expected, {"volumed-none/of/these"}, {}};
  limit.expected.size_bytes = kImageBytes * 3 / 2;
  world.Step("limit in no cgroup", limit);
  limit.limits.read_bps = 1;
  world.Step("limit to one byte", limit);
  limit.expected = wrong;
  limit.limits.read_bps = 0;
  world.Step("limit another", limit);
  world.Step("list", ListLoops{world.pool});
}

void EndImage(ImageWorld& world) {
  const std::string device = world.Loop().path;
  const DeviceIdentity identity = world.Loop().facts.identity;
  world.Step("detach mounted", DetachLoops{world.Image()});
  world.Step("attach what goes", world.Attach());
  world.Step("still there", ReadFile{world.place.Below("f")});
  world.Step("unmount", Unmount{world.place});
  world.AwaitNoLoops();
  world.Step("tell a free one", ConfigureLoop{device, identity, true});
  AttachLoop read_only = world.Attach();
  read_only.read_only = true;
  world.Step("attach read-only", read_only);
  world.Step("list", ListLoops{world.pool});
  world.Step("remove", RemoveFile{world.Image()});
  world.Step("list", ListLoops{world.pool});
  world.Step("detach", DetachLoops{world.Image()});
  world.AwaitNoLoops();
}

// The pool is mounted at a second place, and the loop device is attached there.
void AttachElsewhere(ImageWorld& world) {
  world.Step("make", world.Size(kImageBytes, true));
  SetFileSize other{world.pool.Below("other"), true};
  other.bytes = kImageBytes;
  world.Step("make another", other);
  world.Step("mount elsewhere", BindMount{.source = world.pool, .target = world.place});
  world.Step("attach elsewhere", AttachLoop{world.place.Below("image")});
  world.Step("attach another elsewhere", AttachLoop{world.place.Below("other")});
  world.Step("attach", world.Attach());
  world.Step("list the file", ListLoops{world.Image()});
  world.Step("list the directory", ListLoops{world.pool});
  world.Step("detach", DetachLoops{world.Image()});
  world.AwaitNoLoops(world.Image());
  world.Step("detach again", DetachLoops{world.Image()});
  world.Step("list the other", ListLoops{world.pool.Below("other")});
  world.Step("remove the other elsewhere", RemoveFile{world.place.Below("other")});
  world.Step("detach what was removed", DetachLoops{world.place.Below("other")});
  world.AwaitNoLoops(world.place);
  world.Step("no pool elsewhere", Unmount{world.place});
}

void FillDisk(ImageWorld& world) {
  world.Step("allocate", world.Size(64 << 20, true, true));
  world.Step("allocate again", world.Size(64 << 20, false, true));
  world.Step("more than there is", world.Size(kPoolBytes * 2, false, true));
  world.Step("as before", world.Size(64 << 20));
  world.Step("with holes", world.Size(kPoolBytes * 2));
  world.Step("remove", RemoveFile{world.Image()});
  world.Step("make more than there is", world.Size(kPoolBytes * 2, true, true));
  world.Step("not made", Stat{world.Image()});
}

void TakeLocks(ImageWorld& world) {
  const SafePath path = world.pool.Below("lock");
  world.Step("lock nothing", TakeFileLock{path});
  {
    const auto held = world.kernel.Call(TakeFileLock{path, "node one"}, {});
    world.text += held.ok() ? "locked\n" : held.error().ToString();
    world.Step("taken", TakeFileLock{path, "node two"});
    world.Step("taken, unwritten", TakeFileLock{path});
    world.Step("content", ReadFile{path});
    world.Step("pool is busy", Unmount{world.pool});
  }
  world.Step("free", TakeFileLock{path, "two"});
  world.Step("content", ReadFile{path});
  world.Step("free, unwritten", TakeFileLock{path});
  world.Step("content", ReadFile{path});
  world.Step("lock a directory", TakeFileLock{world.pool, "x"});
  world.Step("unmount", Unmount{world.pool});
}

TEST_P(ImageDifferential, TheLifeOfAnImage) {
  const auto life = [](ImageWorld world) {
    SizeImage(world);
    AttachImage(world);
    UseImage(world, GetParam());
    EndImage(world);
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nread: content kept\n"));
  EXPECT_THAT(happened, ::testing::HasSubstr("\nleft: 0 loops\n"));
}

// A volume was deleted while its file was attached under another path, and the device read on.
TEST_P(ImageDifferential, ALoopDeviceUnderAnotherPathOfTheFileWasNotFound) {
  const auto life = [](ImageWorld world) {
    AttachElsewhere(world);
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nlist the file: 1 loops [image "));
  EXPECT_THAT(happened, ::testing::HasSubstr("\ndetach: changed\nleft: 0 loops\n"));
  EXPECT_THAT(happened, ::testing::HasSubstr("\nlist the other: 1 loops [other "));
}

// The loop device's file has no path any more then: the mount under which it was attached is gone.
TEST_P(ImageDifferential, ALoopDeviceOfALazilyUnmountedPoolWasNotFoundOnceThatWasMountedAgain) {
  ImageWorld world = real();
  ASSERT_TRUE(local_->Call(world.Size(kImageBytes, true), {}).ok());
  const auto loop = local_->Call(world.Attach(), {});
  ASSERT_TRUE(loop.ok()) << loop.error().ToString();
  ASSERT_EQ(::umount2(Path("mnt").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(world.Do(ListLoops{world.Image()}), "0 loops") << "no file is there";
  ASSERT_EQ(::mount(disk_->path().c_str(), Path("mnt").c_str(), GetParam(), 0, nullptr), 0);
  const auto list = local_->Call(ListLoops{world.Image()}, {});
  ASSERT_TRUE(list.ok()) << list.error().ToString();
  ASSERT_EQ(list->loops.size(), 1u);
  EXPECT_EQ(list->loops[0].path, loop->device.path);
  EXPECT_FALSE(list->loops[0].deleted);
  EXPECT_EQ(world.Do(DetachLoops{world.Image()}), "changed");
  world.AwaitNoLoops(world.Image());
  EXPECT_EQ(world.text, "left: 0 loops\n");
}

TEST_P(ImageDifferential, AFullDisk) {
  const auto life = [](ImageWorld world) {
    FillDisk(world);
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("ResourceExhausted (not applied, ENOSPC)"));
}

TEST_P(ImageDifferential, ALock) {
  const auto life = [](ImageWorld world) {
    TakeLocks(world);
    return world.text;
  };
  const std::string happened = life(real());
  EXPECT_EQ(life(fake()), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\ntaken: Aborted (not applied, "));
}

TEST_P(ImageDifferential, AnotherNameOfAnImageHasTheSameLoopDevice) {
  ImageWorld world = real();
  ASSERT_TRUE(local_->Call(world.Size(kImageBytes, true), {}).ok());
  ASSERT_EQ(::link(Path("mnt/image").c_str(), Path("mnt/other").c_str()), 0);
  const auto first = local_->Call(world.Attach(), {});
  ASSERT_TRUE(first.ok()) << first.error().ToString();
  const auto second = local_->Call(AttachLoop{world.pool.Below("other")}, {});
  ASSERT_TRUE(second.ok()) << second.error().ToString();
  EXPECT_TRUE(first->changed);
  EXPECT_FALSE(second->changed);
  EXPECT_EQ(second->device.path, first->device.path);
}

// A loop device of somebody's mount -o loop would be gone with his mount.
TEST_P(ImageDifferential, ALoopDeviceThatGoesByItselfIsNotTaken) {
  ImageWorld world = real();
  ASSERT_TRUE(local_->Call(world.Size(kImageBytes, true), {}).ok());
  ASSERT_EQ(Shell("losetup -f --sector-size 4096 " + Path("mnt/image")), 0);
  const auto loop = local_->Call(world.Attach(), {});
  ASSERT_TRUE(loop.ok()) << loop.error().ToString();
  EXPECT_FALSE(loop->changed);
  Mkfs("ext4", loop->device.path);
  ASSERT_EQ(::mount(loop->device.path.c_str(), Path("mnt2").c_str(), "ext4", 0, nullptr), 0);
  ASSERT_TRUE(local_->Call(DetachLoops{world.Image()}, {}).ok());
  const auto again = local_->Call(world.Attach(), {});
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(again.error().message(), ::testing::HasSubstr(loop->device.path));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, ImageDifferential, ::testing::Values("ext4", "xfs"),
                         [](const auto& type) { return std::string(type.param); });

class SharedImageTest : public ImageDifferential {};

// Linux 6.14 and later give a loop device of a file that shares blocks sectors of 4096 bytes, if
// nobody says otherwise: a filesystem that was made with 512 did not mount any more.
TEST_P(SharedImageTest, AFileThatSharesItsBlocksKeepsTheSizeOfItsLoopDevicesBlocks) {
  ImageWorld world = real();
  ASSERT_TRUE(local_->Call(world.Size(kImageBytes, true), {}).ok());
  const auto loop = local_->Call(world.Attach(), {});
  ASSERT_TRUE(loop.ok()) << loop.error().ToString();
  Mkfs("xfs", loop->device.path);
  ASSERT_TRUE(local_->Call(DetachLoops{world.Image()}, {}).ok());
  world.AwaitNoLoops(world.Image());
  {
    const Descriptor from(::open(Path("mnt/image").c_str(), O_RDONLY | O_CLOEXEC));
    const Descriptor to(::open(Path("mnt/clone").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ioctl(to.get(), FICLONE, from.get()), 0);
  }
  for (const std::string name : {"image", "clone"}) {
    const SafePath path = world.pool.Below(name);
    const auto shared = local_->Call(AttachLoop{path}, {});
    ASSERT_TRUE(shared.ok()) << shared.error().ToString();
    const auto list = local_->Call(ListLoops{path}, {});
    ASSERT_TRUE(list.ok());
    ASSERT_EQ(list->loops.size(), 1u);
    EXPECT_EQ(list->loops[0].block_size, 4096u);
    EXPECT_EQ(list->loops[0].path, shared->device.path);
    EXPECT_EQ(::mount(shared->device.path.c_str(), Path("mnt2").c_str(), "xfs", 0, "nouuid"), 0)
        << name;
    EXPECT_EQ(::umount2(Path("mnt2").c_str(), 0), 0);
    EXPECT_TRUE(local_->Call(DetachLoops{path}, {}).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Filesystems, SharedImageTest, ::testing::Values("xfs"));

using ImageTest = BlockMountTest;

TEST_F(ImageTest, AFreeLoopDeviceWithoutItsNodeIsMissing) {
  Image();
  const AttachLoop attach{{scratch(), "image"}};
  ASSERT_EQ(::mount("few", "/dev", "tmpfs", 0, nullptr), 0);
  const int made = ::mknod("/dev/loop-control", S_IFCHR | 0600, makedev(10, 237));
  const auto without = local_->Call(attach, {});
  ::unlink("/dev/loop-control");
  const auto nobody = local_->Call(attach, {});
  ASSERT_EQ(::umount2("/dev", MNT_DETACH), 0);
  ASSERT_EQ(made, 0);
  ASSERT_FALSE(without.ok() || nobody.ok());
  EXPECT_EQ(without.error().code(), Code::kNotFound) << without.error().ToString();
  // The node has no loop devices at all.
  EXPECT_EQ(nobody.error().code(), Code::kFailedPrecondition) << nobody.error().ToString();
  EXPECT_FALSE(without.error().maybe_applied() || nobody.error().maybe_applied());
}

// The kernel asks the file of each loop device of the machine, and some may be on a disk that has
// failed.
TEST_F(ImageTest, ALoopDeviceOfAFilesystemThatWasShutDownStoppedEachAttachment) {
  constexpr unsigned long kShutDown = _IOR('X', 125, uint32_t);  // XFS_IOC_GOINGDOWN
  const LoopDevice disk(Image("disk"));
  ASSERT_TRUE(disk.valid());
  Mkfs("xfs", disk.path());
  ASSERT_EQ(::mount(disk.path().c_str(), Path("mnt").c_str(), "xfs", 0, nullptr), 0);
  const LoopDevice strangers(Image("mnt/strangers"));
  ASSERT_TRUE(strangers.valid());
  {
    const Descriptor mounted(::open(Path("mnt").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    uint32_t without_its_log = 2;
    ASSERT_EQ(::ioctl(mounted.get(), kShutDown, &without_its_log), 0);
  }
  Image();
  const SafePath image{scratch(), "image"};
  for (const bool is_first : {true, false}) {
    const auto loop = local_->Call(AttachLoop{image}, {});
    ASSERT_TRUE(loop.ok()) << loop.error().ToString();
    EXPECT_EQ(loop->changed, is_first);
  }
  const auto list = local_->Call(ListLoops{image}, {});
  ASSERT_TRUE(list.ok()) << list.error().ToString();
  EXPECT_EQ(list->loops.size(), 1u);
  const auto detached = local_->Call(DetachLoops{image}, {});
  ASSERT_TRUE(detached.ok()) << detached.error().ToString();
  EXPECT_TRUE(detached->changed);
}

// It is killed with the lock, as an agent may be: nobody has to clean up after it.
TEST_F(ImageTest, ALockOfAnAgentThatHasDiedIsFree) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  const SafePath path{scratch(), "lock"};
  const pid_t agent = ::fork();
  ASSERT_GE(agent, 0);
  if (agent == 0) {
    const auto lock = local_->Call(TakeFileLock{path, "agent one"}, {});
    const char answer = lock.ok() ? 'y' : 'n';
    if (::write(writer.get(), &answer, 1) != 1) ::_exit(1);
    while (true) ::pause();
  }
  writer.Reset();
  char answer = 0;
  ASSERT_EQ(::read(reader.get(), &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  const auto taken = local_->Call(TakeFileLock{path, "agent two"}, {});
  EXPECT_EQ(::kill(agent, SIGKILL), 0);
  EXPECT_EQ(::waitpid(agent, nullptr, 0), agent);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code(), Code::kAborted);
  EXPECT_THAT(taken.error().message(), ::testing::HasSubstr("agent one"));
  const auto free = local_->Call(TakeFileLock{path, "agent two"}, {});
  ASSERT_TRUE(free.ok()) << free.error().ToString();
}

// A btrfs needs a new block for what is written anew in its place. A pool of which an agent could
// not say that it has it was not opened, and so nothing in it could be deleted.
TEST_F(ImageTest, ALockOfAFullDiskCouldNotBeTaken) {
  ASSERT_EQ(::mount("none", Path("mnt2").c_str(), "tmpfs", 0, "size=4096"), 0);
  std::ofstream(Path("mnt2/lock")).close();
  std::ofstream(Path("mnt2/other")) << std::string(4096, 'x');
  const SafePath path{scratch(), "mnt2/lock"};
  {
    const auto held = local_->Call(TakeFileLock{path, "agent one"}, {});
    ASSERT_TRUE(held.ok()) << held.error().ToString();
    EXPECT_EQ(std::filesystem::file_size(Path("mnt2/lock")), 0u);
    const auto taken = local_->Call(TakeFileLock{path, "agent two"}, {});
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code(), Code::kAborted);
  }
  EXPECT_EQ(::umount(Path("mnt2").c_str()), 0);
}

}  // namespace
}  // namespace volumed
