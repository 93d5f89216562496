// fc on the real kernel: disks that are loop devices, in a sysfs tree as a node with a Fibre
// Channel adapter has it, in a directory. No adapter is needed, and none is proven by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "fakes/fake_device_finder.h"
#include "fakes/memory_format_intents.h"
#include "fakes/target_of.h"
#include "integration/loop_device.h"
#include "integration/mount_namespace_fixture.h"
#include "mounter/node_root.h"
#include "os/local_kernel.h"
#include "pluginmgr/wrapper_volumes.h"
#include "plugins/fc.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int64_t kImageBytes = int64_t{64} << 20;
constexpr char kHost[] = "devices/pci0000:00/0000:00:05.0/host3";

class FcRootTest : public MountNamespaceTest {
 protected:
  void SetUp() override {
    MountNamespaceTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (!HasLoopDevices()) GTEST_SKIP() << "skipped: needs loop devices";
    auto created = LocalKernel::Create({});
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    kernel_ = std::move(created).value();
    root_ = scratch() + "/root";
    sys_ = scratch() + "/sys/";
    world_ = std::make_unique<PluginWorld>(*kernel_, root_);
    const Status prepared = PrepareRoot(*kernel_, world_->paths, {});
    ASSERT_TRUE(prepared.ok()) << prepared.error().ToString();
    finder_ = std::make_unique<FakeDeviceFinder>(*kernel_);
    FcSettings settings;
    settings.device.format_intents = &intents_;
    settings.devices = finder_.get();
    settings.places.sys = scratch() + "/sys";
    plugin_ = std::make_unique<FcPlugin>(settings);
    ASSERT_TRUE(plugin_->Init(PluginContext{world_->host, wrappers_}).ok());
    RecordHost();
    disk_ = MakeDisk("mine", "rport-3:0-0", "3:0:0:1");
    other_ = MakeDisk("other", "rport-3:0-1", "3:0:1:1");
    ASSERT_TRUE(disk_ && other_);
    source_.target_wwns = {"500a0982991b8dc5"};
    source_.lun = 1;
  }
  void TearDown() override {
    if (!root_.empty()) ::umount2(root_.c_str(), MNT_DETACH);
    disk_.reset();
    other_.reset();
    world_.reset();
    MountNamespaceTest::TearDown();
  }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(sys_ + path).parent_path());
    std::ofstream(sys_ + path) << text;
  }
  std::string Read(const std::string& path) const {
    std::ifstream file(sys_ + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Link(const std::string& path, const std::string& target) const {
    fs::create_directories(fs::path(sys_ + path).parent_path());
    fs::create_symlink(target, sys_ + path);
  }
  void RecordHost() const {
    const std::string host = kHost;
    Write(host + "/scsi_host/host3/scan", "");
    Link("class/scsi_host/host3", "../../" + host + "/scsi_host/host3");
    Write(host + "/fc_host/host3/port_name", "0x21000024ff000001\n");
    Link("class/fc_host/host3", "../../" + host + "/fc_host/host3");
    for (const auto& [rport, name] : {std::pair{"rport-3:0-0", "0x500a0982991b8dc5\n"},
                                      std::pair{"rport-3:0-1", "0x500a0982891b8dc5\n"}}) {
      const std::string dir = host + "/" + rport + "/fc_remote_ports/" + rport;
      Write(dir + "/port_name", name);
      Link(std::string("class/fc_remote_ports/") + rport, "../../" + dir);
    }
    fs::create_directories(sys_ + "block");
  }
  // A loop device, and what sysfs would say of it if it were a SCSI disk.
  std::unique_ptr<LoopDevice> MakeDisk(const std::string& image, const std::string& rport,
                                       const std::string& address) const {
    if (!MakeImage(scratch() + "/" + image, kImageBytes)) return nullptr;
    auto loop = std::make_unique<LoopDevice>(scratch() + "/" + image);
    struct stat info = {};
    if (!loop->valid() || ::stat(loop->path().c_str(), &info) != 0) return nullptr;
    const std::string name = loop->path().substr(5);
    const std::string dir = std::string(kHost) + "/" + rport + "/target3:0:0/" + address;
    Write(dir + "/state", "running\n");
    Write(dir + "/delete", "");
    Write(dir + "/rescan", "");
    Write(dir + "/block/" + name + "/dev",
          std::to_string(major(info.st_rdev)) + ":" + std::to_string(minor(info.st_rdev)) + "\n");
    fs::create_directories(sys_ + dir + "/block/" + name + "/holders");
    fs::create_directories(sys_ + dir + "/block/" + name + "/slaves");
    Link("block/" + name, "../" + dir + "/block/" + name);
    return loop;
  }
  std::string DeleteOf(const std::string& rport, const std::string& address) const {
    return Read(std::string(kHost) + "/" + rport + "/target3:0:0/" + address + "/delete");
  }
  VolumeSpec Spec() const {
    PersistentVolume volume;
    volume.metadata.name = "disk";
    volume.spec.source = source_;
    return VolumeSpec::FromPersistentVolume(std::move(volume), false);
  }
  CallOptions Call() const {
    CallOptions call;
    call.deadline = Deadline::After(world_->clock, std::chrono::seconds(60));
    return call;
  }

  std::unique_ptr<LocalKernel> kernel_;
  std::string root_, sys_;
  std::unique_ptr<PluginWorld> world_;
  std::unique_ptr<FakeDeviceFinder> finder_;
  MemoryFormatIntents intents_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  std::unique_ptr<FcPlugin> plugin_;
  FcVolumeSource source_;
  std::unique_ptr<LoopDevice> disk_, other_;
};

TEST_F(FcRootTest, AVolumeIsFoundFormattedMountedBoundAndItsDiskDeleted) {
  const auto attacher = plugin_->NewAttacher().value();
  const auto device = attacher->WaitForAttach(Spec(), "", MakePod(), Call());
  ASSERT_TRUE(device.ok()) << device.error().ToString();
  EXPECT_EQ(*device, disk_->path());
  const SafePath place = attacher->GetDeviceMountPath(Spec()).value();
  DeviceMounterArgs args;
  args.call = Call();
  const Status mounted = attacher->MountDevice(Spec(), *device, place, args);
  ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();

  fs::create_directories(root_ + "/pods/u1/volumes");
  const auto mounter =
      plugin_->NewMounter(Spec(), TargetOf(world_->paths, *plugin_, Spec(), MakePod())).value();
  MounterArgs set_up;
  set_up.call = Call();
  const Status bound = mounter->SetUp(set_up);
  ASSERT_TRUE(bound.ok()) << bound.error().ToString();
  std::ofstream(mounter->GetPath() + "/file") << "kept";
  EXPECT_TRUE(fs::exists(place.Display() + "/file"));
  EXPECT_GT(mounter->GetMetrics(Call()).value().capacity_bytes.value_or(0), 0);

  const auto unmounter = plugin_->NewDeviceUnmounter().value();
  ASSERT_TRUE(plugin_->NewUnmounter(SpecName("disk"), PodUid("u1")).value()->TearDown(Call()).ok());
  const Status gone = unmounter->UnmountDevice(place, Call());
  ASSERT_TRUE(gone.ok()) << gone.error().ToString();
  EXPECT_EQ(DeleteOf("rport-3:0-0", "3:0:0:1"), "1");
  EXPECT_EQ(DeleteOf("rport-3:0-1", "3:0:1:1"), "") << "of another port";
  EXPECT_FALSE(fs::exists(place.Display()));
}

TEST_F(FcRootTest, ADiskThatSomebodyElseHasMountedIsNotDeleted) {
  const auto attacher = plugin_->NewAttacher().value();
  const SafePath place = attacher->GetDeviceMountPath(Spec()).value();
  DeviceMounterArgs args;
  args.call = Call();
  ASSERT_TRUE(attacher->MountDevice(Spec(), "", place, args).ok());
  const std::string mine = scratch() + "/mine-too";
  fs::create_directories(mine);
  ASSERT_EQ(::mount(disk_->path().c_str(), mine.c_str(), "ext4", 0, nullptr), 0);
  const Status busy = plugin_->NewDeviceUnmounter().value()->UnmountDevice(place, Call());
  ASSERT_FALSE(busy.ok());
  EXPECT_THAT(busy.error().message(), HasSubstr("is still in use"));
  EXPECT_EQ(DeleteOf("rport-3:0-0", "3:0:0:1"), "");
  ASSERT_EQ(::umount2(mine.c_str(), 0), 0);
  EXPECT_TRUE(plugin_->NewDeviceUnmounter().value()->UnmountDevice(place, Call()).ok());
  EXPECT_EQ(DeleteOf("rport-3:0-0", "3:0:0:1"), "1");
}

TEST_F(FcRootTest, WhatIsNotThereIsScannedForAndTheErrorNamesTheLinks) {
  source_.lun = 7;
  const auto absent = plugin_->NewAttacher().value()->WaitForAttach(Spec(), "", MakePod(), Call());
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(Read(std::string(kHost) + "/scsi_host/host3/scan"), "- - -");
  EXPECT_THAT(absent.error().message(),
              HasSubstr("/dev/disk/by-path/pci-0000:00:05.0-fc-0x500a0982991b8dc5-lun-7"));
}

}  // namespace
}  // namespace volumed
