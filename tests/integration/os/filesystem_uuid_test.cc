// The UUID of a real filesystem, mounted from a loop device.
#include "os/filesystem_uuid.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"

namespace volumed {
namespace {

constexpr int64_t kXfsDiskBytes = int64_t{320} << 20;  // mkfs.xfs makes nothing smaller than 300 MB
constexpr char kUuid[] = "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab";
constexpr char kUuidDigits[] = "0a1b2c3d4e5f4a6b8c7d0123456789ab";

class FilesystemUuidTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
  }
  // Of a directory of the filesystem that `mkfs` makes.
  std::string UuidOn(const std::string& fs_type, const std::string& mkfs) {
    const std::string image = scratch() + "/disk.img";
    const std::string place = scratch() + "/mnt";
    EXPECT_TRUE(MakeImage(image, kXfsDiskBytes));
    LoopDevice disk(image);
    EXPECT_TRUE(disk.valid());
    EXPECT_EQ(std::system((mkfs + " " + disk.path() + " >/dev/null 2>&1").c_str()), 0);
    EXPECT_TRUE(::mkdir(place.c_str(), 0755) == 0 || errno == EEXIST);
    EXPECT_EQ(::mount(disk.path().c_str(), place.c_str(), fs_type.c_str(), 0, nullptr), 0)
        << std::strerror(errno);
    EXPECT_TRUE(std::filesystem::create_directories(place + "/a/b"));
    const std::string uuid = FilesystemUuid(place + "/a/b");
    EXPECT_EQ(::umount(place.c_str()), 0);
    return uuid;
  }
};

TEST_F(FilesystemUuidTest, IsTheOneOnTheDisk) {
  EXPECT_EQ(UuidOn("ext4", std::string("mkfs.ext4 -q -U ") + kUuid), kUuidDigits);
  EXPECT_EQ(UuidOn("xfs", std::string("mkfs.xfs -q -f -m uuid=") + kUuid), kUuidDigits);
}

TEST_F(FilesystemUuidTest, IsNotKnownOfWhatHasNoneOnADisk) {
  const std::string place = scratch() + "/tmpfs";
  ASSERT_EQ(::mkdir(place.c_str(), 0755), 0);
  ASSERT_EQ(::mount("none", place.c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_EQ(FilesystemUuid(place), "");
  EXPECT_EQ(FilesystemUuid("/proc"), "");
  EXPECT_EQ(FilesystemUuid(scratch() + "/missing"), "");
}

}  // namespace
}  // namespace volumed
