// The contracts of the capabilities, kept by a plugin that has all of them.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_kernel.h"
#include "fakes/target_of.h"
#include "pluginmgr/volume_options.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

const NodeName kNode("n1");

class CapabilitiesTest : public ::testing::Test {
 protected:
  CapabilitiesTest() {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<StatefulPlugin>("x/v", storage_));
    EXPECT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
  }
  static VolumeSpec Spec() {
    PersistentVolume volume;
    volume.metadata.name = "pv-1";
    volume.spec.source = LocalVolumeSource{"/mnt/disk", "ext4"};
    return VolumeSpec::FromPersistentVolume(volume, false);
  }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  VolumePluginMgr mgr_;
  const PodPtr pod_ = std::make_shared<const Pod>(MakePod());
};

TEST_F(CapabilitiesTest, MounterAndUnmounterAreInverse) {
  VolumePlugin& plugin = **mgr_.FindPluginBySpec(Spec());
  const auto mounter =
      plugin.NewMounter(Spec(), TargetOf(world_.paths, plugin, Spec(), *pod_)).value();
  EXPECT_TRUE(mounter->CanMount({}).ok());
  ASSERT_TRUE(mounter->SetUp({}).ok());
  EXPECT_EQ(storage_.set_up, (std::set<std::string>{mounter->GetPath()}));
  const Attributes attributes = mounter->GetAttributes();
  EXPECT_TRUE(attributes.read_only && attributes.managed && attributes.selinux_relabel);
  ASSERT_TRUE(plugin.NewUnmounter(Spec().name(), pod_->uid()).value()->TearDown({}).ok());
  EXPECT_TRUE(storage_.set_up.empty());
}

TEST_F(CapabilitiesTest, MounterSetsUpElsewhereToo) {
  VolumePlugin& plugin = **mgr_.FindPluginBySpec(Spec());
  MounterArgs args;
  args.fs_user = 1000;
  args.fs_group = 2000;
  args.fs_group_change_policy = FsGroupChangePolicy::kOnRootMismatch;
  args.desired_size_bytes = 4096;
  const SafePath elsewhere{"/r", "elsewhere"};
  ASSERT_TRUE(plugin.NewMounter(Spec(), TargetOf(world_.paths, plugin, Spec(), *pod_))
                  .value()
                  ->SetUpAt(elsewhere, args)
                  .ok());
  EXPECT_TRUE(storage_.set_up.contains("/r/elsewhere"));
  const auto unmounter = plugin.NewUnmounter(Spec().name(), pod_->uid()).value();
  ASSERT_TRUE(unmounter->TearDownAt(elsewhere, {}).ok());
  EXPECT_TRUE(storage_.set_up.empty());
}

TEST_F(CapabilitiesTest, WhatAPluginSaysOfItself) {
  VolumePlugin& plugin = **mgr_.FindPluginBySpec(Spec());
  EXPECT_TRUE(plugin.SupportsMountOption());
  EXPECT_FALSE(plugin.SupportsSELinuxContextMount(Spec()));
  EXPECT_EQ(plugin.GetVolumeName(Spec()).value(), "pv-1");
}

TEST_F(CapabilitiesTest, AccessModes) {
  PersistentVolumePlugin& plugin = **mgr_.FindPersistentPluginBySpec(Spec());
  EXPECT_EQ(plugin.GetAccessModes(),
            (std::vector<AccessMode>{AccessMode::kReadWriteOnce, AccessMode::kReadOnlyMany}));
}

TEST_F(CapabilitiesTest, ProvisionMakesWhatTheClaimAsksFor) {
  VolumeOptions options;
  options.pv_name = "pv-new";
  options.reclaim_policy = ReclaimPolicy::kRetain;
  options.mount_options = {"noatime"};
  options.claim.spec.storage.request = Quantity::FromBytes(1 << 20);
  options.parameters[kVolumeParameterFsType] = "xfs";
  NodeObject node;
  node.metadata.name = "n1";
  const auto volume = (*mgr_.FindProvisionablePluginByName("x/v"))
                          ->NewProvisioner(options)
                          .value()
                          ->Provision(&node, {TopologyTerm{}}, {});
  ASSERT_TRUE(volume.ok());
  EXPECT_EQ(volume->metadata.name, "pv-new");
  EXPECT_EQ(volume->spec.capacity, Quantity::FromBytes(1 << 20));
  EXPECT_EQ(volume->spec.reclaim_policy, ReclaimPolicy::kRetain);
  EXPECT_EQ(volume->spec.mount_options, (std::vector<std::string>{"noatime"}));
  EXPECT_EQ(volume->metadata.labels.at("node"), "n1");
  EXPECT_EQ(volume->metadata.labels.at("topologies"), "yes");
  EXPECT_TRUE(storage_.volumes.contains("pv-new"));
}

TEST_F(CapabilitiesTest, DeleteTellsAVolumeInUseFromAFailure) {
  storage_.volumes["pv-1"] = Quantity();
  storage_.in_use = {"pv-1"};
  const auto deleter = (*mgr_.FindDeletablePluginBySpec(Spec()))->NewDeleter(Spec()).value();
  EXPECT_EQ(deleter->GetPath(), "/storage/pv-1");
  const Status held = deleter->Delete({});
  ASSERT_FALSE(held.ok());
  EXPECT_TRUE(IsDeletedVolumeInUse(held.error()));
  EXPECT_EQ(held.error().code(), Code::kFailedPrecondition);
  EXPECT_TRUE(IsDeletedVolumeInUse(held.error().With("wrapped")));
  EXPECT_FALSE(
      IsDeletedVolumeInUse(Error::NotApplied(Code::kFailedPrecondition, held.error().message())))
      << "the text alone means nothing";
  storage_.in_use.clear();
  EXPECT_TRUE(deleter->Delete({}).ok());
  EXPECT_TRUE(deleter->Delete({}).ok()) << "what is gone is deleted";
  EXPECT_TRUE(storage_.volumes.empty());
}

TEST_F(CapabilitiesTest, RecycleTellsWhatItDoes) {
  storage_.volumes["pv-1"] = Quantity();
  std::vector<std::string> events;
  const auto record = [&](EventType, const std::string& text) { events.push_back(text); };
  RecyclableVolumePlugin& plugin = **mgr_.FindRecyclablePluginBySpec(Spec());
  EXPECT_TRUE(plugin.Recycle("pv-1", Spec(), record, {}).ok());
  EXPECT_EQ(events, (std::vector<std::string>{"scrubbed pv-1"}));
  EXPECT_FALSE(plugin.Recycle("pv-2", Spec(), record, {}).ok());
}

TEST_F(CapabilitiesTest, AttachWaitMountUnmountDetach) {
  AttachableVolumePlugin& plugin = **mgr_.FindAttachablePluginBySpec(Spec());
  const auto attacher = plugin.NewAttacher().value();
  EXPECT_EQ(attacher->WaitForAttach(Spec(), "/dev/pv-1", *pod_, {}).error().code(),
            Code::kDeadlineExceeded);
  const std::string device = attacher->Attach(Spec(), kNode, {}).value();
  EXPECT_EQ(attacher->WaitForAttach(Spec(), device, *pod_, {}).value(), "/dev/pv-1");
  EXPECT_EQ(attacher->VolumesAreAttached({Spec()}, kNode, {}).value(), std::vector<bool>{true});
  EXPECT_FALSE(plugin.VerifyExhaustedResource(Spec()));

  const SafePath path = attacher->GetDeviceMountPath(Spec()).value();
  ASSERT_TRUE(attacher->MountDevice(Spec(), device, path, {}).ok());
  EXPECT_EQ(plugin.GetDeviceMountRefs(path, {}).value(), (std::vector<std::string>{"pv-1"}));

  const auto detacher = plugin.NewDetacher().value();
  ASSERT_TRUE(detacher->UnmountDevice(path, {}).ok());
  ASSERT_TRUE(detacher->Detach("pv-1", kNode, {}).ok());
  EXPECT_TRUE(storage_.mounts.empty());
  EXPECT_EQ(attacher->VolumesAreAttached({Spec()}, kNode, {}).value(), std::vector<bool>{false});
}

TEST_F(CapabilitiesTest, MountDeviceTellsFinalFromUncertain) {
  DeviceMountableVolumePlugin& plugin = **mgr_.FindDeviceMountablePluginBySpec(Spec());
  const auto mounter = plugin.NewDeviceMounter().value();
  const SafePath path{"/r", "mount"};
  const Status final_error = mounter->MountDevice(Spec(), "", path, {});
  ASSERT_FALSE(final_error.ok());
  EXPECT_FALSE(final_error.error().maybe_applied());
  DeviceMounterArgs args;
  args.fs_group = 0;
  const Status uncertain = mounter->MountDevice(Spec(), "/dev/x", path, args);
  ASSERT_FALSE(uncertain.ok());
  EXPECT_TRUE(uncertain.error().maybe_applied());
  EXPECT_TRUE(plugin.NewDeviceUnmounter().value()->UnmountDevice(path, {}).ok());
}

TEST_F(CapabilitiesTest, ManyNodesAreVerifiedAtOnce) {
  AttachableVolumePlugin& plugin = **mgr_.FindAttachablePluginBySpec(Spec());
  ASSERT_NE(plugin.AsBulkVolumeVerifier(), nullptr);
  ASSERT_TRUE(plugin.NewAttacher().value()->Attach(Spec(), kNode, {}).ok());
  const NodeName other("n2");
  const auto answer =
      plugin.AsBulkVolumeVerifier()->BulkVerifyVolumes({{kNode, {Spec()}}, {other, {Spec()}}}, {});
  EXPECT_EQ(answer->at(kNode), std::vector<bool>{true});
  EXPECT_EQ(answer->at(other), std::vector<bool>{false});
}

TEST_F(CapabilitiesTest, ExpandTheStorageThenTheNode) {
  storage_.volumes["pv-1"] = Quantity::FromBytes(10);
  const Quantity new_size = Quantity::FromBytes(20);
  ExpandableVolumePlugin& storage = **mgr_.FindExpandablePluginBySpec(Spec());
  EXPECT_EQ(storage.ExpandVolumeDevice(Spec(), new_size, Quantity::FromBytes(10), {}).value(),
            new_size);
  EXPECT_TRUE(storage.RequiresFsResize());

  NodeExpandableVolumePlugin& node = **mgr_.FindNodeExpandablePluginBySpec(Spec());
  EXPECT_TRUE(node.RequiresFsResize());
  NodeResizeOptions options{.spec = Spec(),
                            .device_path = "/dev/pv-1",
                            .device_mount_path = {},
                            .device_stage_path = {},
                            .new_size = new_size,
                            .old_size = Quantity::FromBytes(10),
                            .csi_volume_phase = CsiVolumePhase::kStaged};
  EXPECT_FALSE(node.NodeExpand(options, {}).value()) << "not mounted: to be asked again";
  options.device_mount_path = {"/r", "mount"};
  EXPECT_TRUE(node.NodeExpand(options, {}).value());
  EXPECT_EQ(storage_.node_size, 20);
}

TEST_F(CapabilitiesTest, PhasesOfACsiVolumeHaveKubeletsNames) {
  EXPECT_EQ(CsiVolumePhaseName(CsiVolumePhase::kStaged), "staged");
  EXPECT_EQ(CsiVolumePhaseName(CsiVolumePhase::kPublished), "published");
}

TEST_F(CapabilitiesTest, MapAndUnmapABlockDevice) {
  BlockVolumePlugin& plugin = **mgr_.FindMapperPluginBySpec(Spec());
  const auto mapper = plugin.NewBlockVolumeMapper(Spec(), pod_).value();
  EXPECT_EQ(mapper->GetGlobalMapPath(Spec())->Display(), "/r/plugins/x/v/volumeDevices/pv-1");
  EXPECT_EQ(mapper->GetPodDeviceMapPath(),
            (PodDeviceMapPath{{"/r", "pods/u1/volumeDevices/x~v"}, "pv-1"}));
  EXPECT_FALSE(mapper->SupportsMetrics());
  CustomBlockVolumeMapper* custom = mapper->AsCustom();
  ASSERT_NE(custom, nullptr);
  EXPECT_FALSE(custom->MapPodDevice({}).ok()) << "not staged";
  EXPECT_EQ(custom->SetUpDevice({}).value(), custom->GetStagingPath());
  EXPECT_EQ(custom->MapPodDevice({}).value(), "/publish/u1");
  EXPECT_EQ(storage_.mapped.size(), 1u);

  const auto unmapper = plugin.NewBlockVolumeUnmapper(Spec().name(), pod_->uid()).value();
  EXPECT_EQ(unmapper->GetPodDeviceMapPath(), mapper->GetPodDeviceMapPath());
  ASSERT_NE(unmapper->AsCustom(), nullptr);
  EXPECT_TRUE(unmapper->AsCustom()->UnmapPodDevice({}).ok());
  EXPECT_TRUE(unmapper->AsCustom()->TearDownDevice({"/r", "map"}, "/dev/x", {}).ok());
  EXPECT_TRUE(storage_.mapped.empty());
  const auto found = plugin.ConstructBlockVolumeSpec(pod_->uid(), SpecName("pv-1"), {}, {});
  EXPECT_EQ(found->name(), SpecName("pv-1"));
}

TEST_F(CapabilitiesTest, LimitsAreKeyedByTheVolumesKey) {
  VolumePluginWithAttachLimits& plugin = **mgr_.FindVolumePluginWithLimitsBySpec(Spec());
  const std::string key = plugin.VolumeLimitKey(Spec());
  EXPECT_EQ(key.find("storage-limits-"), 0u);
  EXPECT_EQ(plugin.GetVolumeLimits()->at(key), 39);
}

TEST_F(CapabilitiesTest, VolumeOptionsAndConfigStartEmpty) {
  const VolumeConfig config;
  EXPECT_FALSE(config.recycler_pod_template.has_value());
  EXPECT_FALSE(config.provisioning_enabled);
  EXPECT_EQ(config.recycler_minimum_timeout_seconds, 0);
  EXPECT_EQ(config.recycler_timeout_increment_seconds, 0);
  EXPECT_TRUE(config.pv_name.empty() && config.other_attributes.empty());
  const VolumeOptions options;
  EXPECT_EQ(options.reclaim_policy, ReclaimPolicy::kDelete);
  EXPECT_TRUE(options.cluster_name.empty());
  EXPECT_FALSE(options.cloud_tags.has_value());
}

}  // namespace
}  // namespace volumed
