// The same requests about a block device to LocalKernel, on a loop device, and to FakeKernel: equal
// answers, errors and outcomes.
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include "base/random.h"
#include "fakes/fake_kernel.h"
#include "integration/differential/world_text.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

// Nobody else's: tests that run at the same time see each other's filesystems.
const std::string& DiskUuid() {
  static const std::string uuid = NewUuid();
  return uuid;
}
const std::string& OtherUuid() {
  static const std::string uuid = NewUuid();
  return uuid;
}

// One world: a device, and a place to mount it.
struct World {
  Kernel& kernel;
  std::string device;
  SafePath target;

  DeviceIdentity Identity() {
    auto probe = kernel.Call(ProbeDevice{device, false, false}, {});
    return probe.ok() ? probe->identity : DeviceIdentity{};
  }
  std::string Do(const AnyRequest& request) {
    return ResultText(kernel.Do(request, {}), target.Display());
  }
  std::string Probe(bool full_scan = false) { return Do(ProbeDevice{device, full_scan, false}); }
  std::string Format(const std::string& fs_type, const std::string& uuid, bool repeat = false) {
    return Do(FormatDevice{device, Identity(), fs_type, uuid, {}, false, repeat});
  }
  std::string Check(const std::string& fs_type, CheckMode mode) {
    return Do(CheckFilesystem{device, Identity(), fs_type, mode});
  }
  std::string MountAs(const std::string& fs_type, std::vector<std::string> options = {}) {
    return Do(Mount{fs_type, device, target, std::move(options), Identity()});
  }
  std::string Use() { return Do(CheckDeviceUse{device, 0, 0}); }
  std::function<void(int64_t)> enlarge = {};
  std::string Grow(const std::string& type, bool mounted, bool only_measure = false) {
    GrowFilesystem grow{device, Identity(), type};
    if (mounted) grow.mounted_at = target;
    grow.only_measure = only_measure;
    return Do(grow);
  }
  std::string UnmountIt() { return Do(Unmount{target, false}); }
};

class DeviceDifferential : public BlockMountTest,
                           public ::testing::WithParamInterface<const char*> {
 protected:
  // One line per step.
  static std::string LifeOfADevice(World& world, const std::string& type,
                                   const std::string& other) {
    std::string text;
    const auto step = [&](const std::string& name, const std::string& result) {
      text += name + ": " + result + "\n";
    };
    step("probe", world.Probe());
    step("identify", world.Do(IdentifyDevice{{world.device, ""}}));
    step("identify nothing", world.Do(IdentifyDevice{{world.device + "-no", ""}}));
    step("identify a directory", world.Do(IdentifyDevice{{world.target.root, ""}}));
    step("identify by no path", world.Do(IdentifyDevice{{"", ""}}));
    step("full scan", world.Probe(true));
    step("flush", world.Do(FlushDevice{world.device}));
    step("flush what is no device", world.Do(FlushDevice{world.target.Display()}));
    step("mount unformatted", world.MountAs(type));
    step("unknown type", world.Format("vfat", DiskUuid()));
    step("no UUID", world.Format(type, ""));
    DeviceIdentity wrong = world.Identity();
    wrong.disk_sequence += 1;
    step("other device",
         world.Do(FormatDevice{world.device, wrong, type, DiskUuid(), {}, false, false}));
    step("format", world.Format(type, DiskUuid()));
    step("probe", world.Probe());
    step("format again", world.Format(type, DiskUuid()));
    step("repeat, other UUID", world.Format(type, OtherUuid(), true));
    step("repeat", world.Format(type, DiskUuid(), true));
    step("preen", world.Check(type, CheckMode::kPreen));
    step("report", world.Check(type, CheckMode::kReport));
    step("mount other type", world.MountAs(other));
    step("use", world.Use());
    step("mount", world.MountAs(type));
    step("use", world.Use());
    step("format mounted", world.Format(type, DiskUuid(), true));
    step("report mounted", world.Check(type, CheckMode::kReport));
    step("flush mounted", world.Do(FlushDevice{world.device}));
    step("unmount", world.UnmountIt());
    step("use", world.Use());
    const DeviceIdentity number = world.Identity();
    step("use", world.Do(CheckDeviceUse{world.device, number.device_major, number.device_minor}));
    step("use of another", world.Do(CheckDeviceUse{world.device, number.device_major, 1000}));
    step("use of nothing", world.Do(CheckDeviceUse{world.device + "-none", 0, 0}));
    step("mount ro", world.MountAs(type, {"ro"}));
    step("unmount", world.UnmountIt());
    step("unmount", world.UnmountIt());
    DeviceIdentity replaced = world.Identity();
    replaced.uuid = OtherUuid();
    step("other filesystem", world.Do(Mount{type, world.device, world.target, {}, replaced}));
    step("check other", world.Do(CheckFilesystem{world.device, replaced, type, CheckMode::kPreen}));
    return text;
  }

  static std::string Growth(World& world, const std::string& type) {
    std::string text;
    const auto step = [&](const std::string& name, const std::string& result) {
      text += name + ": " + result + "\n";
    };
    step("format", world.Format(type, DiskUuid()));
    step("full", world.Grow(type, false));
    world.enlarge(kImageBytes * 3 / 2);
    step("measure", world.Grow(type, false, true));
    step("other type", world.Grow("ext2", false));
    step("unmounted", world.Grow(type, false));
    step("not mounted there", world.Grow(type, true));
    step("mount", world.MountAs(type));
    step("mounted", world.Grow(type, true));
    step("again", world.Grow(type, true));
    world.enlarge(kImageBytes * 2);
    step("mounted, not told", world.Grow(type, false));
    step("mounted, larger", world.Grow(type, true));
    DeviceIdentity wrong = world.Identity();
    wrong.disk_sequence += 1;
    step("other device", world.Do(GrowFilesystem{world.device, wrong, type, world.target}));
    step("unmount", world.UnmountIt());
    step("measure", world.Grow(type, false, true));
    return text;
  }

  // The kernel refuses a mounted ext to who lacks CAP_SYS_RESOURCE.
  static bool MayGrowMountedExt() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("CapEff:", 0) == 0)
        return (std::stoull(line.substr(8), nullptr, 16) >> 24) & 1;
    }
    return false;
  }
};

TEST_P(DeviceDifferential, TheFakeDoesAsTheKernel) {
  const std::string type = GetParam();
  const LoopDevice device(ImageOfZeros());
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}, {}};
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  FakeDevice state;
  state.identity.size_bytes = kImageBytes;
  kernel.AddDevice("/dev/disk", state);
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}, {}};
  const std::string other = type == "xfs" ? "btrfs" : "xfs";
  const std::string happened = LifeOfADevice(real, type, other);
  EXPECT_EQ(LifeOfADevice(fake, type, other), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nformat: done\n"));
}

TEST_P(DeviceDifferential, AGrowth) {
  const std::string type = GetParam();
  const std::string image = Image();
  const LoopDevice device(image);
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}, [&](int64_t bytes) {
               ASSERT_EQ(::truncate(image.c_str(), bytes), 0);
               const Descriptor fd(::open(device.path().c_str(), O_RDWR | O_CLOEXEC));
               ASSERT_EQ(::ioctl(fd.get(), LOOP_SET_CAPACITY, 0), 0);
             }};
  FakeDevice state;
  state.identity.size_bytes = kImageBytes;
  if (type.starts_with("ext") && !MayGrowMountedExt()) state.grow_error = EPERM;
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk", state);
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}, [&](int64_t bytes) {
               kernel.ChangeDevice("/dev/disk",
                                   [bytes](FakeDevice& disk) { disk.identity.size_bytes = bytes; });
             }};
  EXPECT_EQ(Growth(fake, type), Growth(real, type));
}

TEST_P(DeviceDifferential, AReadOnlyDevice) {
  const std::string type = GetParam();
  const std::string image = Image();
  Mkfs(type, image);
  const LoopDevice device(image, true);
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}, {}};
  FakeDevice state;
  state.read_only = true;
  state.fs_type = type;
  state.usage = "filesystem";
  state.identity = real.Identity();
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk", state);
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}, {}};
  EXPECT_EQ(fake.Probe(), real.Probe());
  EXPECT_EQ(fake.MountAs(type), real.MountAs(type));
  EXPECT_EQ(fake.Format(type, DiskUuid()), real.Format(type, DiskUuid()));
  EXPECT_EQ(fake.MountAs(type, {"ro"}), real.MountAs(type, {"ro"}));
}

using NodeDifferential = BlockMountTest;

// The mark is put back that mkfs takes away last.
TEST_F(NodeDifferential, AnUnfinishedMkfs) {
  for (const std::string type : {"xfs", "btrfs"}) {
    // mkfs.btrfs refuses one that another device has or had.
    const std::string uuid = NewUuid();
    const LoopDevice device(Image(type));
    ASSERT_TRUE(device.valid());
    World real{*local_, device.path(), {scratch(), "mnt"}};
    FakeKernel kernel;
    kernel.AddDirectory("/scratch/mnt");
    FakeDevice state;
    state.identity.size_bytes = kImageBytes;
    kernel.AddDevice("/dev/disk", state);
    World fake{kernel, "/dev/disk", {"/scratch", "mnt"}};
    ASSERT_EQ(real.Format(type, uuid), "done");
    ASSERT_EQ(fake.Format(type, uuid), "done");
    const std::string mark =
        type == "xfs" ? "xfs_db -x -c 'sb 0' -c 'write inprogress 1' " + device.path()
                      : "printf '!' | dd conv=notrunc bs=1 seek=65600 of=" + device.path();
    ASSERT_EQ(Shell(mark), 0);
    kernel.ChangeDevice("/dev/disk", [](FakeDevice& disk) { disk.unfinished = true; });
    const auto life = [&](World& world) {
      // Each in a statement of its own: the operands of + are evaluated in any order.
      std::string text;
      const auto step = [&text](const std::string& result) { text += result + "\n"; };
      step(world.Probe());
      step(world.Format(type, uuid));
      step(world.Format(type, OtherUuid(), true));
      step(world.Format("ext4", uuid, true));
      step(world.Check(type, CheckMode::kReport));
      step(world.MountAs(type));
      step(world.Format(type, uuid, true));
      step(world.Probe());
      step(world.MountAs(type));
      step(world.UnmountIt());
      return text;
    };
    const std::string happened = life(real);
    EXPECT_EQ(life(fake), happened);
    EXPECT_THAT(happened, ::testing::HasSubstr(" unfinished\n"));
    EXPECT_THAT(happened, ::testing::HasSubstr("\ndone\n"));
  }
}

// Identified, held and bound as a node: what block volumes do with a device.
std::string LifeOfANode(World& world, const std::string& detached) {
  std::string text;
  const auto step = [&](const std::string& name, const std::string& result) {
    text += name + ": " + result + "\n";
  };
  const SafePath node{world.device, "", Resolve::kBeneath};
  const SafePath file = world.target.Below("node");
  step("identify", world.Do(IdentifyDevice{node, false}));
  step("hold", world.Do(IdentifyDevice{node, true}));
  step("identify missing", world.Do(IdentifyDevice{file, true}));
  step("make file", world.Do(MakeFile{file, 0750}));
  step("identify file", world.Do(IdentifyDevice{file, true}));
  DeviceIdentity wrong = world.Identity();
  wrong.disk_sequence += 1;
  step("bind other", world.Do(BindMount{.source = node, .target = file, .expected_device = wrong}));
  step("bind no device",
       world.Do(
           BindMount{.source = world.target, .target = file, .expected_device = world.Identity()}));
  step("still a file", world.Do(Stat{file}));
  step("bind",
       world.Do(BindMount{.source = node, .target = file, .expected_device = world.Identity()}));
  step("a device", world.Do(Stat{file}));
  step("listed as it lies below", world.Do(ListDirectory{world.target}));
  step("identify by the bind", world.Do(IdentifyDevice{file, true}));
  step("flush", world.Do(FlushDevice{file.Display(), world.Identity()}));
  step("flush other", world.Do(FlushDevice{world.device, wrong}));
  step("no loop device of it", world.Do(DetachLoops{file}));
  step("remove bound", world.Do(RemoveFile{file}));
  step("tree of bound", world.Do(RemoveTree{world.target}));
  step("unbind", world.Do(Unmount{file}));
  step("a file again", world.Do(Stat{file}));
  step("link", world.Do(MakeSymlink{world.target.Below("link"), world.device}));
  step("link again", world.Do(MakeSymlink{world.target.Below("link"), world.device}));
  step("link elsewhere", world.Do(MakeSymlink{world.target.Below("link"), "elsewhere"}));
  step("where", world.Do(ReadLink{world.target.Below("link")}));
  step("link over a file", world.Do(MakeSymlink{file, world.device}));
  step("read no link", world.Do(ReadLink{file}));
  step("detach missing", world.Do(DetachLoops{{detached, ""}}));
  return text;
}

TEST_F(NodeDifferential, TheFakeBindsNodesAsTheKernel) {
  const LoopDevice device(Image());
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}};
  FakeDevice state;
  state.identity.size_bytes = kImageBytes;
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk", state);
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}};
  const std::string happened = LifeOfANode(real, "/no/such/file");
  EXPECT_EQ(LifeOfANode(fake, "/no/such/file"), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nbind: done\n"));
}

TEST_F(NodeDifferential, LoopDevicesOfAPathAreDetachedByIt) {
  const LoopDevice device(Image());
  ASSERT_TRUE(device.valid());
  const SafePath node{device.path(), ""};
  const SafePath file = SafePath{scratch(), "mnt"}.Below("node");
  World real{*local_, device.path(), {scratch(), "mnt"}};
  ASSERT_EQ(real.Do(MakeFile{file, 0750}), "changed");
  ASSERT_EQ(real.Do(BindMount{.source = node, .target = file}), "done");
  const LoopDevice lock(file.Display());  // as kubelet takes it
  ASSERT_TRUE(lock.valid());
  EXPECT_THAT(real.Do(volumed::Unmount{file}), ::testing::HasSubstr("EBUSY"));

  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk");
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}};
  const SafePath fake_file{"/scratch", "mnt/node"};
  ASSERT_EQ(fake.Do(MakeFile{fake_file, 0750}), "changed");
  ASSERT_EQ(fake.Do(BindMount{.source = {"/dev/disk", ""}, .target = fake_file}), "done");
  kernel.AddLoop(fake_file.Display());
  EXPECT_THAT(fake.Do(volumed::Unmount{fake_file}), ::testing::HasSubstr("EBUSY"));

  EXPECT_EQ(real.Do(DetachLoops{file}), "changed");
  EXPECT_EQ(fake.Do(DetachLoops{fake_file}), "changed");
  // Whoever looks at all devices of the machine may hold it for a moment.
  for (int tries = 0; tries < 1000 && real.Do(ListLoops{file}) != "0 loops"; ++tries) {
    ::usleep(10'000);
  }
  EXPECT_EQ(real.Do(DetachLoops{file}), "unchanged");
  EXPECT_EQ(fake.Do(DetachLoops{fake_file}), "unchanged");
  EXPECT_EQ(real.Do(volumed::Unmount{file}), "changed");
  EXPECT_EQ(fake.Do(volumed::Unmount{fake_file}), "changed");
}

INSTANTIATE_TEST_SUITE_P(Filesystems, DeviceDifferential,
                         ::testing::Values("ext2", "ext3", "ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
