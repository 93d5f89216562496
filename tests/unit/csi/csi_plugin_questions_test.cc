// What the plugin answers of a volume without a call to its driver.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/volume_plugin_with_attach_limits.h"
#include "unit/csi/plugin_fixture.h"

namespace volumed {
namespace {

class CsiPluginTest : public CsiPluginFixture {
 protected:
  static VolumeSpec OtherSpec() { return VolumeSpec::FromVolume({"dir", EmptyDirVolumeSource()}); }
};

TEST_F(CsiPluginTest, ItHasTheVolumesOfAllDriversAndNoOthers) {
  EXPECT_EQ(plugin_->GetPluginName(), "kubernetes.io/csi");
  EXPECT_TRUE(plugin_->CanSupport(CsiSpec()));
  EXPECT_TRUE(plugin_->CanSupport(CsiInlineSpec()));
  EXPECT_FALSE(plugin_->CanSupport(OtherSpec()));
  EXPECT_EQ(Must(plugin_->GetVolumeName(CsiSpec())), "disk.example.com^vol-1");
  EXPECT_EQ(plugin_->GetVolumeName(OtherSpec()).error().code(), Code::kInvalidArgument);
}

TEST_F(CsiPluginTest, TheVolumesOfTheDriverThatIsServedHereAreAnotherPlugins) {
  CsiPluginParts parts = context_->parts;
  parts.served_here = "disk.example.com";
  CsiPlugin plugin(parts);
  ASSERT_TRUE(plugin.Init({host_, wrappers_}).ok());
  EXPECT_FALSE(plugin.CanSupport(CsiSpec()));
  EXPECT_FALSE(plugin.CanSupport(CsiInlineSpec()));
  EXPECT_FALSE(plugin.WorksInLane(CsiSpec()));
  EXPECT_EQ(plugin.AsProvisionerOf("disk.example.com"), nullptr);
  EXPECT_EQ(plugin.WhyNoProvisionerOf("disk.example.com"), "");
  EXPECT_NE(plugin.WhyNoProvisionerOf("other.example.com"), "");
}

TEST_F(CsiPluginTest, AllThatIsDoneWithAVolumeIsInItsDriversLane) {
  EXPECT_EQ(plugin_->FaultDomain(CsiSpec()), "csi:disk.example.com");
  EXPECT_EQ(plugin_->FaultDomain(CsiInlineSpec()), "csi:disk.example.com");
  EXPECT_TRUE(plugin_->WorksInLane(CsiSpec()));
  EXPECT_FALSE(plugin_->WorksInLane(OtherSpec()));
}

TEST_F(CsiPluginTest, APersistentVolumeIsStagedAndAnInlineOneIsNot) {
  EXPECT_TRUE(Must(plugin_->CanDeviceMount(CsiSpec())));
  EXPECT_FALSE(Must(plugin_->CanDeviceMount(CsiInlineSpec())));
  EXPECT_FALSE(Must(plugin_->CanAttach(CsiInlineSpec())));
}

TEST_F(CsiPluginTest, AVolumeDependsOnItsDriverItsAttachmentAndItsSecrets) {
  const std::set<ObjectKey> expected = {
      {ObjectKind::kCsiDriver, "", kName},
      {ObjectKind::kVolumeAttachment, "", CsiAttachmentName("vol-1", kName, "node")},
      {ObjectKind::kSecret, "secrets", "attach"},
      {ObjectKind::kSecret, "secrets", "stage"},
      {ObjectKind::kSecret, "secrets", "publish"},
      {ObjectKind::kSecret, "secrets", "grow"},
      {ObjectKind::kSecret, "secrets", "grow-node"}};
  EXPECT_EQ(plugin_->DependsOn(CsiSpec()), expected);
  EXPECT_EQ(plugin_->DependsOn(CsiInlineSpec()),
            (std::set<ObjectKey>{{ObjectKind::kCsiDriver, "", kName}}));
  EXPECT_TRUE(plugin_->DependsOn(OtherSpec()).empty());
}

TEST_F(CsiPluginTest, ItsCsiDriverSaysWhetherAMountCanHaveALabel) {
  EXPECT_FALSE(plugin_->SupportsSELinuxContextMount(CsiSpec()));
  CsiDriverObject object;
  object.metadata.name = kName;
  object.se_linux_mount = true;
  kubelet_.Put(object);
  EXPECT_TRUE(plugin_->SupportsSELinuxContextMount(CsiSpec()));
}

TEST_F(CsiPluginTest, ItTakesMountOptionsAndSaysOfHowManyVolumesOfADriverTheNodeHasAPlace) {
  EXPECT_TRUE(plugin_->SupportsMountOption());
  ServeNode();
  const VolumePluginWithAttachLimits* limited = plugin_->AsWithAttachLimits();
  ASSERT_NE(limited, nullptr);
  const std::string key = limited->VolumeLimitKey(CsiSpec());
  EXPECT_EQ(key, "attachable-volumes-csi-disk.example.com");
  EXPECT_EQ(limited->VolumeLimitKey(CsiInlineSpec()), "");
  EXPECT_EQ(Must(limited->GetVolumeLimits()), (std::map<std::string, int64_t>{{key, 16}}));
}

// The call of the volume package, which says nothing of what is to follow on the node.
TEST_F(CsiPluginTest, AVolumeIsMadeLargerByItsDriver) {
  const auto process = ServeController({ControllerCapability::EXPAND_VOLUME});
  PutSecretOf("grow", "hunter2-grow");
  ::csi::v1::ControllerExpandVolumeResponse answer;
  answer.set_capacity_bytes(int64_t{3} << 30);
  process->Answer("ControllerExpandVolume", answer);
  const Result<Quantity> grown =
      plugin_->AsExpandable()->ExpandVolumeDevice(CsiSpec(), Quantity::FromBytes(int64_t{2} << 30),
                                                  Quantity::FromBytes(int64_t{1} << 30), Call());
  ASSERT_TRUE(grown.ok()) << grown.error().ToString();
  EXPECT_EQ(*grown, Quantity::FromBytes(int64_t{3} << 30));
}

TEST_F(CsiPluginTest, AnInlineVolumeNeedsAPod) {
  VolumeTarget target =
      PodVolumeTarget(paths_, pod_, plugin_->GetPluginName(), SpecName("scratch"));
  target.pod = nullptr;
  const auto mounter = plugin_->NewMounter(CsiInlineSpec(), target);
  ASSERT_FALSE(mounter.ok());
  EXPECT_EQ(mounter.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace volumed
