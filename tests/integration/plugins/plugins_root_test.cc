// Every in-tree volume type on the real kernel: content, modes, owners, mounts, metrics, refresh,
// and a tear-down that leaves nothing; with the newer kernel features and without.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "fakes/must.h"
#include "fakes/target_of.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/node_root.h"
#include "mounter/subpath.h"
#include "os/local_kernel.h"
#include "plugins/in_tree_plugins.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

struct Setting {
  const char* name;
  std::vector<std::string> masked;
};

class PluginsRootTest : public MountNamespaceTest, public ::testing::WithParamInterface<Setting> {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    root_ = scratch() + "/root";
    auto kernel = LocalKernel::Create({GetParam().masked, root_});
    ASSERT_TRUE(kernel.ok()) << kernel.error().ToString();
    kernel_ = std::move(kernel).value();
    const auto features = kernel_->Call(ProbeFeatures{}, {});
    ASSERT_TRUE(features.ok());
    world_ = std::make_unique<PluginWorld>(*kernel_, root_, *features);
    const Status prepared = PrepareRoot(*kernel_, world_->paths, {});
    ASSERT_TRUE(prepared.ok()) << prepared.error().ToString();
    const Status init = mgr_.InitPlugins(MakeInTreePlugins(), world_->host);
    ASSERT_TRUE(init.ok()) << init.error().ToString();
    world_->objects.PutSecret("db", {{"user", "root"}, {"password", "hunter2"}});
    world_->objects.PutConfigMap("conf", {{"a", "1"}, {"b", "2"}});
    ::mkdir((root_ + "/pods/u1").c_str(), 0750);
    mounts_before_ = MountCount();
  }

  void TearDown() override {
    // A child of the root that a failed test left behind must not keep the scratch busy.
    if (!root_.empty()) ::umount2(root_.c_str(), MNT_DETACH);
    world_.reset();
    kernel_.reset();
    MountNamespaceTest::TearDown();
  }

  VolumePlugin& PluginFor(const VolumeSource& source) {
    return *mgr_.FindPluginBySpec(Spec(source)).value();
  }
  static VolumeSpec Spec(const VolumeSource& source) {
    return VolumeSpec::FromVolume(PodVolume{"v", source});
  }
  std::unique_ptr<Mounter> NewMounter(const VolumeSource& source) {
    VolumePlugin& plugin = PluginFor(source);
    return plugin.NewMounter(Spec(source), TargetOf(world_->paths, plugin, Spec(source), pod_))
        .value();
  }
  void Set(const VolumeSource& source, const MounterArgs& args = {}) {
    const auto mounter = NewMounter(source);
    const Status status = mounter->SetUp(args);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    path_ = mounter->GetPath();
  }
  void Refresh(const VolumeSource& source, MounterArgs args = {}) {
    args.is_remount = true;
    Set(source, args);
  }
  // Tears down and checks that nothing is left of the volume.
  void Leave(const VolumeSource& source) {
    const auto unmounter = PluginFor(source).NewUnmounter(SpecName("v"), PodUid("u1")).value();
    const Status status = unmounter->TearDown({});
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    EXPECT_EQ(MountCount(), mounts_before_);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_ + "/pods/u1")) {
      EXPECT_TRUE(entry.is_directory()) << entry.path();
      EXPECT_NE(entry.path().filename(), "v") << entry.path();
      EXPECT_NE(entry.path().filename(), "wrapped_v") << entry.path();
    }
  }

  struct stat StatOf(const std::string& path) const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return info;
  }
  mode_t Mode(const std::string& path) const { return StatOf(path).st_mode & 07777; }
  bool OnTmpfs(const std::string& path) const {
    struct stat here = StatOf(path);
    struct stat parent = StatOf(path + "/..");
    struct statfs fs {};
    EXPECT_EQ(::statfs(path.c_str(), &fs), 0);
    return here.st_dev != parent.st_dev && fs.f_type == 0x01021994;
  }
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::vector<MountEntry> Mounts() { return Must(kernel_->Call(ListMounts{}, {})).mounts; }
  // The mounts of pods, and the root's own: a kernel without detached clones has the anchor that
  // binds come from attached somewhere else.
  size_t MountCount() {
    size_t count = 0;
    for (const MountEntry& mount : Mounts()) {
      count += mount.mount_point == root_ || mount.mount_point.rfind(root_ + "/pods/", 0) == 0;
    }
    return count;
  }
  bool MountHas(const std::string& path, const std::string& option) {
    for (const MountEntry& mount : Mounts()) {
      if (mount.mount_point != path) continue;
      return std::count(mount.super_options.begin(), mount.super_options.end(), option) > 0;
    }
    return false;
  }

  std::string root_;
  std::unique_ptr<LocalKernel> kernel_;
  std::unique_ptr<PluginWorld> world_;
  VolumePluginMgr mgr_;
  Pod pod_ = MakePod();
  std::string path_;
  size_t mounts_before_ = 0;
};

TEST_P(PluginsRootTest, EmptyDirOnDisk) {
  const VolumeSource source = EmptyDirVolumeSource();
  Set(source, WithGroup(2000));
  EXPECT_EQ(path_, root_ + "/pods/u1/volumes/kubernetes.io~empty-dir/v");
  EXPECT_EQ(Mode(path_), 02777u);
  EXPECT_EQ(StatOf(path_).st_gid, 2000u);
  EXPECT_EQ(MountCount(), mounts_before_);
  std::ofstream(path_ + "/work") << std::string(1 << 16, 'x');
  const auto metrics = NewMounter(source)->GetMetrics({});
  ASSERT_TRUE(metrics.ok()) << metrics.error().ToString();
  EXPECT_GE(*metrics->used_bytes, 1 << 16);
  EXPECT_EQ(*metrics->inodes_used, 2);
  EXPECT_GT(*metrics->capacity_bytes, 0);
  Set(source, WithGroup(2000));
  EXPECT_EQ(ReadAll(path_ + "/work").size(), size_t{1} << 16);
  Leave(source);
}

TEST_P(PluginsRootTest, EmptyDirInMemory) {
  EmptyDirVolumeSource memory{.medium = "Memory", .size_limit = {}};
  memory.size_limit = Quantity::FromBytes(int64_t{4} << 20);
  Set(memory, WithGroup(2000));
  EXPECT_TRUE(OnTmpfs(path_));
  EXPECT_TRUE(MountHas(path_, "size=4096k"));
  EXPECT_EQ(MountHas(path_, "noswap"), world_->node.GetKernelFeatures().tmpfs_noswap);
  EXPECT_EQ(StatOf(path_).st_gid, 2000u);
  const auto metrics = NewMounter(memory)->GetMetrics({});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(*metrics->capacity_bytes, int64_t{4} << 20);
  Set(memory, WithGroup(2000));
  EXPECT_EQ(MountCount(), mounts_before_ + 1);
  Leave(memory);
}

TEST_P(PluginsRootTest, ANestedMountOfSomebodyElseSurvivesTheTearDown) {
  const VolumeSource source = EmptyDirVolumeSource();
  Set(source);
  ASSERT_EQ(::mkdir((path_ + "/mnt").c_str(), 0755), 0);
  ASSERT_EQ(::mount("foreign", (path_ + "/mnt").c_str(), "tmpfs", 0, nullptr), 0);
  std::ofstream(path_ + "/mnt/precious") << "data";
  std::ofstream(path_ + "/own") << "x";
  const auto unmounter = PluginFor(source).NewUnmounter(SpecName("v"), PodUid("u1")).value();
  const Status refused = unmounter->TearDown({});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("mnt"), std::string::npos);
  EXPECT_EQ(ReadAll(path_ + "/mnt/precious"), "data");
  ASSERT_EQ(::umount2((path_ + "/mnt").c_str(), 0), 0);
  Leave(source);
}

TEST_P(PluginsRootTest, Secret) {
  SecretVolumeSource source;
  source.secret_name = "db";
  source.default_mode = 0400;
  Set(source, WithGroup(2000));
  EXPECT_TRUE(OnTmpfs(path_));
  EXPECT_EQ(ReadAll(path_ + "/password"), "hunter2");
  EXPECT_EQ(Mode(path_ + "/password"), 0440u);
  EXPECT_EQ(StatOf(path_ + "/password").st_gid, 2000u);
  EXPECT_EQ(StatOf(path_ + "/password").st_uid, 0u);
  EXPECT_EQ(StatOf(path_).st_gid, 2000u);
  EXPECT_EQ(Mode(path_), 03777u);
  const auto metrics = NewMounter(source)->GetMetrics({});
  ASSERT_TRUE(metrics.ok());
  EXPECT_GT(*metrics->inodes_used, 3);

  const auto data = std::filesystem::read_symlink(path_ + "/..data");
  Refresh(source, WithGroup(2000));
  EXPECT_EQ(std::filesystem::read_symlink(path_ + "/..data"), data);
  world_->objects.PutSecret("db", {{"user", "admin"}});
  Refresh(source, WithGroup(2000));
  EXPECT_NE(std::filesystem::read_symlink(path_ + "/..data"), data);
  EXPECT_EQ(ReadAll(path_ + "/user"), "admin");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path_ + "/password")));
  world_->objects.RemoveAll();
  MounterArgs remount;
  remount.is_remount = true;
  EXPECT_FALSE(NewMounter(source)->SetUp(remount).ok());
  EXPECT_EQ(ReadAll(path_ + "/user"), "admin");
  Leave(source);
}

TEST_P(PluginsRootTest, ConfigMap) {
  ConfigMapVolumeSource source;
  source.name = "conf";
  source.items = {{.key = "a", .path = "etc/app/a.conf", .mode = 0600},
                  {.key = "b", .path = "b", .mode = {}}};
  MounterArgs args;
  args.nested_mount_points = {"nested/deep"};
  Set(source, args);
  EXPECT_FALSE(OnTmpfs(path_));
  EXPECT_EQ(Mode(path_), 0777u);
  EXPECT_EQ(ReadAll(path_ + "/etc/app/a.conf"), "1");
  EXPECT_EQ(Mode(path_ + "/etc/app/a.conf"), 0600u);
  EXPECT_EQ(Mode(path_ + "/b"), 0644u);
  EXPECT_EQ(Mode(path_ + "/nested/deep"), 0755u);
  source.items[0].mode = 0640;
  Refresh(source, args);
  EXPECT_EQ(Mode(path_ + "/etc/app/a.conf"), 0640u);
  // What an agent that died between its two steps leaves behind.
  ASSERT_EQ(::symlink("..nowhere", (path_ + "/..data_tmp").c_str()), 0);
  world_->objects.PutConfigMap("conf", {{"a", "new"}, {"b", "2"}});
  Refresh(source, args);
  EXPECT_EQ(ReadAll(path_ + "/etc/app/a.conf"), "new");
  Leave(source);
}

TEST_P(PluginsRootTest, DownwardApi) {
  DownwardApiVolumeSource source;
  source.items.push_back({.path = "labels",
                          .field_ref = ObjectFieldSelector{"v1", "metadata.labels"},
                          .resource_field_ref = {},
                          .mode = 0444});
  Set(source);
  EXPECT_TRUE(OnTmpfs(path_));
  EXPECT_EQ(ReadAll(path_ + "/labels"), "app=\"web\"");
  EXPECT_EQ(Mode(path_ + "/labels"), 0444u);
  pod_.metadata.labels["tier"] = "front";
  Refresh(source);
  EXPECT_EQ(ReadAll(path_ + "/labels"), "app=\"web\"\ntier=\"front\"");
  Leave(source);
}

TEST_P(PluginsRootTest, ProjectedWithAToken) {
  // Not by the link "token": it belongs to the pod's user in a sticky directory, where
  // fs.protected_symlinks keeps all other users, root too, from following it.
  const std::string kToken = "/..data/token";
  ProjectedVolumeSource source;
  ServiceAccountTokenProjection token;
  token.path = "token";
  source.sources.push_back(token);
  source.sources.push_back(SecretProjection{"db", {}, false});
  MounterArgs args = WithGroup(2000);
  args.fs_user = 1000;
  Set(source, args);
  EXPECT_TRUE(OnTmpfs(path_));
  EXPECT_EQ(ReadAll(path_ + kToken), "token-1");
  EXPECT_EQ(Mode(path_ + kToken), 0640u);
  EXPECT_EQ(StatOf(path_ + kToken).st_uid, 1000u);
  EXPECT_EQ(StatOf(path_ + kToken).st_gid, 2000u);
  EXPECT_EQ(StatOf(path_ + "/user").st_uid, 0u);
  world_->tokens.issued = 2;
  Refresh(source, args);
  EXPECT_EQ(ReadAll(path_ + kToken), "token-2");
  Leave(source);
}

TEST_P(PluginsRootTest, HostPath) {
  const std::string base = scratch() + "/host";
  const auto at = [&base](const std::string& name, HostPathType type) {
    return HostPathVolumeSource{.path = base + name, .type = type};
  };
  Set(at("/deep/dir", HostPathType::kDirectoryOrCreate));
  EXPECT_EQ(Mode(base + "/deep"), 0755u);
  EXPECT_EQ(Mode(base + "/deep/dir"), 0755u);
  Set(at("/file", HostPathType::kFileOrCreate));
  EXPECT_EQ(Mode(base + "/file"), 0644u);
  Set(HostPathVolumeSource{.path = "/dev/null", .type = HostPathType::kCharDevice});
  Set(HostPathVolumeSource{.path = "/", .type = HostPathType::kDirectory});
  ASSERT_EQ(::symlink((base + "/deep").c_str(), (base + "/link").c_str()), 0);
  Set(at("/link", HostPathType::kDirectory));
  Set(at("/link/made", HostPathType::kDirectoryOrCreate));
  EXPECT_EQ(Mode(base + "/deep/made"), 0755u);
  EXPECT_EQ(NewMounter(at("/file", HostPathType::kDirectory))->SetUp({}).error().message(),
            "hostPath type check failed: " + base + "/file is not a directory");
  EXPECT_EQ(MountCount(), mounts_before_);
  Leave(at("/file", HostPathType::kFile));
  EXPECT_TRUE(std::filesystem::exists(base + "/file"));
}

TEST_P(PluginsRootTest, ASubpathOfAConfigMapAndOfAHostPath) {
  ConfigMapVolumeSource source;
  source.name = "conf";
  Set(source);
  const auto subpath = [&](const SafePath& volume, const std::string& sub_path, int index) {
    return PrepareSafeSubpath(*kernel_, world_->paths,
                              {.pod = PodUid("u1"),
                               .spec = SpecName("v"),
                               .container = "c",
                               .index = index,
                               .volume = volume,
                               .sub_path = sub_path},
                              {});
  };
  const SafePath volume = NewMounter(source)->GetSafePath();
  const auto file = subpath(volume, "a", 0);
  ASSERT_TRUE(file.ok()) << file.error().ToString();
  EXPECT_EQ(ReadAll(file->Display()), "1");
  EXPECT_EQ(MountCount(), mounts_before_ + 1);
  ASSERT_TRUE(subpath(volume, "a", 0).ok());
  EXPECT_EQ(MountCount(), mounts_before_ + 1);

  std::filesystem::create_directories(scratch() + "/host/site");
  const auto directory = subpath({scratch() + "/host", "", Resolve::kBeneath}, "site/new", 1);
  ASSERT_TRUE(directory.ok()) << directory.error().ToString();
  EXPECT_TRUE(std::filesystem::is_directory(scratch() + "/host/site/new"));
  ASSERT_EQ(::symlink("/etc", (scratch() + "/host/out").c_str()), 0);
  EXPECT_FALSE(subpath({scratch() + "/host", "", Resolve::kBeneath}, "out", 2).ok());

  // The object changes: the old file stays bound until the subpath is prepared again.
  world_->objects.PutConfigMap("conf", {{"a", "changed"}});
  Refresh(source);
  EXPECT_EQ(ReadAll(file->Display()), "1");
  ASSERT_TRUE(subpath(volume, "a", 0).ok());
  EXPECT_EQ(ReadAll(file->Display()), "changed");

  const Status cleaned = CleanSubPaths(*kernel_, world_->paths, PodUid("u1"), SpecName("v"), {});
  ASSERT_TRUE(cleaned.ok()) << cleaned.error().ToString();
  EXPECT_FALSE(std::filesystem::exists(root_ + "/pods/u1/volume-subpaths"));
  Leave(source);
}

TEST_P(PluginsRootTest, ThePreparedRootIsSharedOnce) {
  for (int restart = 0; restart < 5; ++restart) {
    ASSERT_TRUE(PrepareRoot(*kernel_, world_->paths, {}).ok());
  }
  EXPECT_EQ(MountCount(), mounts_before_);
  EXPECT_EQ(Mode(root_), 0750u);
  EXPECT_EQ(Mode(root_ + "/volumed"), 0700u);
}

INSTANTIATE_TEST_SUITE_P(Features, PluginsRootTest,
                         ::testing::Values(Setting{"New", {}},
                                           Setting{"Debian12",
                                                   {"open-tree-detached-clone", "statmount",
                                                    "mount-events", "fchmodat2", "tmpfs-noswap"}},
                                           Setting{"Old",
                                                   {"open-tree-detached-clone", "mount-setattr",
                                                    "statmount", "mount-events", "fchmodat2",
                                                    "tmpfs-noswap"}}),
                         [](const auto& setting) { return std::string(setting.param.name); });

}  // namespace
}  // namespace volumed
