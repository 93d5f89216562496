// Every look-up of VolumePluginMgr: what it finds, and kubelet's words where it does not.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_kernel.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "unit/pluginmgr/stateful_plugin.h"
#include "unit/plugins/plugin_world.h"

namespace volumed {
namespace {

constexpr char kName[] = "x/v";

class FindPluginTest : public ::testing::Test {
 protected:
  void Init(StatefulPlugin::Switches switches) {
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    auto plugin = std::make_unique<StatefulPlugin>(kName, storage_, std::move(switches));
    plugin_ = plugin.get();
    plugins.push_back(std::move(plugin));
    ASSERT_TRUE(mgr_.InitPlugins(std::move(plugins), world_.host).ok());
  }
  void InitCapable() { Init({}); }
  void InitIncapable() { Init({.capable = false}); }
  void InitUnsupporting() { Init({.supports = false}); }

  template <typename T>
  static std::string ErrorOf(const Result<T>& result) {
    return result.ok() ? "no error" : result.error().message();
  }
  static VolumeSpec Spec() { return VolumeSpec::FromVolume({"logs", EmptyDirVolumeSource()}); }

  FakeKernel kernel_;
  PluginWorld world_{kernel_, "/r"};
  StatefulStorage storage_;
  StatefulPlugin* plugin_ = nullptr;
  VolumePluginMgr mgr_;
};

constexpr char kNoMatch[] = "no volume plugin matched";
constexpr char kNoName[] = "no volume plugin matched name: x/z";

TEST_F(FindPluginTest, FindPluginBySpecRefusesASpecThatIsNone) {
  InitCapable();
  VolumeSpec spec = Spec();
  const VolumeSpec taken = std::move(spec);
  const Result<VolumePlugin*> refused = mgr_.FindPluginBySpec(spec);  // NOLINT: moved from
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message(), "could not find plugin because volume spec is nil");
  EXPECT_TRUE(mgr_.FindPluginBySpec(taken).ok());
}

TEST_F(FindPluginTest, FindPersistentPlugin) {
  InitCapable();
  EXPECT_EQ(*mgr_.FindPersistentPluginBySpec(Spec()), plugin_->AsPersistent());
  EXPECT_EQ(*mgr_.FindPersistentPluginByName(kName), plugin_->AsPersistent());
  EXPECT_EQ(&(*mgr_.FindPersistentPluginByName(kName))->plugin(), plugin_);
  EXPECT_EQ(ErrorOf(mgr_.FindPersistentPluginByName("x/z")), kNoName);
}

TEST_F(FindPluginTest, FindPersistentPluginNamesWhatItWasAskedFor) {
  InitUnsupporting();
  EXPECT_EQ(ErrorOf(mgr_.FindPersistentPluginBySpec(Spec())),
            "could not find volume plugin for spec: volume logs (emptyDir)");
}

TEST_F(FindPluginTest, CapabilitiesThatHaveToBeThere) {
  InitIncapable();
  EXPECT_EQ(ErrorOf(mgr_.FindPersistentPluginBySpec(Spec())),
            "no persistent volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindPersistentPluginByName(kName)), "no persistent volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindRecyclablePluginBySpec(Spec())),
            "no recyclable volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindProvisionablePluginByName(kName)),
            "no provisionable volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindCreatablePluginBySpec(Spec())), "no creatable volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindDeletablePluginBySpec(Spec())), "no deletable volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindDeletablePluginByName(kName)), "no deletable volume plugin matched");
  EXPECT_EQ(ErrorOf(mgr_.FindVolumePluginWithLimitsBySpec(Spec())), "no plugin with limits found");
  EXPECT_TRUE(mgr_.ListVolumePluginWithLimits().empty());
}

TEST_F(FindPluginTest, CapabilitiesThatMayBeMissing) {
  InitIncapable();
  EXPECT_EQ(*mgr_.FindAttachablePluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindAttachablePluginByName(kName), nullptr);
  EXPECT_EQ(*mgr_.FindDeviceMountablePluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindDeviceMountablePluginByName(kName), nullptr);
  EXPECT_EQ(*mgr_.FindExpandablePluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindExpandablePluginByName(kName), nullptr);
  EXPECT_EQ(*mgr_.FindNodeExpandablePluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindNodeExpandablePluginByName(kName), nullptr);
  EXPECT_EQ(*mgr_.FindMapperPluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindMapperPluginByName(kName), nullptr);
}

TEST_F(FindPluginTest, WithoutAPluginEachSaysSo) {
  InitUnsupporting();
  EXPECT_EQ(ErrorOf(mgr_.FindRecyclablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindCreatablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindDeletablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindVolumePluginWithLimitsBySpec(Spec())),
            "could not find volume plugin for spec : volume logs (emptyDir)");
  EXPECT_EQ(ErrorOf(mgr_.FindAttachablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindDeviceMountablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindNodeExpandablePluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindMapperPluginBySpec(Spec())), kNoMatch);
  EXPECT_EQ(ErrorOf(mgr_.FindProvisionablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindDeletablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindAttachablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindDeviceMountablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindExpandablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindNodeExpandablePluginByName("x/z")), kNoName);
  EXPECT_EQ(ErrorOf(mgr_.FindMapperPluginByName("x/z")), kNoName);
}

TEST_F(FindPluginTest, FindRecyclableAndDeletableAndProvisionablePlugin) {
  InitCapable();
  EXPECT_EQ(*mgr_.FindRecyclablePluginBySpec(Spec()), plugin_->AsRecyclable());
  EXPECT_EQ(*mgr_.FindDeletablePluginBySpec(Spec()), plugin_->AsDeletable());
  EXPECT_EQ(*mgr_.FindDeletablePluginByName(kName), plugin_->AsDeletable());
  EXPECT_EQ(*mgr_.FindProvisionablePluginByName(kName), plugin_->AsProvisionable());
  EXPECT_EQ(*mgr_.FindCreatablePluginBySpec(Spec()), plugin_->AsProvisionable());
}

TEST_F(FindPluginTest, FindPluginWithLimits) {
  InitCapable();
  EXPECT_EQ(*mgr_.FindVolumePluginWithLimitsBySpec(Spec()), plugin_->AsWithAttachLimits());
  EXPECT_EQ(mgr_.ListVolumePluginWithLimits(),
            (std::vector<VolumePluginWithAttachLimits*>{plugin_->AsWithAttachLimits()}));
}

TEST_F(FindPluginTest, FindAttachableAndDeviceMountablePlugin) {
  InitCapable();
  EXPECT_EQ(*mgr_.FindAttachablePluginBySpec(Spec()), plugin_->AsAttachable());
  EXPECT_EQ(*mgr_.FindAttachablePluginByName(kName), plugin_->AsAttachable());
  EXPECT_EQ(*mgr_.FindDeviceMountablePluginBySpec(Spec()), plugin_->AsDeviceMountable());
  EXPECT_EQ(*mgr_.FindDeviceMountablePluginByName(kName), plugin_->AsDeviceMountable());
}

TEST_F(FindPluginTest, APluginThatCannotAttachThisVolumeIsFoundByNameOnly) {
  Init({.can_attach = false, .can_device_mount = false});
  EXPECT_EQ(*mgr_.FindAttachablePluginBySpec(Spec()), nullptr);
  EXPECT_EQ(*mgr_.FindDeviceMountablePluginBySpec(Spec()), nullptr);
  EXPECT_NE(*mgr_.FindAttachablePluginByName(kName), nullptr);
  EXPECT_NE(*mgr_.FindDeviceMountablePluginByName(kName), nullptr);
}

TEST_F(FindPluginTest, APluginThatCannotTellIsAnError) {
  Init({.fails_to_tell = true});
  EXPECT_EQ(ErrorOf(mgr_.FindAttachablePluginBySpec(Spec())), "cannot tell");
  EXPECT_EQ(ErrorOf(mgr_.FindDeviceMountablePluginBySpec(Spec())), "cannot tell");
}

TEST_F(FindPluginTest, FindExpandableAndNodeExpandableAndMapperPlugin) {
  InitCapable();
  EXPECT_EQ(*mgr_.FindExpandablePluginBySpec(Spec()), plugin_->AsExpandable());
  EXPECT_EQ(*mgr_.FindExpandablePluginByName(kName), plugin_->AsExpandable());
  EXPECT_EQ(*mgr_.FindNodeExpandablePluginBySpec(Spec()), plugin_->AsNodeExpandable());
  EXPECT_EQ(*mgr_.FindNodeExpandablePluginByName(kName), plugin_->AsNodeExpandable());
  EXPECT_EQ(*mgr_.FindMapperPluginBySpec(Spec()), plugin_->AsBlock());
  EXPECT_EQ(*mgr_.FindMapperPluginByName(kName), plugin_->AsBlock());
}

TEST_F(FindPluginTest, WhatOnlyTheNodeExpandsNeedsNothingDoneElsewhere) {
  InitUnsupporting();
  EXPECT_EQ(*mgr_.FindExpandablePluginBySpec(Spec()), nullptr);
  FlexVolumeSource flex;
  flex.driver = "vendor/driver";
  const VolumeSpec spec = VolumeSpec::FromVolume({"v", flex});
  const auto found = mgr_.FindExpandablePluginBySpec(spec);
  ASSERT_TRUE(found.ok());
  ASSERT_NE(*found, nullptr);
  const Quantity size = Quantity::FromBytes(7);
  EXPECT_EQ((*found)->ExpandVolumeDevice(spec, size, Quantity(), {}).value(), size);
  EXPECT_TRUE((*found)->RequiresFsResize());
  EXPECT_TRUE((*found)->plugin().CanSupport(spec));
  const auto unmounter = (*found)->plugin().NewUnmounter(SpecName("v"), PodUid("u"));
  ASSERT_FALSE(unmounter.ok()) << "it stands in for its growth alone";
  EXPECT_EQ(unmounter.error().code(), Code::kUnimplemented);
}

TEST_F(FindPluginTest, RunWaitsForTheHostsObjects) {
  InitCapable();
  EXPECT_TRUE(mgr_.Run({}).ok()) << "a host that is no kubelet's has nothing to wait for";
}

}  // namespace
}  // namespace volumed
