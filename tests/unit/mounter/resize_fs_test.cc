#include "mounter/resize_fs.h"

#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

constexpr char kGrownDisk[] = "/dev/sdb";
constexpr int64_t kSmall = 1 << 20;

class ResizeFsTest : public ::testing::Test {
 protected:
  void PutFilesystem(const std::string& type, int64_t bytes) {
    FakeDevice device;
    device.fs_type = type;
    device.usage = "filesystem";
    device.fs_bytes = bytes;
    kernel_.AddDevice(request_.device, device);
  }
  int Growths() const { return kernel_.Device(request_.device).growths; }

  FakeKernel kernel_;
  ResizeFs resize_{kernel_};
  ResizeRequest request_{kGrownDisk, std::nullopt};
};

TEST_F(ResizeFsTest, AFilesystemOfEachTypeThatCanGrowAsksForItUntilItFillsItsDevice) {
  for (const char* type : {"ext3", "ext4", "xfs", "btrfs"}) {
    request_.device = std::string("/dev/") + type;
    PutFilesystem(type, kSmall);
    kernel_.AddDirectory("/mnt");
    ASSERT_TRUE(kernel_.Call(Mount{type, request_.device, {"/mnt", ""}, {}}, {}).ok());
    request_.mounted_at = SafePath{"/mnt", ""};
    EXPECT_TRUE(resize_.NeedResize(request_, {}).value()) << type;
    EXPECT_EQ(Growths(), 0) << type << " was only to be measured";
    const auto growth = resize_.Resize(request_, {});
    ASSERT_TRUE(growth.ok()) << growth.error().ToString();
    EXPECT_TRUE(growth->value().fills_device) << type;
    EXPECT_EQ(Growths(), 1) << type;
    EXPECT_FALSE(resize_.NeedResize(request_, {}).value()) << type;
    kernel_.UnmountBelow("/mnt");
  }
}

TEST_F(ResizeFsTest, WhatCannotGrowIsNamed) {
  PutFilesystem("vfat", kSmall);
  EXPECT_EQ(resize_.Resize(request_, {}).error().message(),
            "resize of format vfat is not supported for device /dev/sdb mounted at no place");
  kernel_.ChangeDevice(kGrownDisk, [](FakeDevice& device) {
    device.fs_type.clear();
    device.usage.clear();
    device.partition_table = "gpt";
  });
  EXPECT_EQ(resize_.Resize(request_, {}).error().message(),
            "resize of format unknown data, probably partitions is not supported for device "
            "/dev/sdb mounted at no place");
}

TEST_F(ResizeFsTest, ABlankDeviceHasNothingToGrow) {
  kernel_.AddDevice(kGrownDisk);
  EXPECT_EQ(resize_.Resize(request_, {}).value(), std::nullopt);
  EXPECT_FALSE(resize_.NeedResize(request_, {}).value());
}

TEST_F(ResizeFsTest, AReadOnlyDeviceIsRefusedOnlyIfItsFilesystemIsTooSmall) {
  PutFilesystem("ext4", kSmall);
  kernel_.ChangeDevice(kGrownDisk, [](FakeDevice& device) { device.read_only = true; });
  EXPECT_FALSE(resize_.NeedResize(request_, {}).value());
  const auto refused = resize_.Resize(request_, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  kernel_.ChangeDevice(kGrownDisk, [](FakeDevice& device) { device.fs_bytes = 0; });
  EXPECT_TRUE(resize_.Resize(request_, {}).ok());
}

TEST(ProvesSizeTest, ASizeThatIsJustReachedIsReached) {
  FilesystemGrowth growth;
  growth.device_bytes = 100;
  growth.after_bytes = 100;
  EXPECT_TRUE(ProvesSize(growth, 100));
  EXPECT_FALSE(ProvesSize(growth, 101));
  growth.device_bytes = 101;
  EXPECT_FALSE(ProvesSize(growth, 101)) << "the filesystem has less than its device";
  growth.fills_device = true;
  EXPECT_TRUE(ProvesSize(growth, 101)) << "no filesystem could have more of it";
}

TEST(GrowthTextTest, ASizeThatHasNotChangedIsToldOnce) {
  FilesystemGrowth growth;
  growth.fs_type = "ext4";
  growth.device_bytes = 3;
  growth.before_bytes = growth.after_bytes = 2;
  EXPECT_EQ(GrowthText(growth), "ext4 of 2 bytes on a device of 3 bytes");
  growth.before_bytes = 1;
  EXPECT_EQ(GrowthText(growth), "ext4 of 2 bytes (before: 1) on a device of 3 bytes");
}

}  // namespace
}  // namespace volumed
