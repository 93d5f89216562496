// The anchor itself: what it serves, what it must not serve, and that it notices a swapped source.
#include "os/bind_anchor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "integration/mount_namespace_fixture.h"
#include "os/kernel_features.h"
#include "os/mount_table.h"
#include "os/safe_open.h"

namespace volumed {
namespace {

// The parameter: features to mask, none or the detached clone.
class BindAnchorTest : public MountNamespaceTest,
                       public ::testing::WithParamInterface<std::vector<std::string>> {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    features_ = ProbeKernelFeatures(GetParam()).value();
    if (!features_.mount_setattr) GTEST_SKIP() << "skipped: needs mount_setattr";
    for (const char* name : {"source", "other"}) {
      ASSERT_EQ(::mkdir((scratch() + "/" + name).c_str(), 0755), 0);
    }
  }

  bool Serves(BindAnchor& anchor, const std::string& relative) {
    const SafePath path{scratch(), relative};
    const Result<Descriptor> source = OpenSafePath(path, O_PATH);
    EXPECT_TRUE(source.ok());
    return source.ok() && anchor.Find(path, *source).valid();
  }

  KernelFeatures features_;
};
INSTANTIATE_TEST_SUITE_P(Features, BindAnchorTest,
                         ::testing::Values(std::vector<std::string>{},
                                           std::vector<std::string>{"open-tree-detached-clone"}));

TEST_P(BindAnchorTest, ServesTheAgentsOwnFilesystemOnly) {
  BindAnchor anchor(features_, scratch());
  EXPECT_TRUE(Serves(anchor, "source")) << anchor.disabled_reason();
  EXPECT_TRUE(Serves(anchor, ""));
  ASSERT_EQ(::mount("t", (scratch() + "/other").c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_FALSE(Serves(anchor, "other"));
  EXPECT_EQ(anchor.disabled_reason(), "");
}

TEST_P(BindAnchorTest, IsAttachedOnlyWhereADetachedOneCannotBeCloned) {
  BindAnchor anchor(features_, scratch());
  ASSERT_TRUE(Serves(anchor, "source"));
  const MountSnapshot table(ReadMountTable().value());
  const MountEntry* attached = table.FindTop(scratch() + "/.bind-anchor");
  EXPECT_EQ(attached != nullptr, !features_.open_tree_detached_clone);
  if (attached != nullptr) {
    EXPECT_TRUE(attached->propagation.empty());
  }
  // A second worker shares it.
  BindAnchor second(features_, scratch());
  EXPECT_TRUE(Serves(second, "source"));
  EXPECT_EQ(ReadMountTable()->size(), table.entries().size());
}

TEST_P(BindAnchorTest, DoesNotServeANameThatLeadsElsewhereNow) {
  BindAnchor anchor(features_, scratch());
  const SafePath path{scratch(), "source"};
  const Result<Descriptor> source = OpenSafePath(path, O_PATH);
  ASSERT_TRUE(source.ok());
  ASSERT_EQ(::rename((scratch() + "/source").c_str(), (scratch() + "/moved").c_str()), 0);
  EXPECT_FALSE(anchor.Find(path, *source).valid());
  ASSERT_EQ(::symlink("moved", (scratch() + "/source").c_str()), 0);
  EXPECT_FALSE(anchor.Find(path, *source).valid());
}

TEST_P(BindAnchorTest, FollowsARootThatBecameAMountPoint) {
  BindAnchor anchor(features_, scratch() + "/other");
  ASSERT_EQ(::mkdir((scratch() + "/other/inner").c_str(), 0755), 0);
  ASSERT_TRUE(Serves(anchor, "other/inner"));
  const std::string root = scratch() + "/other";
  ASSERT_EQ(::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr), 0);
  EXPECT_TRUE(Serves(anchor, "other/inner")) << anchor.disabled_reason();
}

TEST_P(BindAnchorTest, SaysWhyItServesNothing) {
  BindAnchor none(features_, "");
  EXPECT_FALSE(Serves(none, "source"));
  EXPECT_NE(none.disabled_reason(), "");
  KernelFeatures old = features_;
  old.mount_setattr = false;
  BindAnchor masked(old, scratch());
  EXPECT_FALSE(Serves(masked, "source"));
  EXPECT_NE(masked.disabled_reason().find("mount_setattr"), std::string::npos);
}

}  // namespace
}  // namespace volumed
