// The count of what was written to a real device, by which a copy of it is told from a mixture.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "integration/mounter/block_mount_fixture.h"
#include "integration/partitions.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

constexpr int64_t kDiskBytes = int64_t{64} << 20;
constexpr size_t kBlock = 4096;

class DeviceWritesTest : public BlockMountTest {
 protected:
  void SetUp() override {
    BlockMountTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    disk_ = std::make_unique<LoopDevice>(Image("image", kDiskBytes));
    ASSERT_TRUE(disk_->valid());
  }
  void TearDown() override {
    disk_.reset();
    BlockMountTest::TearDown();
  }
  std::string CountOf(const std::string& device) {
    const auto found =
        local_->Call(IdentifyDevice{.path = HostPath(device), .count_writes = true}, {});
    EXPECT_TRUE(found.ok()) << found.error().ToString();
    return found.ok() ? found->writes : "";
  }
  // Past the cache, so that it is one write of the device.
  static void Write(const std::string& device, off_t at) {
    const Descriptor opened(::open(device.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC));
    ASSERT_TRUE(opened.valid());
    const std::unique_ptr<void, void (*)(void*)> block(std::aligned_alloc(kBlock, kBlock),
                                                       std::free);
    std::fill_n(static_cast<char*>(block.get()), kBlock, 'x');
    ASSERT_EQ(::pwrite(opened.get(), block.get(), kBlock, at), static_cast<ssize_t>(kBlock));
  }
  static void Read(const std::string& device) {
    std::vector<char> bytes(1 << 20);
    std::ifstream(device).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  // Sectors that were written, as sysfs says of the device.
  static int64_t WrittenSectors(const std::string& device) {
    std::ifstream file("/sys/class/block" + device.substr(device.rfind('/')) + "/stat");
    int64_t sectors = -1;
    for (int field = 0; field <= 6; ++field) file >> sectors;
    return sectors;
  }

  std::unique_ptr<LoopDevice> disk_;
};

TEST_F(DeviceWritesTest, WhatIsWrittenIsCountedAndWhatIsReadIsNot) {
  const std::string before = CountOf(disk_->path());
  ASSERT_NE(before, "");
  Read(disk_->path());
  EXPECT_EQ(CountOf(disk_->path()), before);
  Write(disk_->path(), 0);
  const std::string after = CountOf(disk_->path());
  EXPECT_NE(after, before);
  EXPECT_EQ(CountOf(disk_->path()), after);
}

// What lies in the cache of the device is of the past, for whoever asks.
TEST_F(DeviceWritesTest, WhatIsCachedIsWrittenBeforeItIsCounted) {
  const std::string before = CountOf(disk_->path());
  std::ofstream(disk_->path(), std::ios::in) << "cached";
  const std::string after = CountOf(disk_->path());
  EXPECT_NE(after, before);
  EXPECT_EQ(CountOf(disk_->path()), after);
}

// As much was written since its table was read again as before: the figures alone are the same.
TEST_F(DeviceWritesTest, APartitionsCountThatBeginsAnewIsAnotherOne) {
  const std::string& disk = disk_->path();
  const std::string partition = PartitionOf(disk, 1);
  ASSERT_TRUE(AddPartition(disk, 1, 1 << 20, 16 << 20));
  Write(partition, 0);
  const std::string before = CountOf(partition);
  const int64_t sectors = WrittenSectors(partition);
  EXPECT_EQ(CountOf(partition), before);
  ASSERT_TRUE(DropPartition(disk, 1));
  ASSERT_TRUE(AddPartition(disk, 1, 1 << 20, 16 << 20));
  Write(partition, kBlock);
  ASSERT_EQ(WrittenSectors(partition), sectors);
  EXPECT_NE(CountOf(partition), before);
  EXPECT_TRUE(DropPartition(disk, 1));
}

// A partition's writes are also the disk's.
TEST_F(DeviceWritesTest, ADiskCountsWhatIsWrittenToItsPartitions) {
  const std::string& disk = disk_->path();
  ASSERT_TRUE(AddPartition(disk, 1, 1 << 20, 16 << 20));
  const std::string before = CountOf(disk);
  Write(PartitionOf(disk, 1), 0);
  EXPECT_NE(CountOf(disk), before);
  EXPECT_TRUE(DropPartition(disk, 1));
}

}  // namespace
}  // namespace volumed
