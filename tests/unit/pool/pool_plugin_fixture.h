// A node whose agents have PoolPlugin, for the tests of it: a claim is made into a volume, which
// pods get and leave.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fakes/memory_format_intents.h"
#include "fakes/must.h"
#include "fakes/target_of.h"
#include "pluginmgr/wrapper_volumes.h"
#include "pool/pool_plugin.h"
#include "unit/plugins/plugin_world.h"
#include "unit/pool/pool_fixture.h"

namespace volumed {

inline constexpr char kDriver[] = "pool.volumed.io";

// What outlives the agents, with what they have on record of formats.
struct PoolPluginWorld : PoolWorld {
  PoolPluginWorld() {
    kernel.AddDirectory("/r/plugins", 0750);
    kernel.AddDirectory("/r/pods", 0750);
  }
  MemoryFormatIntents intents;
  KernelFeatures features = FakeKernelOptions().features;
  bool has_label = true;  // the node, of its pools
};

// A claim's volume, as the volume manager has it.
struct ClaimedVolume {
  PersistentVolume volume;
  std::string plan;  // its text

  const std::string& id() const {
    return std::get<CsiPersistentVolumeSource>(volume.spec.source).volume_handle;
  }
  VolumeSpec Spec(bool read_only = false) const {
    return VolumeSpec::FromPersistentVolume(volume, read_only);
  }
};

inline VolumeOptions ClaimOptions(const std::string& name = "pvc-1") {
  VolumeOptions options;
  options.pv_name = name;
  options.claim.metadata.name = "data";
  options.claim.spec.access_modes = {AccessMode::kReadWriteOnce};
  options.claim.spec.storage.request = Quantity::FromBytes(16 * kMiB);
  return options;
}

// An agent with the plugin. No pool is open until Recover().
class PoolPluginAgent : public PoolAgent {
 public:
  explicit PoolPluginAgent(PoolPluginWorld& node, std::string driver = kDriver,
                           std::vector<PoolSettings> settings = {TestPool()})
      : PoolAgent(node, std::move(settings)),
        world(node.kernel, "/r", node.features),
        plugin({*volumes, std::move(driver), {.format_intents = &node.intents}}) {
    const Status ready = plugin.Init(PluginContext{world.host, wrappers_});
    if (!ready.ok()) throw std::runtime_error(ready.error().ToString());
    const StringMap here = {{PoolTopologyLabel(kDriver), "node-1"}};
    if (!node.has_label) return;
    EXPECT_TRUE(world.node.MergeTopology(kDriver, here).ok());
  }

  static std::string DevicePlace(const std::string& id) {
    return "/r/plugins/volumed.io/pool/mounts/" + id;
  }
  static std::string MapPlace(const std::string& id) {
    return "/r/plugins/volumed.io~pool/volumeDevices/" + id;
  }
  static std::string PodPlace(const ClaimedVolume& claimed, const std::string& pod = "u1") {
    return "/r/pods/" + pod + "/volumes/volumed.io~pool/" + claimed.volume.metadata.name;
  }

  Result<ClaimedVolume> Plan(const VolumeOptions& options) {
    ASSIGN_OR_RETURN(const auto provisioner, plugin.NewProvisioner(options));
    ASSIGN_OR_RETURN(PersistentVolume volume, provisioner->Plan());
    volume.metadata.annotations[kProvisionedBy] = kDriver;
    return ClaimedVolume{std::move(volume), provisioner->PlanText()};
  }
  // Makes what was planned, by what is on record of it alone.
  Result<PersistentVolume> Make(const ClaimedVolume& planned) {
    ASSIGN_OR_RETURN(const auto provisioner, plugin.NewProvisioner(OptionsOf(planned)));
    return provisioner->Provision(nullptr, {}, {});
  }
  Status Undo(const ClaimedVolume& planned) {
    ASSIGN_OR_RETURN(const auto provisioner, plugin.NewProvisioner(OptionsOf(planned)));
    ASSIGN_OR_RETURN(const std::optional<PersistentVolume> made,
                     provisioner->FindMade(planned.volume, {}));
    return made ? provisioner->Undo(*made, {}) : OkStatus();
  }
  Status Delete(const ClaimedVolume& claimed) {
    ASSIGN_OR_RETURN(const auto deleter, plugin.NewDeleter(claimed.Spec()));
    return deleter->Delete({});
  }

  Result<Quantity> Expand(const ClaimedVolume& claimed, int64_t bytes) {
    return plugin.ExpandVolumeDevice(claimed.Spec(), Quantity::FromBytes(bytes), Quantity(), {});
  }
  Result<bool> NodeExpand(const ClaimedVolume& claimed, int64_t bytes) {
    NodeResizeOptions options{.spec = claimed.Spec(),
                              .device_path = "",
                              .device_mount_path = {DevicePlace(claimed.id()), ""},
                              .device_stage_path = {},
                              .new_size = Quantity::FromBytes(bytes),
                              .old_size = {}};
    return plugin.NodeExpand(options, {});
  }

  Status MountDevice(const VolumeSpec& spec) {
    ASSIGN_OR_RETURN(const auto mounter, plugin.NewDeviceMounter());
    ASSIGN_OR_RETURN(const SafePath place, mounter->GetDeviceMountPath(spec));
    return mounter->MountDevice(spec, "", place, DeviceMounterArgs());
  }
  Status SetUp(const VolumeSpec& spec, const std::string& pod = "u1") {
    ASSIGN_OR_RETURN(const auto mounter,
                     plugin.NewMounter(spec, TargetOf(world.paths, plugin, spec, MakePod(pod))));
    return mounter->SetUp({});
  }
  Status TearDown(const VolumeSpec& spec, const std::string& pod = "u1") {
    ASSIGN_OR_RETURN(const auto unmounter, plugin.NewUnmounter(spec.name(), PodUid(pod)));
    return unmounter->TearDown({});
  }
  Status UnmountDevice(const std::string& id) {
    ASSIGN_OR_RETURN(const auto unmounter, plugin.NewDeviceUnmounter());
    return unmounter->UnmountDevice(Must(world.paths.BelowRoot(DevicePlace(id))), {});
  }
  std::unique_ptr<BlockVolumeMapper> Mapper(const VolumeSpec& spec) {
    return Must(plugin.NewBlockVolumeMapper(spec, std::make_shared<const Pod>(MakePod())));
  }
  Status TearDownDevice(const ClaimedVolume& claimed) {
    const auto unmapper = Must(plugin.NewBlockVolumeUnmapper(claimed.Spec().name(), PodUid("u1")));
    return unmapper->AsCustom()->TearDownDevice(Must(unmapper->GetGlobalMapPath(claimed.Spec())),
                                                "", {});
  }

  PluginWorld world;
  PoolPlugin plugin;

 private:
  static VolumeOptions OptionsOf(const ClaimedVolume& planned) {
    VolumeOptions options;
    options.pv_name = planned.volume.metadata.name;
    options.plan = VolumePlan{planned.volume, planned.plan};
    return options;
  }

  VolumePluginMgr mgr_;
  WrapperVolumes wrappers_{mgr_};
};

// One agent whose pool is open.
class PoolPluginTest : public ::testing::Test {
 protected:
  PoolPluginTest() { Expect(agent_.Recover()); }

  static void Expect(const Status& status) {
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().ToString());
  }
  static void ExpectRefused(const Status& status, Code code, const std::string& why) {
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code(), code) << status.error().ToString();
    EXPECT_THAT(status.error().message(), ::testing::HasSubstr(why));
  }
  template <typename T>
  static void ExpectRefused(const Result<T>& result, Code code, const std::string& why) {
    ExpectRefused(result.ok() ? OkStatus() : Status(result.error()), code, why);
  }

  ClaimedVolume Claim(const VolumeOptions& options = ClaimOptions()) {
    ClaimedVolume claimed = Must(agent_.Plan(options));
    const PersistentVolume made = Must(agent_.Make(claimed));
    claimed.volume.spec = made.spec;
    return claimed;
  }
  ClaimedVolume ClaimBlock() {
    VolumeOptions options = ClaimOptions();
    options.claim.spec.volume_mode = VolumeMode::kBlock;
    return Claim(options);
  }
  // The device of the volume that is open.
  FakeDevice Device() { return node_.kernel.Device(node_.Loops().at(0).path); }

  PoolPluginWorld node_;
  PoolPluginAgent agent_{node_};
};

}  // namespace volumed
