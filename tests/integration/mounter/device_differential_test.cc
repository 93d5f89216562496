// The same requests about a block device to LocalKernel, on a loop device, and to FakeKernel: equal
// answers, errors and outcomes.
#include <string>

#include "fakes/fake_kernel.h"
#include "integration/differential/world_text.h"
#include "integration/mounter/block_mount_fixture.h"

namespace volumed {
namespace {

constexpr char kUuid[] = "5b8b1d3c-1111-4222-8333-0123456789ab";
constexpr char kOtherUuid[] = "6c9c2e4d-1111-4222-8333-0123456789ab";

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
    step("full scan", world.Probe(true));
    step("flush", world.Do(FlushDevice{world.device}));
    step("flush what is no device", world.Do(FlushDevice{world.target.Display()}));
    step("mount unformatted", world.MountAs(type));
    step("unknown type", world.Format("vfat", kUuid));
    step("no UUID", world.Format(type, ""));
    DeviceIdentity wrong = world.Identity();
    wrong.disk_sequence += 1;
    step("other device",
         world.Do(FormatDevice{world.device, wrong, type, kUuid, {}, false, false}));
    step("format", world.Format(type, kUuid));
    step("probe", world.Probe());
    step("format again", world.Format(type, kUuid));
    step("repeat, other UUID", world.Format(type, kOtherUuid, true));
    step("repeat", world.Format(type, kUuid, true));
    step("preen", world.Check(type, CheckMode::kPreen));
    step("report", world.Check(type, CheckMode::kReport));
    step("mount other type", world.MountAs(other));
    step("mount", world.MountAs(type));
    step("format mounted", world.Format(type, kUuid, true));
    step("report mounted", world.Check(type, CheckMode::kReport));
    step("flush mounted", world.Do(FlushDevice{world.device}));
    step("unmount", world.UnmountIt());
    step("mount ro", world.MountAs(type, {"ro"}));
    step("unmount", world.UnmountIt());
    step("unmount", world.UnmountIt());
    DeviceIdentity replaced = world.Identity();
    replaced.uuid = kOtherUuid;
    step("other filesystem", world.Do(Mount{type, world.device, world.target, {}, replaced}));
    step("check other", world.Do(CheckFilesystem{world.device, replaced, type, CheckMode::kPreen}));
    return text;
  }
};

TEST_P(DeviceDifferential, TheFakeDoesAsTheKernel) {
  const std::string type = GetParam();
  const LoopDevice device(Image());
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}};
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk");
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}};
  const std::string other = type == "xfs" ? "btrfs" : "xfs";
  const std::string happened = LifeOfADevice(real, type, other);
  EXPECT_EQ(LifeOfADevice(fake, type, other), happened);
  EXPECT_THAT(happened, ::testing::HasSubstr("\nformat: done\n"));
}

TEST_P(DeviceDifferential, AReadOnlyDevice) {
  const std::string type = GetParam();
  const std::string image = Image();
  Mkfs(type, image);
  const LoopDevice device(image, true);
  ASSERT_TRUE(device.valid());
  World real{*local_, device.path(), {scratch(), "mnt"}};
  FakeDevice state;
  state.read_only = true;
  state.fs_type = type;
  state.usage = "filesystem";
  state.identity = real.Identity();
  FakeKernel kernel;
  kernel.AddDirectory("/scratch/mnt");
  kernel.AddDevice("/dev/disk", state);
  World fake{kernel, "/dev/disk", {"/scratch", "mnt"}};
  EXPECT_EQ(fake.Probe(), real.Probe());
  EXPECT_EQ(fake.MountAs(type), real.MountAs(type));
  EXPECT_EQ(fake.Format(type, kUuid), real.Format(type, kUuid));
  EXPECT_EQ(fake.MountAs(type, {"ro"}), real.MountAs(type, {"ro"}));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, DeviceDifferential,
                         ::testing::Values("ext2", "ext3", "ext4", "xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

}  // namespace
}  // namespace volumed
