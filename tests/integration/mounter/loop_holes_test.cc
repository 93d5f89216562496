// That a blank disk is known by the holes of its file, on each filesystem that tells them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/descriptor.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "os/loop_holes.h"

namespace volumed {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kImageBytes = 64 * kMiB;

class LoopHolesTest : public MountNamespaceTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    const std::string type = GetParam();
    ASSERT_EQ(::mkdir(Path("pool").c_str(), 0755), 0);
    if (type != "tmpfs") {
      ASSERT_TRUE(MakeImage(Path("disk"), 512 * kMiB));
      ASSERT_EQ(std::system(("mkfs." + type + " -q " + Path("disk") + " >/dev/null").c_str()), 0);
      disk_ = std::make_unique<LoopDevice>(Path("disk"));
      ASSERT_EQ(::mount(disk_->path().c_str(), Path("pool").c_str(), type.c_str(), 0, nullptr), 0);
    }
    ASSERT_TRUE(MakeImage(image(), kImageBytes));
  }
  void TearDown() override {
    if (disk_) ::umount2(Path("pool").c_str(), MNT_DETACH);
    disk_.reset();
    MountNamespaceTest::TearDown();
  }

  std::string Path(const std::string& name) const { return scratch() + "/" + name; }
  std::string image() const { return Path("pool/image"); }
  static bool IsOneHoleOf(const LoopDevice& loop, int flags = O_RDONLY) {
    return IsOneHole(Descriptor(::open(loop.path().c_str(), flags | O_CLOEXEC)).get());
  }
  static void Write(const std::string& path, int64_t at, int flags = 0) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | flags));
    ASSERT_EQ(::pwrite(file.get(), "x", 1, at), 1);
  }

  std::unique_ptr<LoopDevice> disk_;
};

TEST_P(LoopHolesTest, AFileThatNobodyHasWrittenToIsOneHole) {
  const LoopDevice loop(image());
  EXPECT_TRUE(IsOneHoleOf(loop));
  EXPECT_TRUE(IsOneHoleOf(loop, O_RDWR));
}

TEST_P(LoopHolesTest, AnAllocatedFileIsOne) {
  {
    const Descriptor file(::open(image().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fallocate(file.get(), 0, 0, kImageBytes), 0);
  }
  EXPECT_TRUE(IsOneHoleOf(LoopDevice(image())));
}

TEST_P(LoopHolesTest, AByteThatIsInTheCacheOfTheDeviceAloneIsFound) {
  const LoopDevice loop(image());
  const Descriptor device(::open(loop.path().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::pwrite(device.get(), "x", 1, 37 * kMiB + 5), 1);
  EXPECT_FALSE(IsOneHole(device.get()));
  EXPECT_FALSE(IsOneHoleOf(loop));
}

TEST_P(LoopHolesTest, AByteThatIsInTheCacheOfTheFileAloneIsFound) {
  const LoopDevice loop(image());
  Write(image(), kImageBytes - 1);
  EXPECT_FALSE(IsOneHoleOf(loop));
}

TEST_P(LoopHolesTest, AByteInAFileThatWasAllocatedIsFound) {
  {
    const Descriptor file(::open(image().c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fallocate(file.get(), 0, 0, kImageBytes), 0);
  }
  const LoopDevice loop(image());
  Write(loop.path(), 37 * kMiB, O_SYNC);
  EXPECT_FALSE(IsOneHoleOf(loop));
}

TEST_P(LoopHolesTest, ZerosThatWereWrittenAreRead) {
  const LoopDevice loop(image());
  const Descriptor file(::open(image().c_str(), O_RDWR | O_CLOEXEC));
  const std::array<char, 4096> zeros{};
  ASSERT_EQ(::pwrite(file.get(), zeros.data(), zeros.size(), 0), 4096);
  EXPECT_FALSE(IsOneHoleOf(loop));
}

TEST_P(LoopHolesTest, OfAnotherFileAtThePathNothingIsConcluded) {
  const LoopDevice loop(image());
  Write(loop.path(), 0, O_SYNC);
  ASSERT_EQ(::rename(image().c_str(), Path("pool/old").c_str()), 0);
  ASSERT_TRUE(MakeImage(image(), kImageBytes));
  EXPECT_FALSE(IsOneHoleOf(loop));
  ASSERT_EQ(::unlink(Path("pool/old").c_str()), 0);
  EXPECT_FALSE(IsOneHoleOf(loop));
}

TEST_P(LoopHolesTest, OfAPartOfAFileNothingIsConcluded) {
  const LoopDevice loop(image());
  const Descriptor device(::open(loop.path().c_str(), O_RDWR | O_CLOEXEC));
  loop_info64 info = {};
  ASSERT_EQ(::ioctl(device.get(), LOOP_GET_STATUS64, &info), 0);
  info.lo_offset = kMiB;
  ASSERT_EQ(::ioctl(device.get(), LOOP_SET_STATUS64, &info), 0);
  EXPECT_FALSE(IsOneHole(device.get()));
}

INSTANTIATE_TEST_SUITE_P(Filesystems, LoopHolesTest,
                         ::testing::Values("ext4", "xfs", "btrfs", "tmpfs"),
                         [](const auto& type) { return std::string(type.param); });

TEST(LoopHoles, WhatIsNoLoopDeviceIsNone) {
  EXPECT_FALSE(IsOneHole(Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get()));
  EXPECT_FALSE(IsOneHole(-1));
}

}  // namespace
}  // namespace volumed
