// IscsiTest: the plugin iscsi on a fake open-iscsi, with a target of two LUNs and two portals.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_device_finder.h"
#include "fakes/fake_kernel.h"
#include "fakes/fake_open_iscsi.h"
#include "fakes/memory_format_intents.h"
#include "fakes/simulated_crash.h"
#include "pluginmgr/wrapper_volumes.h"
#include "plugins/iscsi.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {

inline constexpr char kPlace[] =
    "/r/plugins/kubernetes.io/iscsi/iface-default/10.0.0.1:3260-iqn.2026-01.lab:t-lun-1";
inline constexpr char kMapPlace[] =
    "/r/plugins/kubernetes.io/iscsi/volumeDevices/iface-default/"
    "10.0.0.1:3260-iqn.2026-01.lab:t-lun-1";
inline constexpr char kByPath[] =
    "/dev/disk/by-path/ip-10.0.0.1:3260-iscsi-iqn.2026-01.lab:t-lun-1";
inline constexpr char kCanary[] = "canary-4711-geheim";

inline FakeDevice WithFilesystem() {
  FakeDevice device;
  device.fs_type = "ext4";
  device.usage = "filesystem";
  device.identity.uuid = "6b1c6a5e-0000-4000-8000-000000000001";
  return device;
}

class IscsiTest : public ::testing::Test {
 protected:
  IscsiTest() : world_(kernel_, "/r"), finder_(kernel_) {
    kernel_.AddDirectory("/r/plugins", 0750);
    target_->portals = {"10.0.0.1:3260", "10.0.0.2:3260"};
    target_->luns = {{1, "/dev/sdb"}, {2, "/dev/sdc"}};
    InstallFakeOpenIscsi(kernel_, target_);
    AddFakeLun(kernel_, *target_, 1, WithFilesystem());
    AddFakeLun(kernel_, *target_, 2, WithFilesystem());
    volume_.metadata.name = "disk";
    source_.target_portal = "10.0.0.1";
    source_.iqn = target_->iqn;
    source_.lun = 1;
    IscsiSettings settings;
    settings.formats.format_intents = &intents_;
    settings.devices = &finder_;
    plugin_ = std::make_unique<IscsiPlugin>(settings);
    EXPECT_TRUE(plugin_->Init(PluginContext{world_.host, wrappers_}).ok());
  }

  VolumeSpec Spec(int32_t lun = 1) {
    source_.lun = lun;
    volume_.spec.source = source_;
    return VolumeSpec::FromPersistentVolume(volume_, false);
  }
  Result<std::string> WaitForAttach(const VolumeSpec& spec) {
    return plugin_->NewAttacher().value()->WaitForAttach(spec, "", MakePod(), {});
  }
  Status MountDevice(const VolumeSpec& spec, const std::string& device) {
    const auto mounter = plugin_->NewDeviceMounter().value();
    return mounter->MountDevice(spec, device, mounter->GetDeviceMountPath(spec).value(), {});
  }
  void Mount(int32_t lun = 1) {
    const VolumeSpec spec = Spec(lun);
    const auto device = WaitForAttach(spec);
    ASSERT_TRUE(device.ok()) << device.error().ToString();
    const Status mounted = MountDevice(spec, *device);
    ASSERT_TRUE(mounted.ok()) << mounted.error().ToString();
  }
  Status UnmountDevice(const std::string& place = kPlace) {
    const SafePath path{"/r", place.substr(3)};
    return plugin_->NewDeviceUnmounter().value()->UnmountDevice(path, {});
  }
  void UseChap() {
    target_->chap_user = "user";
    target_->chap_password = kCanary;
    source_.chap_auth_session = true;
    source_.secret_ref = SecretReference{"chap", ""};
  }
  void PutChapSecret(const std::string& password) { PutChapSecretIn(world_, password); }
  static void PutChapSecretIn(PluginWorld& world, const std::string& password) {
    world.objects.PutSecret("chap", {{"node.session.auth.username", "user"},
                                     {"node.session.auth.password", password},
                                     {"discovery.sendtargets.auth.username", "user"},
                                     {"discovery.sendtargets.auth.password", password}});
    world.objects.SetSecretType("chap", "kubernetes.io/iscsi-chap");
  }
  std::string EventText() const {
    std::string text;
    for (const KeptEvent& event : world_.events.Snapshot(PodUid("u1"))) {
      text += event.reason + ": " + event.message + "\n";
    }
    return text;
  }
  void ExpectNothingLeft() {
    EXPECT_THAT(FakeIscsiSessions(kernel_), ::testing::IsEmpty());
    EXPECT_THAT(FakeIscsiNodes(kernel_), ::testing::IsEmpty());
    EXPECT_THAT(FakeIscsiMistakes(kernel_), ::testing::IsEmpty());
    EXPECT_FALSE(kernel_.Exists("/dev/sdb"));
    EXPECT_FALSE(kernel_.Exists(kPlace));
  }

  FakeKernel kernel_;
  PluginWorld world_;
  FakeDeviceFinder finder_;
  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
  MemoryFormatIntents intents_;
  std::shared_ptr<FakeIscsiTarget> target_ = std::make_shared<FakeIscsiTarget>();
  PersistentVolume volume_;
  IscsiPersistentVolumeSource source_;
  std::unique_ptr<IscsiPlugin> plugin_;
};

}  // namespace volumed
