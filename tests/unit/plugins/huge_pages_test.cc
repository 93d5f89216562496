#include "plugins/huge_pages.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugins/empty_dir.h"
#include "unit/plugins/plugin_test_base.h"

namespace volumed {
namespace {

constexpr char kPagesDir[] = "/r/pods/u1/volumes/kubernetes.io~empty-dir/v";

Quantity Of(const char* text) { return Quantity::Parse(text).value(); }

class HugePagesTest : public PluginTestBase {
 protected:
  static EmptyDirVolumeSource Huge(const std::string& medium = "HugePages") {
    return {.medium = medium, .size_limit = {}};
  }
  // A container that asks for pages of these sizes.
  void Ask(std::vector<std::string> sizes) {
    Container container;
    container.name = "c" + std::to_string(pod_.spec.containers.size());
    for (const std::string& size : sizes) {
      container.resources.requests["hugepages-" + size] = Of("1Gi");
    }
    pod_.spec.containers.push_back(container);
  }
  std::string PageSizeOption() {
    for (const MountEntry& mount : kernel_.Mounts()) {
      if (mount.mount_point == kPagesDir) return mount.fs_type + " " + mount.super_options.back();
    }
    return "not mounted";
  }
  std::string ErrorOf(const Status& status) { return status.ok() ? "" : status.error().message(); }
};

TEST_F(HugePagesTest, TheSizeIsWhatTheContainersAskFor) {
  Ask({"2Mi"});
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages").value(), Of("2Mi"));
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages-2Mi").value(), Of("2Mi"));
  EXPECT_FALSE(HugePageSizeOf(pod_, "HugePages-1Gi").ok());
  Ask({"1Gi"});
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages").error().message(),
            "medium: HugePages can't be used if container requests multiple huge page sizes");
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages-1Gi").value(), Of("1Gi"));
}

TEST_F(HugePagesTest, WithoutARequestThereAreNone) {
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages").error().message(),
            "medium HugePages: hugePages storage requested, but there is no resource request for "
            "huge pages");
  EXPECT_FALSE(HugePageSizeOf(pod_, "HugePages-bad").ok());
}

TEST_F(HugePagesTest, InitContainersThePodAndLimitsCountToo) {
  pod_.spec.resources.requests["hugepages-2Mi"] = Of("4Mi");
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages").value(), Of("2Mi"));
  pod_.spec.resources = {};
  Container init;
  init.resources.limits["hugepages-1Gi"] = Of("1Gi");
  pod_.spec.init_containers.push_back(init);
  EXPECT_EQ(HugePageSizeOf(pod_, "HugePages").value(), Of("1Gi"));
}

TEST_F(HugePagesTest, SetUpMountsAndTearDownTakesAway) {
  Ask({"1Gi"});
  MounterArgs args = WithGroup(2000);
  const Status status = SetUp1(Huge(), args);
  ASSERT_TRUE(status.ok()) << ErrorOf(status);
  EXPECT_EQ(PageSizeOption(), "hugetlbfs pagesize=1024M");
  EXPECT_EQ(kernel_.Find(kPagesDir).mode, 02777u);
  EXPECT_EQ(kernel_.Find(kPagesDir).gid, 2000u);
  const auto found = PluginFor(Huge()).ConstructVolumeSpec(
      SpecName("v"), world_.paths.GetPodVolumeDir(PodUid("u1"), kEmptyDirPluginName, SpecName("v")),
      {});
  EXPECT_EQ(found->spec.SourceAs<EmptyDirVolumeSource>()->medium, "HugePages");
  ASSERT_TRUE(SetUp1(Huge(), args).ok()) << "set up already";
  EXPECT_EQ(kernel_.Mounts().size(), 2u);
  ASSERT_TRUE(TearDown1(Huge()).ok());
  EXPECT_FALSE(kernel_.Exists(kPagesDir));
  EXPECT_EQ(kernel_.Mounts().size(), 1u);
}

TEST_F(HugePagesTest, AMountWithOtherPagesIsNotTaken) {
  Ask({"1Gi"});
  ASSERT_TRUE(SetUp1(Huge()).ok());
  pod_.spec.containers.clear();
  Ask({"2Mi"});
  EXPECT_EQ(ErrorOf(SetUp1(Huge())),
            std::string(kPagesDir) + " has huge pages of 1Gi mounted, not huge pages of 2Mi");
}

TEST_F(HugePagesTest, AnotherFilesystemIsNotTaken) {
  Ask({"2Mi"});
  kernel_.AddMount("ext4", "/dev/sdb", kPagesDir);
  EXPECT_EQ(ErrorOf(SetUp1(Huge())),
            std::string(kPagesDir) + " has another filesystem mounted, not huge pages of 2Mi");
}

TEST_F(HugePagesTest, AKernelWithoutThemSaysSo) {
  Ask({"16Ki"});
  const Status no_size = SetUp1(Huge());
  ASSERT_FALSE(no_size.ok());
  EXPECT_EQ(no_size.error().code(), Code::kUnimplemented);
  EXPECT_EQ(ErrorOf(no_size).find("this node's kernel has no huge pages of 16Ki"), 0u);
  pod_.spec.containers.clear();
  Ask({"2Mi"});
  kernel_.FailNext("Mount", ENODEV, Outcome::kNotApplied);
  EXPECT_EQ(ErrorOf(SetUp1(Huge())).find("this node's kernel has no hugetlbfs"), 0u);
  EXPECT_FALSE(kernel_.Exists("/r/pods/u1/plugins/kubernetes.io~empty-dir/v/ready"));
}

}  // namespace
}  // namespace volumed
