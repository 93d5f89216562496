#include "os/filesystem_geometry.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace volumed {
namespace {

// A superblock of ext in a file in memory. Source: Linux Documentation/filesystems/ext4/super.rst.
class ExtDevice {
 public:
  ExtDevice() : fd_(::memfd_create("ext", MFD_CLOEXEC)), bytes_(4096, '\0') {
    Put(0x38, 2, 0xEF53);
    Put(0x18, 4, 0);     // blocks of 1024 bytes
    Put(0x20, 4, 8192);  // blocks of a group
    Put(0x04, 4, 31 * 8192 + 1);
    Put(0x28, 4, 8);  // inodes of a group
  }
  void Put(size_t at, size_t size, uint64_t value) {
    for (size_t i = 0; i < size; ++i) {
      bytes_[1024 + at + i] = static_cast<char>(value >> (8 * i) & 0xff);
    }
  }
  Result<FilesystemGeometry> Read(size_t device_bytes = 4096) {
    EXPECT_EQ(::ftruncate(fd_.get(), 0), 0);
    EXPECT_EQ(::pwrite(fd_.get(), bytes_.data(), device_bytes, 0),
              static_cast<ssize_t>(device_bytes));
    return ReadGeometry(FilesystemFamily::kExt, fd_.get(), "look");
  }

 private:
  Descriptor fd_;
  std::string bytes_;
};

// The numbers are those of resize2fs: a group with less than 50 blocks beside its tables is not
// made.
TEST(ExtGeometryTest, ALastGroupThatHoldsLittleMoreThanItsTablesIsNoGrowth) {
  ExtDevice device;
  device.Put(0xCE, 2, 5);  // blocks for the descriptors of groups to come
  const Result<FilesystemGeometry> read = device.Read();
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  EXPECT_EQ(read->block_bytes, 1024);
  EXPECT_EQ(read->size_bytes, (31 * 8192 + 1) * int64_t{1024});
  EXPECT_FALSE(read->has_errors);
  // 3, 2 of inodes, 2 of the descriptors of 32 groups, those 5, 50, and one cluster.
  const int64_t growth = (3 + 2 + 2 + 5 + 50 + 1) * 1024;
  EXPECT_EQ(read->smallest_growth_bytes, growth);
  EXPECT_TRUE(FillsDevice(*read, read->size_bytes + growth - 1));
  EXPECT_FALSE(FillsDevice(*read, read->size_bytes + growth));
}

TEST(ExtGeometryTest, LargeBlocksInodesAndNumbersAreRead) {
  ExtDevice device;
  device.Put(0x18, 4, 2);     // blocks of 4096 bytes
  device.Put(0x1C, 4, 4);     // clusters of 16384
  device.Put(0x4C, 4, 1);     // a revision that says how large an inode is
  device.Put(0x58, 2, 256);   //
  device.Put(0x28, 4, 8192);  // inodes of a group: 512 blocks
  device.Put(0x60, 4, 0x80);  // 64 bits
  device.Put(0x150, 4, 1);    // the upper half of the number of blocks
  device.Put(0x3A, 2, 2);     // the kernel found errors
  const Result<FilesystemGeometry> read = device.Read();
  ASSERT_TRUE(read.ok()) << read.error().ToString();
  const int64_t blocks = (int64_t{1} << 32) + 31 * 8192 + 1;
  EXPECT_EQ(read->size_bytes, blocks * 4096);
  EXPECT_TRUE(read->has_errors);
  const int64_t descriptors = (blocks / 8192 + 1) * 64 / 4096 + 1;
  EXPECT_EQ(read->smallest_growth_bytes, (3 + 513 + descriptors + 50) * 4096 + 16384);
}

TEST(ExtGeometryTest, WhatIsNoSuperblockIsNone) {
  ExtDevice device;
  EXPECT_EQ(device.Read(1500).error().code(), Code::kDataLoss) << "the device ends in it";
  const struct {
    size_t at, size;
    uint64_t bad, good;
  } fields[] = {{0x38, 2, 0xEF54, 0xEF53}, {0x18, 4, 7, 6}, {0x1C, 4, 21, 20}, {0x20, 4, 0, 8192}};
  for (const auto& field : fields) {
    device.Put(field.at, field.size, field.bad);
    EXPECT_EQ(device.Read().error().code(), Code::kDataLoss) << field.at;
    device.Put(field.at, field.size, field.good);
    EXPECT_TRUE(device.Read().ok()) << field.at;
  }
}

TEST(FilesystemFamilyTest, TypesOfExtAreOfOneFamilyAndUnknownOnesOfNone) {
  for (const char* type : {"ext2", "ext3", "ext4"}) {
    EXPECT_EQ(FilesystemFamilyOf(type), FilesystemFamily::kExt) << type;
  }
  EXPECT_EQ(FilesystemFamilyOf("xfs"), FilesystemFamily::kXfs);
  EXPECT_EQ(FilesystemFamilyOf("btrfs"), FilesystemFamily::kBtrfs);
  EXPECT_EQ(FilesystemFamilyOf("vfat"), std::nullopt);
}

}  // namespace
}  // namespace volumed
