// Storage on the real kernel: recycling by effects and by a container of runc, provisioning and
// deleting hostPath volumes, huge pages, the size of a block device.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/target_of.h"
#include "integration/mount_namespace_fixture.h"
#include "metrics/metrics_block.h"
#include "mounter/host_directory.h"
#include "os/worker_kernel.h"
#include "places.h"
#include "pluginmgr/wrapper_volumes.h"
#include "plugins/empty_dir.h"
#include "plugins/host_path.h"
#include "recycler/local_recycler_pods.h"
#include "recycler/recycler_pod_template.h"
#include "recycler/runc_runner.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

class RecyclerRootTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    WorkerKernelOptions workers;
    workers.worker_path = VolumedWorkerPath();
    workers.agent_root = scratch() + "/root";
    auto kernel = WorkerKernel::Create(workers, clock_);
    ASSERT_TRUE(kernel.ok()) << kernel.error().ToString();
    kernel_ = std::move(kernel).value();
    world_ = std::make_unique<PluginWorld>(*kernel_, scratch() + "/root");
    RuncOptions options;
    options.directory = scratch() + "/runc";
    containers_ = std::make_unique<RuncRunner>(options, *kernel_, clock_);
    pods_ = std::make_unique<LocalRecyclerPods>(*kernel_, *containers_, clock_);
    volume_ = scratch() + "/volumes/one";
    fs::create_directories(volume_ + "/a/b");
    std::ofstream(volume_ + "/a/b/file") << "x";
    std::ofstream(volume_ + "/.hidden") << "x";
    fs::create_symlink(scratch(), volume_ + "/link");
  }

  HostPathPlugin& Plugin(const std::string& script = "", int minimum_seconds = 60) {
    HostPathSettings settings;
    settings.recycler_pods = pods_.get();
    settings.roots = {scratch() + "/volumes"};
    settings.config.provisioning_enabled = true;
    settings.config.recycler_minimum_timeout_seconds = minimum_seconds;
    Pod pod = NewPersistentVolumeRecyclerPodTemplate();
    if (!script.empty()) {
      pod.spec.containers[0].image = "busybox";
      pod.spec.containers[0].args = {"-c", script};
    }
    settings.config.recycler_pod_template = pod;
    plugin_ = std::make_unique<HostPathPlugin>(settings);
    EXPECT_TRUE(plugin_->Init(PluginContext{world_->host, wrappers_}).ok());
    return *plugin_;
  }
  VolumeSpec Spec() {
    PersistentVolume volume;
    volume.metadata.name = "pv-" + std::to_string(::getpid());
    volume.spec.source = HostPathVolumeSource{volume_, HostPathType::kUnset};
    return VolumeSpec::FromPersistentVolume(volume, false);
  }
  Status Recycle(HostPathPlugin& plugin) {
    const auto record = [this](EventType, const std::string& text) { events_.push_back(text); };
    return plugin.Recycle(Spec().name().str(), Spec(), record, {});
  }

  RealClock clock_;
  std::unique_ptr<WorkerKernel> kernel_;
  std::unique_ptr<PluginWorld> world_;
  std::unique_ptr<RuncRunner> containers_;
  std::unique_ptr<LocalRecyclerPods> pods_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  std::unique_ptr<HostPathPlugin> plugin_;
  std::string volume_;
  std::vector<std::string> events_;
};

TEST_F(RecyclerRootTest, TheBuiltInTemplateScrubsByEffects) {
  const Status status = Recycle(Plugin());
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_TRUE(fs::is_directory(volume_));
  EXPECT_TRUE(fs::is_empty(volume_));
  EXPECT_FALSE(fs::exists(scratch() + "/runc")) << "no container was needed";
}

TEST_F(RecyclerRootTest, AnotherTemplateRunsInAContainer) {
  // The script that Kubernetes had before v1.22.
  const Status status =
      Recycle(Plugin("test -e /scrub && rm -rf /scrub/..?* /scrub/.[!.]* /scrub/* && "
                     "test -z \"$(ls -A /scrub)\" || exit 1"));
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_TRUE(fs::is_directory(volume_));
  EXPECT_TRUE(fs::is_empty(volume_));
  EXPECT_TRUE(fs::is_empty(scratch() + "/runc/bundles")) << "nothing of it is left";
}

TEST_F(RecyclerRootTest, AContainerThatFailsSaysWhy) {
  const Status status = Recycle(Plugin("echo the disk smells of smoke; exit 7"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("ended with status 7: the disk smells of smoke"),
            std::string::npos)
      << status.error().message();
  EXPECT_TRUE(fs::exists(volume_ + "/a/b/file"));
}

TEST_F(RecyclerRootTest, AContainerThatDoesNotEndIsEnded) {
  const Status status = Recycle(Plugin("sleep 600", 1));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("longer than the specified deadline"), std::string::npos)
      << status.error().message();
  EXPECT_TRUE(fs::is_empty(scratch() + "/runc/bundles"));
}

TEST_F(RecyclerRootTest, WhatIsMountedInAVolumeIsNotScrubbed) {
  ASSERT_EQ(::mount("precious", (volume_ + "/a").c_str(), "tmpfs", 0, nullptr), 0);
  std::ofstream(volume_ + "/a/precious") << "x";
  for (const char* script : {"", "rm -rf /scrub/a"}) {
    const Status status = Recycle(Plugin(script));
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message().find("is mounted at " + volume_ + "/a"), std::string::npos)
        << status.error().message();
  }
  EXPECT_TRUE(fs::exists(volume_ + "/a/precious"));
  EXPECT_TRUE(fs::exists(volume_ + "/.hidden"));
  ::umount2((volume_ + "/a").c_str(), MNT_DETACH);
}

TEST_F(RecyclerRootTest, ProvisionedVolumesAreDeletedAgain) {
  HostPathPlugin& plugin = Plugin();
  VolumeOptions options;
  options.pv_name = "pv-new";
  auto made = plugin.NewProvisioner(options).value()->Provision(nullptr, {}, {});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  const std::string path = std::get<HostPathVolumeSource>(made->spec.source).path;
  EXPECT_TRUE(fs::is_directory(path));
  std::ofstream(path + "/data") << "x";
  const VolumeSpec spec = VolumeSpec::FromPersistentVolume(*made, false);
  const Status deleted = plugin.NewDeleter(spec).value()->Delete({});
  ASSERT_TRUE(deleted.ok()) << deleted.error().ToString();
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(volume_ + "/.hidden"));
}

TEST_F(RecyclerRootTest, EmptyDirOnHugePages) {
  if (!fs::exists("/sys/kernel/mm/hugepages/hugepages-2048kB")) {
    GTEST_SKIP() << "skipped: this kernel has no huge pages of 2Mi";
  }
  EmptyDirPlugin plugin;
  ASSERT_TRUE(plugin.Init(PluginContext{world_->host, wrappers_}).ok());
  Pod pod = MakePod();
  Container container;
  container.resources.requests["hugepages-2Mi"] = Quantity::Parse("2Mi").value();
  pod.spec.containers.push_back(container);
  fs::create_directories(scratch() + "/root/pods/u1");
  const VolumeSpec spec =
      VolumeSpec::FromVolume({"v", EmptyDirVolumeSource{.medium = "HugePages", .size_limit = {}}});
  const auto mounter = plugin.NewMounter(spec, TargetOf(world_->paths, plugin, spec, pod)).value();
  for (int again = 0; again < 2; ++again) {
    const Status status = mounter->SetUp(WithGroup(2000));
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  }
  struct statfs info {};
  ASSERT_EQ(::statfs(mounter->GetPath().c_str(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.f_type), 0x958458f6u);
  EXPECT_EQ(info.f_bsize, 2 << 20);
  const auto found = plugin.ConstructVolumeSpec(spec.name(), mounter->GetSafePath(), {});
  EXPECT_EQ(found->spec.SourceAs<EmptyDirVolumeSource>()->medium, "HugePages");
  // Pages of another size are another volume.
  pod.spec.containers[0].resources.requests.clear();
  pod.spec.containers[0].resources.requests["hugepages-1Gi"] = Quantity::Parse("1Gi").value();
  const auto other = plugin.NewMounter(spec, TargetOf(world_->paths, plugin, spec, pod)).value();
  const Status refused = other->SetUp({});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message().find("has huge pages of 2Mi mounted"), std::string::npos);
  ASSERT_TRUE(plugin.NewUnmounter(spec.name(), PodUid("u1")).value()->TearDown({}).ok());
  EXPECT_FALSE(fs::exists(mounter->GetPath()));
}

TEST_F(RecyclerRootTest, PageSizesThatTheKernelHasNotAreNamed) {
  EmptyDirPlugin plugin;
  ASSERT_TRUE(plugin.Init(PluginContext{world_->host, wrappers_}).ok());
  Pod pod = MakePod();
  Container container;
  container.resources.requests["hugepages-3Mi"] = Quantity::Parse("3Mi").value();
  pod.spec.containers.push_back(container);
  fs::create_directories(scratch() + "/root/pods/u1");
  const VolumeSpec spec =
      VolumeSpec::FromVolume({"v", EmptyDirVolumeSource{.medium = "HugePages", .size_limit = {}}});
  const Status status =
      plugin.NewMounter(spec, TargetOf(world_->paths, plugin, spec, pod)).value()->SetUp({});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kUnimplemented) << status.error().ToString();
  EXPECT_NE(status.error().message().find("has no huge"), std::string::npos);
}

TEST_F(RecyclerRootTest, TheSizeOfABlockDeviceComesFromTheKernel) {
  for (const auto& entry : fs::directory_iterator("/sys/class/block")) {
    int64_t sectors = 0;
    std::ifstream(entry.path() / "size") >> sectors;
    const std::string device = "/dev/" + entry.path().filename().string();
    if (sectors == 0 || !fs::is_block_file(device)) continue;
    const std::string link = scratch() + "/device";
    fs::create_symlink(device, link);
    const auto metrics = MetricsBlock(*kernel_, clock_, HostPath(link)).GetMetrics({});
    ASSERT_TRUE(metrics.ok()) << metrics.error().ToString();
    EXPECT_EQ(metrics->capacity_bytes, sectors * 512);
    return;
  }
  GTEST_SKIP() << "skipped: no block device with a size";
}

}  // namespace
}  // namespace volumed
