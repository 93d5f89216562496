// iscsi: which volumes are attached still, by the disks that the node has them from; and how many a
// node takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "blockmapper/volume_path_handler.h"
#include "mounter/host_directory.h"
#include "unit/plugins/iscsi_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class IscsiAttachedTest : public IscsiTest {
 protected:
  NodeName Node() const { return world_.host.node.GetNodeName(); }
  std::vector<bool> Attached(const std::vector<VolumeSpec>& specs) {
    auto answers = plugin_->AsBulkVolumeVerifier()->BulkVerifyVolumes({{Node(), specs}}, {});
    EXPECT_TRUE(answers.ok()) << answers.error().ToString();
    return answers.ok() ? answers->at(Node()) : std::vector<bool>();
  }
  // As an administrator does it, under what is mounted.
  void LogOut(const std::string& portal) {
    RunProgram logout;
    logout.arguments = {kFakeIscsiadm, "-m",         "node", "-p",      portal,
                        "-T",          target_->iqn, "-I",   "default", "--logout"};
    ASSERT_TRUE(kernel_.Call(logout, {}).ok());
  }
  void MapBlock() {
    volume_.spec.volume_mode = VolumeMode::kBlock;
    const auto device = WaitForAttach(Spec());
    ASSERT_TRUE(device.ok()) << device.error().ToString();
    const auto identified = kernel_.Call(IdentifyDevice{HostPath(*device)}, {});
    ASSERT_TRUE(identified.ok());
    const SafePath map{"/r", std::string(kMapPlace).substr(3)};
    const Status mapped =
        VolumePathHandler(kernel_).MapDeviceByBind(*identified, map, "pod-uid", {});
    ASSERT_TRUE(mapped.ok()) << mapped.error().ToString();
  }
};

TEST_F(IscsiAttachedTest, NothingIsMissingOfAVolumeThatIsNotUsedYet) {
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  ASSERT_TRUE(WaitForAttach(Spec()).ok());
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  LogOut("10.0.0.1:3260");
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true)) << "it is logged in to when it is mounted";
}

TEST_F(IscsiAttachedTest, AMountedVolumeIsMissedWhenItsSessionHasEnded) {
  Mount(1);
  Mount(2);
  EXPECT_THAT(Attached({Spec(1), Spec(2)}), ElementsAre(true, true));
  LogOut("10.0.0.1:3260");
  EXPECT_THAT(Attached({Spec(1), Spec(2)}), ElementsAre(false, false));
}

TEST_F(IscsiAttachedTest, AVolumeIsMissedWhenItsDiskAloneHasGone) {
  Mount(1);
  Mount(2);
  kernel_.Remove("/sys/block/sdc");
  EXPECT_THAT(Attached({Spec(2), Spec(1)}), ElementsAre(false, true));
}

TEST_F(IscsiAttachedTest, ADiskOfAnotherLunUnderTheMountIsNotTheVolumes) {
  Mount(2);
  kernel_.AddDirectory(kPlace, 0750);  // of LUN 1
  kernel_.AddMount("ext4", "/dev/sdc", kPlace);
  EXPECT_THAT(Attached({Spec(1), Spec(2)}), ElementsAre(false, true));
}

TEST_F(IscsiAttachedTest, WhatSomebodyMountedInsideTheVolumeIsNotAskedForItsDisk) {
  Mount();
  const std::string inside = std::string(kPlace) + "/export";
  kernel_.AddDirectory(inside, 0755);
  kernel_.AddMount("nfs4", "server:/export", inside);
  const size_t before = kernel_.call_log().size();
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  const std::vector<std::string> calls = kernel_.call_log();
  EXPECT_GT(calls.size(), before);
  for (size_t i = before; i < calls.size(); ++i) {
    EXPECT_THAT(calls[i], Not(HasSubstr("/export")));
  }
}

TEST_F(IscsiAttachedTest, OneOfSeveralPathsIsEnough) {
  target_->multipath = true;
  source_.portals = {"10.0.0.2"};
  Mount();
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  LogOut("10.0.0.2:3260");
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  LogOut("10.0.0.1:3260");
  EXPECT_THAT(Attached({Spec()}), ElementsAre(false));
}

TEST_F(IscsiAttachedTest, ABlockVolumeIsMissedByTheNodeThatAPodHas) {
  MapBlock();
  EXPECT_THAT(Attached({Spec()}), ElementsAre(true));
  LogOut("10.0.0.1:3260");
  EXPECT_THAT(Attached({Spec()}), ElementsAre(false));
}

TEST_F(IscsiAttachedTest, AnotherNodesDisksAreNotSeenFromHere) {
  const auto answer =
      plugin_->AsBulkVolumeVerifier()->BulkVerifyVolumes({{NodeName("far"), {Spec()}}}, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(answer.error().message(), HasSubstr("of node far are not seen from node"));
}

TEST_F(IscsiAttachedTest, WithoutADeviceFinderNobodyIsAsked) {
  IscsiPlugin plugin({});
  ASSERT_TRUE(plugin.Init(PluginContext{world_.host, wrappers_}).ok());
  EXPECT_FALSE(plugin.VerifiesAttachments());
  EXPECT_EQ(
      plugin.AsBulkVolumeVerifier()->BulkVerifyVolumes({{Node(), {Spec()}}}, {}).error().code(),
      Code::kUnimplemented);
}

// ---- limits -------------------------------------------------------------------------------------

TEST_F(IscsiAttachedTest, TheNodeTakesAsManyAsItsAdministratorHasSet) {
  AttachLimitSettings limits;
  IscsiSettings settings;
  settings.limits = &limits;
  IscsiPlugin plugin(settings);
  VolumePluginWithAttachLimits& limited = *plugin.AsWithAttachLimits();
  EXPECT_EQ(&limited.plugin(), &plugin);
  EXPECT_EQ(limited.VolumeLimitKey(Spec()), "storage-limits-iscsi");
  EXPECT_TRUE(limited.GetVolumeLimits()->empty());
  limits.Set({{"kubernetes.io/iscsi", 2}, {"kubernetes.io/fc", 3}});
  EXPECT_THAT(*limited.GetVolumeLimits(), ElementsAre(Pair("storage-limits-iscsi", 2)));
  limits.Set({});
  EXPECT_TRUE(limited.GetVolumeLimits()->empty());
}

TEST(AttachLimitKeyTest, NoKeyIsLongerThanANameOfAResourceAndEachIsItsPluginsOwn) {
  EXPECT_EQ(AttachLimitKey("kubernetes.io/fc"), "storage-limits-fc");
  EXPECT_EQ(AttachLimitKey("acme/array"), "storage-limits-acme-array");
  EXPECT_EQ(AttachLimitKey("csi-disks.example.com"), "storage-limits-csi-disks.example.com");
  const std::string one = AttachLimitKey("acme/" + std::string(80, 'a') + "1");
  const std::string two = AttachLimitKey("acme/" + std::string(80, 'a') + "2");
  EXPECT_EQ(one.size(), 63u);
  EXPECT_NE(one, two);
}

}  // namespace
}  // namespace volumed
