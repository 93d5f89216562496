// Volumes that the node makes for claims, on fake operations.
#include <algorithm>

#include "unit/volumemanager/claims/provisioning_fixture.h"

namespace volumed {
namespace {

using std::chrono::seconds;

using ProvisioningTest = ProvisioningFixture;

TEST_F(ProvisioningTest, AClaimGetsAVolumeOfItsOwnWhichIsBoundToIt) {
  Deliver(Class("mountOptions: []\n") + Claim() + Pod());
  EXPECT_EQ(Made(), 1u);
  ASSERT_TRUE(Row());
  EXPECT_EQ(Row()->state, ProvisionState::kProvisioned);
  EXPECT_EQ(Row()->claim_uid, "c1");
  const auto volume = agent_->catalog.FindPersistentVolume(kVolume);
  ASSERT_NE(volume, nullptr);
  EXPECT_EQ(volume->metadata.annotations.at("pv.kubernetes.io/provisioned-by"),
            "kubernetes.io/host-path");
  EXPECT_EQ(volume->spec.claim_ref, (ClaimReference{"default", "data", "c1"}));
  EXPECT_EQ(volume->spec.reclaim_policy, ReclaimPolicy::kDelete);
  EXPECT_EQ(volume->spec.storage_class_name, "made");
  EXPECT_FALSE(volume->metadata.uid.empty());
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_TRUE(HasEvent("ProvisioningSucceeded"));
}

TEST_F(ProvisioningTest, AVolumeThatWasMadeHereHadNoAge) {
  Deliver(Class() + Claim());
  const auto created = [this] {
    return manager().storage().PersistentVolumes().at(0).created_unix_ms;
  };
  const int64_t at_first = created();
  EXPECT_GT(at_first, 0);
  EXPECT_EQ(at_first % 1000, 0);
  Pass(std::chrono::hours(1));
  StartAgent();
  Deliver(Class() + Claim());
  EXPECT_EQ(created(), at_first);
}

TEST_F(ProvisioningTest, NothingIsMadeBeforeTheIntentIsOnRecord) {
  Deliver(Class());
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1);
  Deliver(Class() + Claim());
  EXPECT_EQ(Made(), 0u);
  Pass(seconds(5));
  EXPECT_EQ(Made(), 1u);
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
}

TEST_F(ProvisioningTest, WaitForFirstConsumerWaitsForThePod) {
  const std::string late = Class("volumeBindingMode: WaitForFirstConsumer\n");
  Deliver(late + Claim());
  EXPECT_EQ(Made(), 0u);
  EXPECT_FALSE(Row());
  Deliver(late + Claim() + Pod());
  EXPECT_EQ(Made(), 1u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ProvisioningTest, ThePodThatIsTheFirstConsumerWasWarnedThatOneIsWaitedFor) {
  const std::string late = Class("volumeBindingMode: WaitForFirstConsumer\n");
  Deliver(late + Claim());
  Deliver(late + Claim() + Pod());
  ASSERT_EQ(Phase("a"), "Ready");
  for (const std::string& event : host_parts.events) {
    EXPECT_EQ(event.find("FailedMount"), std::string::npos) << event;
  }
}

TEST_F(ProvisioningTest, TheVolumeOutlivesTheAgent) {
  Deliver(Class() + Claim() + Pod());
  StartAgent();
  Deliver(Class() + Claim() + Pod());
  EXPECT_EQ(Made(), 0u);
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ProvisioningTest, AnIntentThatAnAgentLeftIsFinishedOrUndone) {
  Deliver(Class());
  operations().Hang(ProvisionKey(kVolume));
  Deliver(Class() + Claim());
  ASSERT_EQ(Row()->state, ProvisionState::kProvisioning);
  StartAgent();
  Deliver(Class() + Claim());
  EXPECT_EQ(Made(), 1u);
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");

  ASSERT_TRUE(DeleteClaim("data"));
  operations().Hang(ProvisionKey("pvc-c2"));
  Deliver(Class() + Claim("c2"));
  ASSERT_TRUE(Row("pvc-c2"));
  ASSERT_EQ(Row("pvc-c2")->state, ProvisionState::kProvisioning);
  removal_deletes = false;
  StartAgent();
  DeliverFailure();
  EXPECT_TRUE(Row("pvc-c2")) << "absence means nothing yet";
  Deliver(Class());
  EXPECT_TRUE(Row("pvc-c2")) << "nobody has deleted its claim";
  ASSERT_TRUE(DeleteClaim("data"));
  EXPECT_EQ(operations().Count("undo_provision", ProvisionKey("pvc-c2")), 1u);
  EXPECT_FALSE(Row("pvc-c2"));
}

TEST_F(ProvisioningTest, AClaimThatLeavesTakesItsVolumeWithIt) {
  Deliver(Class() + Claim() + Pod());
  Deliver(Class() + Pod());
  EXPECT_EQ(operations().Count("reclaim"), 0u) << "a pod has it";
  Deliver(Class());
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Row());
  EXPECT_FALSE(store.Find(kClaimBindingRecordKind, kVolume));
  EXPECT_EQ(agent_->catalog.FindPersistentVolume(kVolume), nullptr);
}

TEST_F(ProvisioningTest, ARetainedVolumeStaysReleasedUntilItIsDeletedByCommand) {
  const std::string kept = Class("reclaimPolicy: Retain\n");
  Deliver(kept + Claim());
  Deliver(kept);
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  EXPECT_EQ(VolumeStatus(), "Released");
  StartAgent();
  Deliver(kept);
  EXPECT_EQ(VolumeStatus(), "Released");
  const std::optional<Status> answer = DeleteVolume(kVolume);
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_FALSE(Row());
  EXPECT_EQ(VolumeStatus(), "unknown");
  EXPECT_EQ(operations().Count("reclaim"), 0u) << "its data is retained";
}

TEST_F(ProvisioningTest, ABoundVolumeThatIsDeletedByCommandIsTerminatingAlsoForTheNextAgent) {
  Deliver(Class() + Claim() + Pod());
  ASSERT_TRUE(DeleteVolume(kVolume));
  EXPECT_EQ(VolumeStatus(), "Terminating");
  StartAgent();
  Deliver(Class() + Claim() + Pod());
  EXPECT_EQ(VolumeStatus(), "Terminating");
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  Deliver(Class());
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Row());
}

TEST_F(ProvisioningTest, WhatCannotBeHadIsRefusedWithItsReasonAndLeavesNoRecord) {
  Deliver(Class("parameters: {speed: fast}\n") + Claim() + Pod());
  EXPECT_EQ(Made(), 0u);
  EXPECT_FALSE(Row());
  EXPECT_NE(Problem().find("Failed to create provisioner: no such parameter; the owner of "
                           "StorageClass "),
            std::string::npos)
      << Problem();
  EXPECT_TRUE(HasEvent("ProvisioningFailed"));
  Deliver("");  // a class is not changed, but made anew
  Deliver(Class("mountOptions: [noatime]\n") + Claim() + Pod());
  EXPECT_NE(Problem().find("StorageClass \"made\" has mount options [noatime]"), std::string::npos)
      << Problem();
  Deliver(Class() + Claim() + Pod());
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ProvisioningTest, AFailureIsToldAndTriedAgain) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kUnavailable, "the disk sleeps"), 1);
  Deliver(Class() + Claim() + Pod());
  EXPECT_NE(Problem().find("the disk sleeps"), std::string::npos) << Problem();
  EXPECT_TRUE(HasEvent("ProvisioningFailed"));
  Pass(seconds(5));
  EXPECT_EQ(Made(), 2u);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ProvisioningTest, AnotherProvisionerIsWaitedFor) {
  Deliver(Class("", "example.org/fast") + Claim() + Pod());
  EXPECT_NE(Problem().find("example.org/fast is to provision one; provisioner example.org/fast"),
            std::string::npos)
      << Problem();
  EXPECT_FALSE(Row());
  EXPECT_TRUE(HasEvent("ExternalProvisioning"));
}

TEST_F(ProvisioningTest, AClaimWithoutAUidIsTheSameOverRestartsAndAnotherOnceItWasRemoved) {
  Deliver(Class("reclaimPolicy: Retain\n") + Claim(""));
  const std::string first = ClaimStatus();
  EXPECT_EQ(first.find("Bound pvc-"), 0u) << first;
  StartAgent();
  Deliver(Class("reclaimPolicy: Retain\n") + Claim(""));
  EXPECT_EQ(ClaimStatus(), first);
  Deliver(Class("reclaimPolicy: Retain\n"));
  Deliver(Class("reclaimPolicy: Retain\n") + Claim(""));
  EXPECT_NE(ClaimStatus(), first);
  EXPECT_EQ(ClaimStatus().find("Bound pvc-"), 0u) << ClaimStatus();
  EXPECT_EQ(VolumeStatus(first.substr(std::string("Bound ").size())), "Released");
}

// It had the deleted claim's uid: it waited for a volume that was made already, and was bound to
// that one later.
TEST_F(ProvisioningTest, ANewClaimGotTheUidOfADeletedOneBeforeTheFirstDecisionOfAnAgent) {
  const std::string uid = DeleteWhileItsVolumeIsBeingDeleted();
  StartAgentThatCannotDecide();
  EXPECT_EQ(VolumeStatus(ProvisionedVolumeName(uid)), "unknown") << "nothing is decided yet";
  EXPECT_EQ(UidOnRecord(), "");

  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 0);
  Pass(seconds(30));
  Deliver(Class() + Claim(""));
  EXPECT_NE(ClaimUid(), uid);
  EXPECT_EQ(ClaimStatus(), "Bound " + ProvisionedVolumeName(ClaimUid()));
  EXPECT_EQ(VolumeStatus(ProvisionedVolumeName(uid)), "unknown") << "it is deleted";
}

TEST_F(ProvisioningTest, ANewClaimGotTheUidOfADeletedOneWhileTheRowOfItsVolumeWasWrittenAgain) {
  const std::string uid = DeleteWhileItsVolumeIsBeingDeleted();
  const OperationKey reclaim = ReclaimKey(ProvisionedVolumeName(uid));
  EXPECT_EQ(UidOnRecord(), "");
  operations().FailNext("reclaim", reclaim, Error::NotApplied(Code::kPermissionDenied, "refused"));
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1, kClaimBindingRecordKind);
  operations().Release(reclaim);
  Settle();
  EXPECT_EQ(VolumeStatus(ProvisionedVolumeName(uid)), "Failed");
  EXPECT_EQ(UidOnRecord(), "");
}

TEST_F(ProvisioningTest, ANewClaimGotTheUidOfADeletedOneWhileTheRowsOfItsDeletedVolumeWent) {
  const std::string uid = DeleteWhileItsVolumeIsBeingDeleted();
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1, kProvisionRecordKind);
  operations().Release(ReclaimKey(ProvisionedVolumeName(uid)));
  Settle();
  EXPECT_TRUE(Row(ProvisionedVolumeName(uid)));
  EXPECT_EQ(UidOnRecord(), "");
  Pass(seconds(30));
  EXPECT_FALSE(Row(ProvisionedVolumeName(uid)));
  EXPECT_EQ(UidOnRecord(), "");
}

// It was told for ever that its volume is being made.
TEST_F(ProvisioningTest, AClaimThatComesAgainWithItsUidDidNotSayThatItsFormerVolumeIsInTheWay) {
  Deliver(Class() + Claim());
  operations().FailNext("reclaim", ReclaimKey(kVolume),
                        Error::NotApplied(Code::kPermissionDenied, "refused"), 1);
  Deliver(Class());
  EXPECT_EQ(VolumeStatus(), "Failed");
  Deliver(Class() + Claim() + Pod());
  EXPECT_NE(Problem().find("PersistentVolume pvc-c1, which has the name of the volume that is to "
                           "be made for it, is that of a deleted claim with its uid, and has to be "
                           "deleted first; an administrator"),
            std::string::npos)
      << Problem();
  Pass(seconds(30));
  EXPECT_EQ(operations().Count("reclaim"), 2u);
  EXPECT_EQ(Made(), 2u);
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(ProvisioningTest, AClaimThatNoCommandHasDeletedKeepsItsUidAndItsVolumeOverARestart) {
  removal_deletes = false;
  StartAgent();
  Deliver(Class() + Claim(""));
  const std::string uid = ClaimUid();
  StartAgentThatCannotDecide();
  EXPECT_EQ(UidOnRecord(), uid);
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 0);
  Pass(seconds(30));
  Deliver(Class());
  EXPECT_EQ(UidOnRecord(), uid) << "nobody has deleted it";
  Deliver(Class() + Claim(""));
  EXPECT_EQ(ClaimUid(), uid);
  EXPECT_EQ(ClaimStatus(), "Bound " + ProvisionedVolumeName(uid));
  EXPECT_EQ(operations().Count("reclaim"), 0u);
}

TEST_F(ProvisioningTest, ARecordThatCannotBeReadKeepsEveryClaimAsItIs) {
  Deliver(Class() + Claim());
  store.Corrupt(kProvisionRecordKind, kVolume, "checksum");
  StartAgent();
  Deliver(Class());
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  Deliver(Class() + Claim("c2") + Pod());
  EXPECT_EQ(Made("pvc-c2"), 0u);
  EXPECT_NE(Problem().find("until it is repaired, no other claim is bound"), std::string::npos)
      << Problem();
}

}  // namespace
}  // namespace volumed
