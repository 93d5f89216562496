// Calls by hand after lost records: what is mounted, and on no record.
#include <gmock/gmock.h>

#include "unit/csi/csi_call_by_hand_fixture.h"

namespace volumed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(CsiCallByHandTest, ThroughABindOfTheRootACallAboutAnotherVolumeTookALostPodsMount) {
  unrecorded_->Set({LeftByLostPod(TheVolume())});
  const std::string target = BindRoot() + LostTarget().substr(paths_.root().size());
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  request.set_target_path(target);
  EXPECT_THAT(RefusedByHand(request).message(),
              HasSubstr("of which no record tells: " + LostTarget()));
  EXPECT_THAT(calls_, ElementsAre());
}

// The driver unstaged, detached and deleted it under the mount, which the agent itself listed.
TEST_F(CsiCallByHandTest, AVolumeThatALostPodHasMountedWasUnstagedDetachedAndDeleted) {
  unrecorded_->Set({LeftByLostPod(TheVolume())});
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id(kHandle);
  ::csi::v1::ControllerUnpublishVolumeRequest detach;
  detach.set_volume_id(kHandle);
  const ::csi::v1::NodeUnstageVolumeRequest unstage = UnstageRequest();
  for (const Message* request : std::vector<const Message*>{&remove, &detach, &unstage}) {
    SCOPED_TRACE(request->GetTypeName());
    const Error refused = RefusedByHand(*request);
    EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
    EXPECT_FALSE(refused.maybe_applied());
    EXPECT_THAT(
        refused.message(),
        HasSubstr("is in use: volume pv-1 is mounted in pod lost, of which no record tells: " +
                  LostTarget()));
  }
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  EXPECT_EQ(process_->calls("ControllerUnpublishVolume"), 0);
  EXPECT_EQ(Rows(), 0u);
  kernel_.UnmountBelow(LostTarget());
  const Outcome outcome = ByHand(unstage);
  EXPECT_TRUE(outcome && outcome->value) << "it is mounted no more";
}

TEST_F(CsiCallByHandTest, ALostPodsMountThatSaysByItsNameAloneWhatItIsKeepsThatVolume) {
  unrecorded_->Set({LeftByLostPod(UniqueVolumeName())});
  Name("pv-of-another-name");
  Name("pv-1");
  EXPECT_THAT(RefusedByHand(UnstageRequest()).message(), HasSubstr(LostTarget()));
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiCallByHandTest, ACallAboutAnotherVolumeTookThePathOfALostPodsMount) {
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  for (const UniqueVolumeName& volume : {TheVolume(), UniqueVolumeName()}) {
    unrecorded_->Set({LeftByLostPod(volume)});
    for (const std::string& path :
         {LostTarget(), LostTarget() + "/inside", std::string("/kubelet/pods/lost")}) {
      SCOPED_TRACE(path);
      request.set_target_path(path);
      const Error refused = RefusedByHand(request);
      EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
      EXPECT_THAT(refused.message(), HasSubstr("target_path " + path + " is in use: "));
      EXPECT_THAT(refused.message(), HasSubstr("of which no record tells: " + LostTarget()));
    }
  }
  EXPECT_THAT(calls_, ElementsAre());
}

TEST_F(CsiCallByHandTest, ACallAboutAnotherVolumeTookThePathOfALostPodsBlockVolume) {
  const SpecName spec("pv-1");
  UnrecordedMount left;
  left.plugin = kCsiPluginName;
  left.spec = spec;
  left.pod = PodUid("lost");
  left.places = {CsiBlockMapDir(paths_, spec).Below("lost").Display()};
  kernel_.AddDirectory(CsiBlockMapDir(paths_, spec).Display());
  kernel_.AddMount("devtmpfs", "devtmpfs", left.places.front());
  unrecorded_->Set({left});
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("nosuch");
  request.set_target_path(CsiBlockPublishPath(paths_, spec, PodUid("lost")).Display());
  EXPECT_THAT(RefusedByHand(request).message(), HasSubstr(left.places.front()));
  EXPECT_THAT(calls_, ElementsAre());
}

// A pod's inline volume and its emptyDir in memory have no device, and so were not looked for: the
// driver unmounted both, and deleted the inline one.
TEST_F(CsiCallByHandTest, AVolumeOfALostPodThatHasNoDeviceWasDeletedAndUnmounted) {
  UnrecordedMount scratch = LeftByLostPod(UniqueVolumeName());
  scratch.is_pods_own = true;
  UnrecordedMount memory = scratch;
  memory.plugin = "kubernetes.io/empty-dir";
  memory.spec = SpecName("memory");
  memory.places = {paths_.GetPodVolumeDir(memory.pod, memory.plugin, memory.spec).Display()};
  Mounts(memory.places.front(), "tmpfs");
  unrecorded_->Set({scratch, memory});
  ::csi::v1::DeleteVolumeRequest remove;
  remove.set_volume_id(CsiInlineHandle(scratch.pod, scratch.spec));
  EXPECT_THAT(RefusedByHand(remove).message(), HasSubstr("volume pv-1 is mounted in pod lost"));
  ::csi::v1::NodeUnpublishVolumeRequest request;
  request.set_volume_id("foreign");
  for (const std::string& path :
       {LostTarget(), LostTarget() + "/../nothing", memory.places.front(), BindRoot() + "/pods"}) {
    request.set_target_path(path);
    EXPECT_THAT(RefusedByHand(request).message(), HasSubstr("in pod lost, of which no record"));
  }
  EXPECT_THAT(calls_, ElementsAre());
  EXPECT_EQ(process_->calls("DeleteVolume"), 0);
  Name("pv-1");
  const Outcome outcome = ByHand(UnstageRequest());
  EXPECT_TRUE(outcome && outcome->value) << "no other volume is the pod's own, whatever its name";
}

// A start finds what such a call has mounted on no record of a device.
TEST_F(CsiCallByHandTest, WhatACallWithAnOpenOutcomeHasMountedIsTakenBackUnlessAPodHasIt) {
  Says("NodeStageVolume", Code::kInternal, [this](const Message&) { Mounts(Staging(), disk_); });
  const Outcome outcome = ByHand(StageRequest());
  ASSERT_TRUE(outcome && outcome->failure);
  RestartAll();
  UnrecordedMount staged;
  staged.plugin = kCsiPluginName;
  staged.volume = TheVolume();
  staged.places = {Staging()};
  unrecorded_->Set({staged, LeftByLostPod(TheVolume())});
  EXPECT_THAT(RefusedByHand(UnstageRequest()).message(), HasSubstr(LostTarget()));
  kernel_.UnmountBelow(LostTarget());
  const Outcome back = ByHand(UnstageRequest());
  EXPECT_TRUE(back && back->value);
  EXPECT_EQ(Rows(), 0u);
}

// What is staged shows at both of its paths.
TEST_F(CsiCallByHandTest, APublishWithAnOpenOutcomeIsMadeAgainThoughBothItsPathsShowTheVolume) {
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id(kHandle);
  request.set_staging_target_path(Staging());
  request.set_target_path(LostTarget());
  Mounts(Staging(), disk_);
  Says("NodePublishVolume", Code::kInternal);
  const Outcome outcome = ByHand(request);
  ASSERT_TRUE(outcome && outcome->failure);
  RestartAll();
  UnrecordedMount staged;
  staged.plugin = kCsiPluginName;
  staged.volume = TheVolume();
  staged.places = {Staging()};
  unrecorded_->Set({staged, LeftByLostPod(TheVolume())});
  Does<::csi::v1::NodePublishVolumeResponse>("NodePublishVolume", [](const Message&) {});
  const Outcome again = ByHand(request);
  EXPECT_TRUE(again && again->value);
  EXPECT_EQ(Rows(), 0u);
}

}  // namespace
}  // namespace volumed
