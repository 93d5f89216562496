// Attaching by VolumeAttachments, that the two ways are never mixed, which volumes are attached at
// all, and how many a node takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "csi/csi_attach.h"
#include "csi/csi_attach_limits.h"
#include "unit/csi/attach_fixture.h"

namespace volumed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class CsiAttachObjectsTest : public CsiAttachFixture {
 protected:
  void ExpectWaits(const std::string& why) {
    const auto attached = Attach();
    ASSERT_FALSE(attached.ok());
    EXPECT_EQ(attached.error().code(), Code::kUnavailable);
    EXPECT_FALSE(attached.error().maybe_applied());
    EXPECT_THAT(attached.error().message(), HasSubstr(why));
    EXPECT_FALSE(Row()) << "nothing is there";
  }
  static CsiDriverObject Object(std::optional<int64_t> period = std::nullopt) {
    CsiDriverObject object;
    object.metadata.name = kName;
    object.node_allocatable_update_period_seconds = period;
    return object;
  }
};

TEST_F(CsiAttachObjectsTest, AVolumeThatItsObjectSaysIsAttachedIsAndItsMetadataIsTheContext) {
  const auto process = ServeAttacher();
  PutAttachment(true).attachment_metadata = {{"lun", "4"}};
  const auto attached = Attach();
  ASSERT_TRUE(attached.ok()) << attached.error().ToString();
  EXPECT_EQ(*attached, AttachmentName());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByObjects);
  EXPECT_EQ(Row()->node_id, "");
  EXPECT_THAT(Row()->publish_context, ElementsAre(Pair("lun", "4")));
  EXPECT_EQ(Calls(process, "ControllerPublishVolume"), 0) << "somebody else attaches";
}

TEST_F(CsiAttachObjectsTest, WithoutItsObjectItWaitsForTheAttacher) {
  ServeController({});
  Setting(CsiAttach::kObjects);
  ExpectWaits("waits for its attacher: no source has the VolumeAttachment " + AttachmentName());
}

TEST_F(CsiAttachObjectsTest, AnObjectThatIsBeingDeletedAttachesNothing) {
  ServeController({});
  PutAttachment(true).metadata.deletion_unix_millis = 1;
  ExpectWaits("volume attachment is being deleted");
}

TEST_F(CsiAttachObjectsTest, AnObjectThatIsNotAttachedIsWaitedFor) {
  ServeController({});
  PutAttachment(false);
  ExpectWaits("is not attached for volume attachment " + AttachmentName());
}

TEST_F(CsiAttachObjectsTest, TheErrorOfTheAttacherIsTold) {
  ServeController({});
  PutAttachment(false).attach_error =
      VolumeError{.unix_millis = {}, .message = "zone is full", .error_code = 13};
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kInternal);
  EXPECT_FALSE(attached.error().maybe_applied());
  EXPECT_THAT(attached.error().message(), HasSubstr("zone is full"));
}

TEST_F(CsiAttachObjectsTest, AnOlderErrorOfAnAttachedVolumeCountsNoMore) {
  ServeController({});
  PutAttachment(true).attach_error =
      VolumeError{.unix_millis = {}, .message = "earlier", .error_code = 8};
  EXPECT_TRUE(Attach().ok());
}

TEST_F(CsiAttachObjectsTest, Code8OfTheAttacherSaysThatTheNodeTakesNoMore) {
  const auto process = ServeController({});
  PutAttachment(false).attach_error =
      VolumeError{.unix_millis = {}, .message = "too many", .error_code = 8};
  const int before = Calls(process, "NodeGetInfo");
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kResourceExhausted);
  EXPECT_FALSE(attached.error().maybe_applied()) << "nobody here has sent anything";
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), before + 1) << "its limit is asked at once";
  EXPECT_TRUE(attaching_->VerifyExhaustedResource(Spec()));
  EXPECT_FALSE(attaching_->VerifyExhaustedResource(Spec("vol-2")));
  EXPECT_THAT(parts_.events, Contains(HasSubstr("VolumeAttachmentLimitExceeded")));
  PutAttachment(true).attach_error.reset();
  ASSERT_TRUE(Attach().ok());
  EXPECT_FALSE(attaching_->VerifyExhaustedResource(Spec()));
}

TEST_F(CsiAttachObjectsTest, AnObjectOfAnotherNodeOrAttacherIsNotBelieved) {
  ServeController({});
  PutAttachment(true).node_name = "elsewhere";
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kFailedPrecondition);
  PutAttachment(true).attacher = "other.example.com";
  EXPECT_FALSE(Attach().ok());
}

TEST_F(CsiAttachObjectsTest, BeforeAllSourcesAreCompleteNobodyKnowsWhoAttaches) {
  const auto process = ServeAttacher();
  attachments_.complete = false;
  ExpectWaits("a source is not complete yet");
  EXPECT_EQ(Calls(process, "ControllerPublishVolume"), 0);
  attachments_.complete = true;
  EXPECT_TRUE(Attach().ok());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByController);
}

TEST_F(CsiAttachObjectsTest, BeforeAMountTheObjectIsLookedAtAgain) {
  ServeController({});
  PutAttachment(true).attachment_metadata = {{"lun", "4"}};
  ASSERT_TRUE(Attach().ok());
  PutAttachment(true).attachment_metadata = {{"lun", "5"}};
  ASSERT_TRUE(WaitForAttach().ok());
  EXPECT_THAT(Row()->publish_context, ElementsAre(Pair("lun", "5")));
}

TEST_F(CsiAttachObjectsTest, AMountWaitsIfTheObjectIsGone) {
  ServeController({});
  PutAttachment(true);
  ASSERT_TRUE(Attach().ok());
  attachments_.all.clear();
  const auto waited = WaitForAttach();
  ASSERT_FALSE(waited.ok());
  EXPECT_EQ(waited.error().code(), Code::kUnavailable);
}

TEST_F(CsiAttachObjectsTest, ADetachWaitsUntilTheObjectIsGoneOrSaysSo) {
  const auto process = ServeAttacher();
  PutAttachment(true);
  ASSERT_TRUE(Attach().ok());
  VolumeAttachment& attachment = PutAttachment(true);
  attachment.detach_error =
      VolumeError{.unix_millis = {}, .message = "array busy", .error_code = {}};
  Status detached = Detach();
  ASSERT_FALSE(detached.ok());
  EXPECT_EQ(detached.error().code(), Code::kUnavailable);
  EXPECT_FALSE(detached.error().maybe_applied());
  EXPECT_THAT(detached.error().message(), HasSubstr("waits for its attacher to detach it"));
  EXPECT_THAT(detached.error().message(), HasSubstr("array busy"));
  attachments_.all.clear();
  attachments_.complete = false;
  EXPECT_FALSE(Detach().ok()) << "it may be in a source that has not come yet";
  attachments_.complete = true;
  EXPECT_TRUE(Detach().ok());
  EXPECT_FALSE(Row());
  EXPECT_EQ(Calls(process, "ControllerUnpublishVolume"), 0);
}

// ---- The ways are never mixed ----

TEST_F(CsiAttachObjectsTest, AVolumeThatTheAgentAttachedStaysItsOwnWhenAnObjectAppears) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kDeadlineExceeded);
  ASSERT_FALSE(Attach().ok());
  PutAttachment(true);
  Published(*process, {});
  const auto again = Attach();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(again.error().message(), HasSubstr(AttachmentName()));
  EXPECT_THAT(published_, IsEmpty());
  Setting(CsiAttach::kObjects);
  ASSERT_TRUE(Detach().ok()) << "by the recorded way, whatever is set and whoever attaches now";
  EXPECT_EQ(unpublished_.size(), 1u);
  EXPECT_FALSE(Row());
  ASSERT_TRUE(Attach().ok());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByObjects);
}

TEST_F(CsiAttachObjectsTest, AVolumeThatIsAttachedByObjectsIsNeverDetachedByTheController) {
  const auto process = ServeAttacher();
  PutAttachment(true);
  ASSERT_TRUE(Attach().ok());
  Setting(CsiAttach::kController);
  EXPECT_FALSE(Detach().ok());
  ASSERT_TRUE(WaitForAttach().ok());
  ASSERT_TRUE(UnmountDevice().ok());
  attachments_.all.clear();
  ASSERT_TRUE(Detach().ok());
  EXPECT_EQ(Calls(process, "ControllerPublishVolume"), 0);
  EXPECT_EQ(Calls(process, "ControllerUnpublishVolume"), 0);
}

TEST_F(CsiAttachObjectsTest, ADriverWithObjectsGetsNoCallsOfTheAgentForANewVolume) {
  const auto process = ServeAttacher();
  PutAttachment(true, "vol-2");
  ExpectWaits("waits for its attacher");
  Setting(CsiAttach::kController);
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_EQ(attached.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(attached.error().message(), HasSubstr("VolumeAttachments of the driver"));
  // Nor once they are gone: whoever made them is still at work.
  Setting(CsiAttach::kAuto);
  attachments_.all.clear();
  ExpectWaits("waits for its attacher");
  EXPECT_EQ(Calls(process, "ControllerPublishVolume"), 0);
}

TEST_F(CsiAttachObjectsTest, ObjectsOfAnotherDriverSayNothing) {
  ServeAttacher();
  VolumeAttachment other = PutAttachment(true, "vol-2");
  other.attacher = "other.example.com";
  attachments_.all = {{"csi-other", other}};
  ASSERT_TRUE(Attach().ok());
  EXPECT_EQ(Row()->attach_way, AttachWay::kByController);
}

TEST_F(CsiAttachObjectsTest, WhatWasNeverSentAnywhereIsDetachedOnceNoObjectHasIt) {
  const auto process = ServeAttacher();
  // Found by an agent that adopted the node: its row says nothing of a way.
  DeviceRecord found;
  found.key = CsiUniqueName(kName, kHandle);
  found.plugin_name = kCsiPluginName;
  found.attachable = true;
  found.boot_id = kBoot;
  found.state = VolumeState::kAttached;
  devices_->Restore(found);
  PutAttachment(true);
  EXPECT_FALSE(Detach().ok());
  attachments_.all.clear();
  EXPECT_TRUE(Detach().ok());
  EXPECT_EQ(Calls(process, "ControllerUnpublishVolume"), 0);
}

TEST_F(CsiAttachObjectsTest, WhetherItIsAttachedSaysTheObject) {
  ServeController({});
  PutAttachment(true);
  ASSERT_TRUE(Attach().ok());
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(true));
  PutAttachment(false);
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(false));
  attachments_.all.clear();
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(false));
  attachments_.complete = false;
  EXPECT_THAT(AreAttached({Spec()}), ElementsAre(true)) << "it is not known";
}

// ---- Which are attached at all ----

TEST_F(CsiAttachObjectsTest, AttachRequiredFalseAttachesNothing) {
  ServeController({});
  EXPECT_TRUE(*attaching_->CanAttach(Spec()))
      << "a driver without a CSIDriver attaches, as in kubelet";
  CsiDriverObject object = Object();
  object.attach_required = false;
  kubelet_.Put(object);
  EXPECT_FALSE(*attaching_->CanAttach(Spec()));
}

TEST_F(CsiAttachObjectsTest, OnlyADriverThatWasNeverSeenHasNoAnswer) {
  const auto unknown = attaching_->CanAttach(Spec());
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code(), Code::kUnavailable);
  EXPECT_THAT(unknown.error().message(),
              HasSubstr("not found in the list of registered CSI drivers"));
  const auto process = ServeController({});
  dialer_.Kill(process);
  scheduler_.RunFor(seconds(1));
  EXPECT_TRUE(*attaching_->CanAttach(Spec()));
}

TEST_F(CsiAttachObjectsTest, WhileItIsNotKnownWhatTheCsiDriverSaysNothingIsDecided) {
  ServeController({});
  kubelet_.synced = false;
  EXPECT_FALSE(attaching_->CanAttach(Spec()).ok());
}

TEST_F(CsiAttachObjectsTest, AVolumeThatMayBeHereStaysWhatItsRecordSays) {
  ServeAttacher();
  ASSERT_TRUE(Attach().ok());
  CsiDriverObject object = Object();
  object.attach_required = false;
  kubelet_.Put(object);
  EXPECT_TRUE(*attaching_->CanAttach(Spec()));
  kubelet_.synced = false;
  EXPECT_TRUE(*attaching_->CanAttach(Spec()));
}

TEST_F(CsiAttachObjectsTest, AnInlineVolumeIsNotAttached) {
  PodVolume volume;
  CsiVolumeSource source;
  source.driver = kName;
  volume.source = source;
  const auto answer = attaching_->CanAttach(VolumeSpec::FromVolume(volume));
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(*answer);
}

// ---- Limits ----

TEST_F(CsiAttachObjectsTest, TheLimitIsWhatTheDriverSaysAlsoWhileItIsAway) {
  const auto process = ServeController({});
  const std::map<std::string, int64_t> limits = {{"attachable-volumes-csi-disk.example.com", 16}};
  EXPECT_EQ(CsiVolumeLimits(*drivers_), limits);
  EXPECT_EQ(CsiVolumeLimitKey(Spec()), "attachable-volumes-csi-disk.example.com");
  dialer_.Kill(process);
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(CsiVolumeLimits(*drivers_), limits);
}

TEST_F(CsiAttachObjectsTest, ALongNameOfADriverIsCutAsKubernetesCutsIt) {
  const std::string longest(39, 'a');
  EXPECT_EQ(CsiAttachLimitKey(longest), "attachable-volumes-csi-" + longest);
  // Source: GetCSIAttachLimitKey@v1.36.2; the digest is the SHA-1 of forty times "a".
  EXPECT_EQ(CsiAttachLimitKey(std::string(40, 'a')),
            "attachable-volumes-csi-" + std::string(23, 'a') + "a56559418dc7908c");
}

TEST_F(CsiAttachObjectsTest, ANodeThatTakesNoMoreSaysTheController) {
  const auto process = ServeAttacher();
  Fails(*process, "ControllerPublishVolume", Code::kResourceExhausted, "max volumes attached");
  const int before = Calls(process, "NodeGetInfo");
  const auto attached = Attach();
  ASSERT_FALSE(attached.ok());
  EXPECT_TRUE(attached.error().maybe_applied());
  scheduler_.RunFor(seconds(1));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), before + 1);
  EXPECT_TRUE(attaching_->VerifyExhaustedResource(Spec()));
  EXPECT_THAT(parts_.events, Contains(HasSubstr("max volumes attached")));
  Published(*process, {});
  ASSERT_TRUE(Detach().ok());
  EXPECT_FALSE(attaching_->VerifyExhaustedResource(Spec()));
}

TEST_F(CsiAttachObjectsTest, ADriverIsAskedForItsLimitAsOftenAsItsCsiDriverSays) {
  const auto process = ServeController({});
  scheduler_.RunFor(minutes(10));
  const int without = Calls(process, "NodeGetInfo");
  kubelet_.Put(Object(60));
  scheduler_.RunFor(milliseconds(1));
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), without + 10);
  kubelet_.Put(Object(60));  // any other change of it does not begin the period anew
  NodeInfo(*process, "node-a");
  scheduler_.RunFor(minutes(1));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), without + 11);
  kubelet_.Remove(kName);
  scheduler_.RunFor(minutes(10));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), without + 11);
}

TEST_F(CsiAttachObjectsTest, ACsiDriverThatWasThereBeforeTheAgentHasItsPeriodToo) {
  const auto process = ServeController({});
  kubelet_.Put(Object(30));
  RestartAgent();
  const int before = Calls(process, "NodeGetInfo");
  scheduler_.RunFor(seconds(61));
  EXPECT_EQ(Calls(process, "NodeGetInfo"), before + 2);
}

}  // namespace
}  // namespace volumed
