#include "mounter/mount_refs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"

namespace volumed {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class MountRefsTest : public ::testing::Test {
 protected:
  MountRefsTest() {
    for (const char* place : {"/disk", "/a", "/b", "/c"}) kernel_.AddDirectory(place);
    kernel_.AddMount("ext4", "/dev/sdb", "/disk");
    kernel_.AddDirectory("/disk/sub");
  }
  void Bind(const std::string& source, const std::string& target) {
    ASSERT_TRUE(kernel_.Call(BindMount{{source, ""}, {target, ""}}, {}).ok());
  }

  FakeKernel kernel_;
};

TEST_F(MountRefsTest, WhereElseADirectoryShowsIsFound) {
  EXPECT_THAT(FindMountRefs(kernel_, "/disk", {}).value(), IsEmpty());
  Bind("/disk", "/a");
  Bind("/disk/sub", "/b");
  EXPECT_THAT(FindMountRefs(kernel_, "/disk/sub", {}).value(), UnorderedElementsAre("/b"));
  EXPECT_THAT(FindMountRefs(kernel_, "/disk", {}).value(), UnorderedElementsAre("/a"));
  EXPECT_THAT(FindMountRefs(kernel_, "/a", {}).value(), UnorderedElementsAre("/disk"));
}

TEST_F(MountRefsTest, APathIsAPartOfTheFilesystemThatIsMountedAroundIt) {
  const struct {
    const char* root;
    const char* mount_point;
    const char* path;
    const char* part;
  } cases[] = {
      {"/", "/", "/", "/"},          {"/", "/", "/x", "/x"},           {"/sub", "/", "/", "/sub"},
      {"/sub", "/", "/x", "/sub/x"}, {"/", "/m", "/m", "/"},           {"/", "/m", "/m/x", "/x"},
      {"/sub", "/m", "/m", "/sub"},  {"/sub", "/m", "/m/x", "/sub/x"},
  };
  for (const auto& c : cases) {
    MountEntry mount;
    mount.device_major = 8;
    mount.device_minor = 1;
    mount.root = c.root;
    mount.mount_point = c.mount_point;
    EXPECT_EQ(PartAt(mount, c.path), (FilesystemPart{8, 1, c.part})) << c.root << " " << c.path;
  }
}

TEST_F(MountRefsTest, OfMountsUponEachOtherTheUpperOneIsAtThePath) {
  EXPECT_FALSE(FindMountAt(kernel_, "/a", {}).value().has_value());
  Bind("/disk", "/a");
  kernel_.AddMount("tmpfs", "tmpfs", "/a");
  const auto found = FindMountAt(kernel_, "/a", {}).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->fs_type, "tmpfs");
  EXPECT_FALSE(FindMountAt(kernel_, "/disk/sub", {}).value().has_value()) << "it lies in a mount";
}

TEST(TakesNoWritesTest, AMountOrItsFilesystemMayBeReadOnly) {
  MountEntry mount;
  mount.super_options = {"rw", "errors=remount-ro"};
  EXPECT_FALSE(TakesNoWrites(mount));
  mount.super_options = {"ro"};
  EXPECT_TRUE(TakesNoWrites(mount));
  mount.super_options = {"rw"};
  mount.options = {"nosuid", "ro"};
  EXPECT_TRUE(TakesNoWrites(mount));
}

}  // namespace
}  // namespace volumed
