// What the plugin answers of a volume without a call to its driver.
#include <gtest/gtest.h>

#include <set>
#include <string>

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
