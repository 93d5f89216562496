// Filesystems that are made larger, on real loop devices: mounted and not, twice, read-only,
// damaged, and where the kernel refuses it.
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>

#include <fstream>

#include "integration/mounter/block_mount_fixture.h"
#include "mounter/resize_fs.h"
#include "os/filesystem_geometry.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGrownBytes = kImageBytes * 3 / 2;

class GrowFilesystemTest : public BlockMountTest {
 protected:
  void Enlarge(const LoopDevice& device, int64_t size_bytes = kGrownBytes) {
    ASSERT_EQ(::truncate(Path("image").c_str(), size_bytes), 0);
    const Descriptor fd(::open(device.path().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::ioctl(fd.get(), LOOP_SET_CAPACITY, 0), 0);
  }
  ResizeRequest Mounted(const LoopDevice& device) const {
    return {device.path(), SafePath{scratch(), "mnt"}};
  }
  int64_t StatFsBytes() const {
    struct statfs info = {};
    EXPECT_EQ(::statfs(Path("mnt").c_str(), &info), 0);
    return static_cast<int64_t>(info.f_blocks) * info.f_bsize;
  }
  // Marked as the kernel marks a filesystem in which it found an error.
  static void SetErrorFlag(const std::string& image) {
    ASSERT_EQ(Shell("debugfs -w -R 'set_super_value state 3' " + image), 0);  // valid, errors
  }
};

class GrowMountedTest : public GrowFilesystemTest,
                        public ::testing::WithParamInterface<const char*> {};

TEST_P(GrowMountedTest, GrowsToTheWholeDeviceAndIsAskedTwice) {
  const LoopDevice device(Image());
  ASSERT_TRUE(Run(Request(device, GetParam())).status.ok());
  ResizeFs resize(*kernel_);
  EXPECT_FALSE(resize.NeedResize(Mounted(device), {}).value());
  std::ofstream(Path("mnt/kept")) << "kept";
  Enlarge(device);
  EXPECT_TRUE(resize.NeedResize(Mounted(device), {}).value());
  const int64_t before = StatFsBytes();
  auto growth = resize.Resize(Mounted(device), {});
  ASSERT_TRUE(growth.ok()) << growth.error().ToString();
  EXPECT_EQ((*growth)->device_bytes, kGrownBytes);
  EXPECT_LE((*growth)->before_bytes, kImageBytes);
  EXPECT_GT((*growth)->after_bytes, kGrownBytes - (1 << 20));
  EXPECT_TRUE(ProvesSize(**growth, kGrownBytes)) << GrowthText(**growth);
  EXPECT_GT(StatFsBytes(), before + (kGrownBytes - kImageBytes) * 9 / 10);
  growth = resize.Resize(Mounted(device), {});
  ASSERT_TRUE(growth.ok()) << growth.error().ToString();
  EXPECT_EQ((*growth)->before_bytes, (*growth)->after_bytes);
  std::string kept;
  std::ifstream(Path("mnt/kept")) >> kept;
  EXPECT_EQ(kept, "kept");
}

TEST_P(GrowMountedTest, IsNotGrownWhereItIsMountedReadOnlyOrSomethingElseIsMounted) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  const LoopDevice device(image);
  SafeMountRequest request = Request(device, GetParam());
  request.options = {"ro"};
  ASSERT_TRUE(Run(request).status.ok());
  Enlarge(device);
  ResizeFs resize(*kernel_);
  auto growth = resize.Resize(Mounted(device), {});
  ASSERT_FALSE(growth.ok());
  EXPECT_FALSE(growth.error().maybe_applied()) << growth.error().ToString();
  EXPECT_THAT(growth.error().message(), HasSubstr("grow " + std::string(GetParam())));
  growth = resize.Resize({device.path(), SafePath{scratch(), "mnt2"}}, {});
  ASSERT_FALSE(growth.ok());
  EXPECT_THAT(growth.error().message(), HasSubstr("another filesystem"));
}

TEST_P(GrowMountedTest, GrowsOnlyMounted) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  const LoopDevice device(image);
  Enlarge(device);
  ResizeFs resize(*kernel_);
  const auto growth = resize.Resize({device.path(), std::nullopt}, {});
  ASSERT_FALSE(growth.ok());
  EXPECT_THAT(growth.error().message(), HasSubstr("grows only while it is mounted"));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, GrowMountedTest, ::testing::Values("xfs", "btrfs"),
                         [](const auto& type) { return std::string(type.param); });

class GrowExtTest : public GrowFilesystemTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(GrowExtTest, IsGrownBeforeItsMount) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  const LoopDevice device(image);
  Enlarge(device);
  SafeMountRequest request = Request(device, GetParam());
  request.grow = true;
  SafeMountReport report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  ASSERT_TRUE(report.growth);
  EXPECT_EQ(report.growth->tool, "resize2fs");
  EXPECT_TRUE(ProvesSize(*report.growth, kGrownBytes)) << Text(report);
  EXPECT_THAT(Text(report), HasSubstr("FilesystemGrown: "));
  // And that is what is proven of it mounted, without a capability.
  ResizeFs resize(*kernel_);
  const auto growth = resize.Resize(Mounted(device), {});
  ASSERT_TRUE(growth.ok()) << growth.error().ToString();
  EXPECT_TRUE((*growth)->fills_device);
  Unmount();
  report = Run(request);
  EXPECT_TRUE(report.notices.empty()) << Text(report);
}

TEST_P(GrowExtTest, MountedNeedsACapabilityThatTheErrorNames) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  const LoopDevice device(image);
  ASSERT_TRUE(Run(Request(device, GetParam())).status.ok());
  Enlarge(device);
  ResizeFs resize(*kernel_);
  const auto growth = resize.Resize(Mounted(device), {});
  std::ifstream status("/proc/self/status");
  std::string line;
  uint64_t effective = 0;
  while (std::getline(status, line)) {
    if (line.rfind("CapEff:", 0) == 0) effective = std::stoull(line.substr(8), nullptr, 16);
  }
  constexpr int kSysResource = 24;
  if ((effective >> kSysResource & 1) != 0) {
    ASSERT_TRUE(growth.ok()) << growth.error().ToString();
    EXPECT_TRUE(ProvesSize(**growth, kGrownBytes));
    return;
  }
  ASSERT_FALSE(growth.ok());
  EXPECT_EQ(growth.error().sys_errno(), EPERM);
  EXPECT_EQ(growth.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(growth.error().maybe_applied());
  EXPECT_THAT(growth.error().message(), HasSubstr("CAP_SYS_RESOURCE"));
}

TEST_P(GrowExtTest, WithTheErrorFlagIsMountedAndNotGrown) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  SetErrorFlag(image);
  const LoopDevice device(image);
  Enlarge(device);
  SafeMountRequest request = Request(device, GetParam());
  request.fsck_policy = FsckPolicy::kNever;
  ASSERT_TRUE(Run(request).status.ok());
  ResizeFs resize(*kernel_);
  const auto growth = resize.Resize(Mounted(device), {});
  ASSERT_FALSE(growth.ok());
  EXPECT_FALSE(growth.error().maybe_applied());
  EXPECT_THAT(growth.error().message(), HasSubstr("the filesystem has errors"));
  EXPECT_THAT(growth.error().message(), HasSubstr("e2fsck -f"));
  Unmount();
  // Its next mount mends and grows it.
  request.grow = true;
  const SafeMountReport report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_THAT(Text(report), HasSubstr("FilesystemGrown: "));
}

TEST_P(GrowExtTest, DamageThatPreeningLeavesIsANoticeAndTheMountGoesOn) {
  const std::string image = Image();
  Mkfs(GetParam(), image);
  // An inode that claims a block which its bitmap calls free, twice.
  ASSERT_EQ(Shell("debugfs -w -R 'write /etc/hostname f' " + image), 0);
  ASSERT_EQ(Shell("debugfs -w -R 'set_inode_field f block[0] 1' " + image), 0);
  const LoopDevice device(image);
  Enlarge(device);
  SafeMountRequest request = Request(device, GetParam());
  request.fsck_policy = FsckPolicy::kNever;
  request.grow = true;
  const SafeMountReport report = Run(request);
  ASSERT_TRUE(report.status.ok()) << Text(report);
  EXPECT_THAT(Text(report), HasSubstr("FileSystemResizeFailed: "));
  EXPECT_THAT(Text(report), HasSubstr("'e2fsck -f -p' did not correct"));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, GrowExtTest, ::testing::Values("ext3", "ext4"),
                         [](const auto& type) { return std::string(type.param); });

TEST_F(GrowFilesystemTest, WhatCannotBeGrownIsNamed) {
  const std::string image = Image();
  const LoopDevice blank(image);
  ResizeFs resize(*kernel_);
  EXPECT_FALSE(resize.Resize({blank.path(), std::nullopt}, {}).value().has_value());
  EXPECT_FALSE(resize.NeedResize({blank.path(), std::nullopt}, {}).value());
  Mkfs("ext2", blank.path());
  const auto growth = resize.Resize({blank.path(), std::nullopt}, {});
  ASSERT_FALSE(growth.ok());
  EXPECT_THAT(growth.error().message(), HasSubstr("resize of format ext2 is not supported"));
}

TEST_F(GrowFilesystemTest, AnotherDeviceIsNotGrown) {
  const std::string image = Image();
  Mkfs("ext4", image);
  const LoopDevice device(image);
  DeviceIdentity expected = kernel_->Call(ProbeDevice{device.path()}, {}).value().identity;
  Enlarge(device);
  const auto growth = kernel_->Call(GrowFilesystem{device.path(), expected, "ext4"}, {});
  ASSERT_FALSE(growth.ok());
  EXPECT_THAT(growth.error().message(), HasSubstr("is not the one that was probed: its size"));
}

}  // namespace
}  // namespace volumed
