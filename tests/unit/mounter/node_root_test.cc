#include "mounter/node_root.h"

#include <gtest/gtest.h>

#include "fakes/fake_kernel.h"
#include "mounter/host_directory.h"

namespace volumed {
namespace {

bool IsShared(const FakeKernel& kernel, const std::string& path) {
  for (const MountEntry& mount : kernel.Mounts()) {
    if (mount.mount_point != path) continue;
    for (const std::string& field : mount.propagation) {
      if (field.rfind("shared:", 0) == 0) return true;
    }
  }
  return false;
}

TEST(PrepareRootTest, MakesASharedRootWithItsDirectories) {
  FakeKernel kernel;
  ASSERT_TRUE(PrepareRoot(kernel, KubeletPaths("/var/lib/volumed"), {}).ok());
  EXPECT_EQ(kernel.Find("/var/lib/volumed").mode, 0750u);
  EXPECT_EQ(kernel.Find("/var/lib/volumed/pods").mode, 0750u);
  EXPECT_EQ(kernel.Find("/var/lib/volumed/plugins").mode, 0750u);
  EXPECT_EQ(kernel.Find("/var/lib/volumed/volumed").mode, 0700u);
  EXPECT_TRUE(IsShared(kernel, "/var/lib/volumed"));
}

TEST(PrepareRootTest, RestartsAddNoMounts) {
  FakeKernel kernel;
  const KubeletPaths paths("/r");
  ASSERT_TRUE(PrepareRoot(kernel, paths, {}).ok());
  const std::string after_first = kernel.DumpMounts();
  for (int restart = 0; restart < 20; ++restart) ASSERT_TRUE(PrepareRoot(kernel, paths, {}).ok());
  EXPECT_EQ(kernel.DumpMounts(), after_first);
}

TEST(PrepareRootTest, LeavesTheModeOfAnExistingRootAlone) {
  FakeKernel kernel;
  kernel.AddDirectory("/r", 0700);
  ASSERT_TRUE(PrepareRoot(kernel, KubeletPaths("/r"), {}).ok());
  EXPECT_EQ(kernel.Find("/r").mode, 0700u);
}

TEST(PrepareRootTest, RefusesARootThatIsNotCanonical) {
  for (const char* root : {"", "r", "/", "/r/", "//r", "/a//b", "/a/./b", "/a/../b"}) {
    FakeKernel kernel;
    const Status status = PrepareRoot(kernel, KubeletPaths(root), {});
    ASSERT_FALSE(status.ok()) << root;
    EXPECT_EQ(status.error().code(), Code::kInvalidArgument) << root;
    EXPECT_EQ(kernel.call_count(), 0u) << root;
  }
}

TEST(PrepareRootTest, RefusesARootBehindALink) {
  FakeKernel kernel;
  kernel.AddDirectory("/data/lib");
  kernel.AddSymlink("/var", "/data");
  const Status status = PrepareRoot(kernel, KubeletPaths("/var/lib/volumed"), {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(),
            "root directory \"/var/lib/volumed\" is not canonical: \"/var\" is a symbolic link");
  EXPECT_FALSE(kernel.Exists("/data/lib/volumed"));
}

TEST(MakeHostDirectoryTest, MakesAllMissingParents) {
  FakeKernel kernel;
  const auto made = MakeHostDirectory(kernel, "/a/b/c", 0755, {});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_TRUE(made->changed);
  for (const char* path : {"/a", "/a/b", "/a/b/c"})
    EXPECT_EQ(kernel.Find(path).mode, 0755u) << path;
}

TEST(MakeHostDirectoryTest, LeavesAnExistingDirectoryAlone) {
  FakeKernel kernel;
  kernel.AddDirectory("/a/b", 0700);
  const auto made = MakeHostDirectory(kernel, "/a/b", 0755, {});
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->changed);
  EXPECT_EQ(kernel.Find("/a/b").mode, 0700u);
}

TEST(MakeHostDirectoryTest, FollowsLinksAmongTheExistingParts) {
  FakeKernel kernel;
  kernel.AddDirectory("/run");
  kernel.AddSymlink("/var/run", "/run");
  ASSERT_TRUE(MakeHostDirectory(kernel, "/var/run/app/x", 0755, {}).ok());
  EXPECT_EQ(kernel.Find("/run/app/x").type, FileType::kDirectory);
}

TEST(MakeHostDirectoryTest, AFileInTheWayIsNamed) {
  FakeKernel kernel;
  kernel.AddFile("/a/b", "");
  const auto made = MakeHostDirectory(kernel, "/a/b", 0755, {});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), Code::kAlreadyExists);
  EXPECT_EQ(made.error().message(), "/a/b is not a directory");
}

}  // namespace
}  // namespace volumed
