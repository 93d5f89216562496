// Names and numbers of devices as sysfs has them.
#include "os/sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>

#include "unit/records/temp_directory.h"

namespace volumed {
namespace {

using ::testing::UnorderedElementsAre;

class SysfsTest : public ::testing::Test {
 protected:
  // A device as "slaves" and a btrfs's "devices" name it: by a link to its directory.
  void AddDevice(const std::string& name, const std::string& number) {
    std::filesystem::create_directories(At("block/" + name));
    std::ofstream(At("block/" + name + "/dev")) << number << "\n";
    std::filesystem::create_directories(At("devices"));
    std::filesystem::create_directory_symlink(At("block/" + name), At("devices/" + name));
  }
  std::string At(const std::string& place) const { return temp_.path() + "/" + place; }

  TempDirectory temp_;
};

// Disks of a btrfs were looked for as /dev/cciss!c0d0p1, which there is not, and counted as none.
TEST_F(SysfsTest, ADeviceWithASlashInItsNameWasNoneOfItsFilesystem) {
  AddDevice("sda", "8:0");
  AddDevice("cciss!c0d0p1", "104:1");
  EXPECT_THAT(BlockNumbersBelow(At("devices")),
              UnorderedElementsAre(makedev(8, 0), makedev(104, 1)));
  EXPECT_EQ(BlockNumberIn(At("devices/cciss!c0d0p1")), makedev(104, 1));
}

TEST_F(SysfsTest, WhatIsNoDeviceHasNoNumber) {
  std::filesystem::create_directories(At("devices/other"));
  AddDevice("odd", "no number");
  EXPECT_TRUE(BlockNumbersBelow(At("devices")).empty());
  EXPECT_TRUE(BlockNumbersBelow(At("missing")).empty());
  EXPECT_EQ(BlockNumberIn(At("missing")), std::nullopt);
}

TEST(SysfsNamesTest, ASlashIsAnExclamationMark) {
  EXPECT_EQ(NodeNameOf("cciss!c0d0p1"), "cciss/c0d0p1");
  EXPECT_EQ(SysfsNameOf("cciss/c0d0p1"), "cciss!c0d0p1");
  EXPECT_EQ(NodeNameOf("sda1"), "sda1");
}

}  // namespace
}  // namespace volumed
