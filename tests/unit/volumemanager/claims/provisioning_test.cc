// Volumes that the node makes for claims, on fake operations.
#include <algorithm>

#include "unit/volumemanager/manager_fixture.h"
#include "volumemanager/claims/provisioning.h"

namespace volumed {
namespace {

using std::chrono::seconds;

constexpr const char* kVolume = "pvc-c1";

class ProvisioningTest : public ManagerTest {
 protected:
  void SetUp() override { StartAgent(); }

  static std::string Class(const std::string& more = "",
                           const std::string& provisioner = "kubernetes.io/host-path") {
    return "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: made}\n"
           "provisioner: " +
           provisioner + "\n" + more;
  }
  static std::string Claim(const std::string& uid = "c1") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "
           "default" +
           (uid.empty() ? "" : ", uid: " + uid) +
           "}\nspec: {accessModes: [ReadWriteOnce], storageClassName: made, resources: {requests: "
           "{storage: 1Gi}}}\n";
  }
  std::string Pod(const std::string& name = "a") { return PodManifest(name, {kUse}); }

  std::optional<ProvisionRecord> Row(const std::string& volume = kVolume) const {
    const auto row = store.Find(kProvisionRecordKind, volume);
    if (!row) return std::nullopt;
    return DecodeProvisionRecord(*row).value();
  }
  size_t Made(const std::string& volume = kVolume) {
    return operations().Count("provision", ProvisionKey(volume));
  }
  std::string ClaimStatus() {
    const auto status =
        manager().storage().StatusOf({ObjectKind::kPersistentVolumeClaim, "default", "data"});
    return status ? status->phase + " " + status->other : "unknown";
  }
  std::string VolumeStatus(const std::string& volume = kVolume) {
    const auto status = manager().storage().StatusOf({ObjectKind::kPersistentVolume, "", volume});
    return status ? status->phase : "unknown";
  }
  std::string Problem(const std::string& pod = "a") {
    const VolumeView volume = View(pod).volumes.at(0);
    return volume.problem ? volume.problem->message + "; " + volume.problem->who_must_act : "";
  }
  // Makes a claim without a uid and deletes it; the deletion of its volume does not end until that
  // is released. Returns the claim's uid.
  std::string DeleteWhileItsVolumeIsBeingDeleted() {
    Deliver(Class() + Claim(""));
    const std::string uid = ClaimUid();
    operations().Hang(ReclaimKey(ProvisionedVolumeName(uid)));
    Deliver(Class());
    for (const Record& row : store.All()) {
      EXPECT_NE(row.kind, kDeletedObjectRecordKind) << "else that row would keep the uid back";
    }
    EXPECT_EQ(VolumeStatus(ProvisionedVolumeName(uid)), "Released");
    return uid;
  }
  std::string ClaimUid() const {
    const auto claim = agent_->catalog.FindPersistentVolumeClaim("default", "data");
    return claim == nullptr ? "no claim" : claim->metadata.uid;
  }
  // What a claim of that name that is applied now would get.
  std::string UidOnRecord() const {
    return agent_->manager->storage().UidOnRecord(
        {ObjectKind::kPersistentVolumeClaim, "default", "data"});
  }
  // An agent that has loaded its records and has not decided about claims, as long as a row of this
  // kind cannot be written.
  void StartAgentThatCannotDecide() {
    const ObjectUidRecord of_former_release{{ObjectKind::kPersistentVolumeClaim, "default", "x"},
                                            "x"};
    ASSERT_TRUE(store.Put(EncodeRecord(of_former_release), kObjectUidRecordDurability).ok());
    store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1000, kKnownObjectRecordKind);
    StartAgent();
    Settle();
    ASSERT_TRUE(agent_->sources_started);
  }
  // Of the claim.
  bool HasEvent(const std::string& reason) const {
    const auto& events = host_parts.object_events;
    return std::any_of(events.begin(), events.end(), [&](const std::string& event) {
      return event.find("data") != std::string::npos && event.find(reason) != std::string::npos;
    });
  }
};

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
  EXPECT_NE(Problem().find("Failed to create provisioner: no such parameter; an administrator"),
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

// ---- volumes that drivers make ------------------------------------------------------------------

class DriverProvisioningTest : public ProvisioningTest {
 protected:
  static std::string DriverClass(const std::string& more = "") {
    return Class(more, "disk.example.com");
  }
  const ProvisionRequest& LastRequest(const std::string& operation = "provision",
                                      const std::string& volume = kVolume) {
    return *operations().Last(operation, ProvisionKey(volume))->provision;
  }
  // As the agent tells it of a driver that has registered.
  void DriverComes() {
    manager().events().DriverChanged("kubernetes.io/csi", "csi:disk.example.com");
    Settle();
  }
  // A volume that may have been made, whose claim is gone, and that the driver does not take back.
  void UndoInVain() {
    const Error error = Error::MaybeApplied(Code::kInternal, "no disk is so large");
    operations().FailNext("provision", ProvisionKey(kVolume), error, 1000);
    operations().FailNext("undo_provision", ProvisionKey(kVolume), error, 1000);
    Deliver(DriverClass() + Claim());
    ASSERT_TRUE(DeleteClaim("data"));
    Settle();
    ASSERT_TRUE(Row());
  }
  const CsiPersistentVolumeSource* SourceOf(const std::string& volume = kVolume) {
    const auto object = agent_->catalog.FindPersistentVolume(volume);
    return object == nullptr ? nullptr
                             : std::get_if<CsiPersistentVolumeSource>(&object->spec.source);
  }
};

TEST_F(DriverProvisioningTest, AClassThatNamesADriverHasTheDriverMakeTheVolume) {
  Deliver(DriverClass() + Claim() + Pod());
  ASSERT_EQ(Made(), 1u);
  EXPECT_EQ(LastRequest().plan, "a disk of 1Gi");
  EXPECT_EQ(LastRequest().claim_uid, "c1");
  ASSERT_TRUE(Row());
  EXPECT_EQ(Row()->plugin_name, "disk.example.com");
  EXPECT_EQ(Row()->plan, "a disk of 1Gi");
  ASSERT_NE(SourceOf(), nullptr);
  EXPECT_EQ(SourceOf()->volume_handle, "vol-pvc-c1");
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
}

TEST_F(DriverProvisioningTest, TheNextAgentAsksByThePlanThatIsOnRecord) {
  operations().Hang(ProvisionKey(kVolume));
  Deliver(DriverClass() + Claim());
  ASSERT_EQ(Made(), 1u);
  const PersistentVolume planned = LastRequest().planned;
  StartAgent();
  Deliver(DriverClass() + Claim());
  ASSERT_EQ(Made(), 1u);
  EXPECT_EQ(LastRequest().plan, "a disk of 1Gi");
  EXPECT_EQ(LastRequest().planned.spec, planned.spec);
}

TEST_F(DriverProvisioningTest, AnIntentStaysWhileItsDriverIsNotKnown) {
  operations().Hang(ProvisionKey(kVolume));
  Deliver(DriverClass() + Claim());
  driver->makes = false;
  StartAgent();
  Deliver(DriverClass() + Claim());
  EXPECT_TRUE(Row()) << "the claim still waits for the volume";
  EXPECT_EQ(operations().Count("undo_provision"), 0u);
  driver->makes = true;
  DriverComes();
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
}

TEST_F(DriverProvisioningTest, WhatADriverLacksToMakeAVolumeIsSaidByThePodAndWhoIsToAct) {
  driver->makes = false;
  driver->why_not = "no CSI driver disk.example.com has registered";
  Deliver(DriverClass() + Claim() + Pod());
  EXPECT_NE(Problem().find("disk.example.com is to provision one: no CSI driver disk.example.com "
                           "has registered; an administrator"),
            std::string::npos)
      << Problem();
  driver->why_not = "there is no connection to its controller";
  manager().events().MakersChanged();
  Settle();
  EXPECT_NE(Problem().find("provision one: there is no connection to its controller; "),
            std::string::npos)
      << Problem();
  driver->makes = true;
  manager().events().DriverIsBack("kubernetes.io/csi", "csi:disk.example.com");
  Settle();
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
}

// As after the controller's connection is there again: it waited for its back-off.
TEST_F(DriverProvisioningTest, ADeletionThatFailedIsTriedAtOnceWhenItsDriverIsBack) {
  Deliver(DriverClass() + Claim());
  operations().FailNext("reclaim", ReclaimKey(kVolume),
                        Error::NotApplied(Code::kUnavailable, "no connection"), 1);
  Deliver(DriverClass());
  ASSERT_EQ(VolumeStatus(), "Failed");
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  manager().events().DriverIsBack("kubernetes.io/csi", "csi:disk.example.com");
  Settle();
  EXPECT_EQ(operations().Count("reclaim"), 2u);
}

TEST_F(DriverProvisioningTest, WhatCertainlyWasNotMadeIsForgottenWithoutACall) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::NotApplied(Code::kInvalidArgument, "no such tier"), 1000);
  Deliver(DriverClass() + Claim());
  ASSERT_TRUE(Row());
  ASSERT_TRUE(DeleteClaim("data"));
  EXPECT_FALSE(Row());
  EXPECT_EQ(operations().Count("undo_provision"), 0u) << "it would make it first, to learn its id";
}

TEST_F(DriverProvisioningTest, WhatMayHaveBeenMadeIsUndoneByThePlan) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"), 1000);
  Deliver(DriverClass() + Claim());
  ASSERT_TRUE(DeleteClaim("data"));
  EXPECT_EQ(operations().Count("undo_provision"), 1u);
  EXPECT_EQ(LastRequest("undo_provision").plan, "a disk of 1Gi");
  EXPECT_FALSE(Row());
}

// Nothing but the log said that the driver was asked again and again.
TEST_F(DriverProvisioningTest, WhatWasUndoneInVainWasShownNowhere) {
  UndoInVain();
  const std::vector<PersistentVolumeView> volumes = manager().storage().PersistentVolumes();
  ASSERT_EQ(volumes.size(), 1u);
  EXPECT_EQ(volumes[0].name, kVolume);
  EXPECT_EQ(volumes[0].phase, "Undoing");
  EXPECT_EQ(volumes[0].claim, "default/data");
  EXPECT_EQ(volumes[0].reason, "no disk is so large");
  const std::vector<OwedView> owed = manager().storage().Owed();
  ASSERT_EQ(owed.size(), 1u);
  EXPECT_EQ(owed[0].what, "volume pvc-c1");
  EXPECT_EQ(owed[0].problem.message, "no disk is so large");
  EXPECT_EQ(owed[0].problem.who_must_act,
            "nobody: retried; `volumectl delete pv pvc-c1 --force` gives it up");
  EXPECT_GT(owed[0].problem.next_try_unix_ms, 0);
  EXPECT_GE(owed[0].problem.attempts, 1u);
}

TEST_F(DriverProvisioningTest, WhatWasUndoneInVainCouldNotBeGivenUp) {
  UndoInVain();
  std::optional<Status> told;
  manager().object_commands().GiveUpUndo(kVolume, [&told](const Status& status) { told = status; });
  Settle();
  ASSERT_TRUE(told && told->ok());
  EXPECT_FALSE(Row());
  EXPECT_TRUE(manager().storage().PersistentVolumes().empty());
  EXPECT_TRUE(manager().storage().Owed().empty());
  const auto& events = host_parts.object_events;
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const std::string& event) {
    return event.find("PersistentVolume pvc-c1 Warning UndoGivenUp: ") == 0;
  }));
  const size_t undone = operations().Count("undo_provision");
  Pass(std::chrono::minutes(10));
  EXPECT_EQ(operations().Count("undo_provision"), undone);
}

TEST_F(DriverProvisioningTest, WhatIsGivenUpWhileItIsTriedGoesWithTheEndOfThat) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kDeadlineExceeded, "no answer"));
  Deliver(DriverClass() + Claim());
  operations().Hang(ProvisionKey(kVolume));
  ASSERT_TRUE(DeleteClaim("data"));
  EXPECT_EQ(manager().storage().WhoUndoes(kVolume), "disk.example.com");
  std::optional<Status> told;
  manager().object_commands().GiveUpUndo(kVolume, [&told](const Status& status) { told = status; });
  Settle();
  EXPECT_FALSE(told);
  EXPECT_TRUE(operations().given_up.contains(ProvisionKey(kVolume)));
  operations().Release(ProvisionKey(kVolume));
  Settle();
  ASSERT_TRUE(told && told->ok());
  EXPECT_FALSE(Row());
}

TEST_F(DriverProvisioningTest, OnlyWhatIsBeingUndoneIsGivenUp) {
  Deliver(DriverClass() + Claim() + Pod());
  EXPECT_EQ(manager().storage().WhoUndoes(kVolume), "");
  std::optional<Status> told;
  manager().object_commands().GiveUpUndo(kVolume, [&told](const Status& status) { told = status; });
  Settle();
  ASSERT_TRUE(told && !told->ok());
  EXPECT_EQ(told->error().code(), Code::kNotFound);
  EXPECT_TRUE(Row());
}

// It said "nobody: retried", and that the next try is when something changes.
TEST_F(DriverProvisioningTest, AParameterThatTheDriverRefusesWasNobodysToMend) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::NotApplied(Code::kInvalidArgument, "invalid option \"tpye\""), 1000);
  Deliver(DriverClass() + Claim() + Pod());
  const VolumeView volume = View("a").volumes.at(0);
  ASSERT_TRUE(volume.problem);
  EXPECT_EQ(volume.problem->who_must_act,
            "the owner of StorageClass made, or of claim default/data");
  EXPECT_GT(volume.problem->next_try_unix_ms, 0);
  EXPECT_EQ(volume.problem->attempts, 1u);
}

TEST_F(DriverProvisioningTest, AFailureThatIsNotExplainedWasNobodysForEver) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kInternal, "it does not go"), 1000);
  Deliver(DriverClass() + Claim() + Pod());
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "nobody: retried");
  Pass(std::chrono::minutes(10));
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act.find("an administrator, as it has "), 0u)
      << View("a").volumes.at(0).problem->who_must_act;
}

// Five claims that were applied had the driver asked five times more for each volume that failed.
TEST_F(DriverProvisioningTest, OtherObjectsHadEveryVolumeThatFailedTriedAtOnce) {
  const std::string other =
      "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: other, namespace: "
      "default, uid: c2}\nspec: {accessModes: [ReadWriteOnce], storageClassName: \"\", resources: "
      "{requests: {storage: 1Gi}}}\n"
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: other}\nspec:\n  capacity: "
      "{storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  hostPath: {path: /srv/other}\n"
      "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: other}\n"
      "provisioner: example.com/other\n";
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::NotApplied(Code::kInvalidArgument, "no such tier"), 1000);
  Deliver(DriverClass() + Claim());
  ASSERT_EQ(Made(), 1u);
  Deliver(DriverClass() + Claim() + other);
  EXPECT_EQ(Made(), 1u);
  Deliver(DriverClass("allowVolumeExpansion: true\n") + Claim() + other);
  EXPECT_EQ(Made(), 2u) << "its own class is another one";
}

TEST_F(DriverProvisioningTest, AClaimThatGoesWhileItsDriverIsAwayDoesNotWaitForIt) {
  operations().Hang(ProvisionKey(kVolume));
  Deliver(DriverClass() + Claim() + Pod());
  LaneWait wait;
  wait.text = "CSI driver disk.example.com is gone since 09:30";
  wait.does_not_answer = true;
  wait.step = kWaitForDriver;
  operations().waits_for[ProvisionKey(kVolume)] = wait;
  EXPECT_NE(Problem().find("CSI driver disk.example.com is gone since 09:30; "), std::string::npos)
      << Problem();
  Deliver(DriverClass() + Claim());
  ASSERT_TRUE(DeleteClaim("data"));
  EXPECT_TRUE(operations().given_up.contains(ProvisionKey(kVolume)));
  operations().Release(ProvisionKey(kVolume));
  Settle();
  EXPECT_FALSE(Row());
  EXPECT_FALSE(HasEvent("ProvisioningFailed")) << "nothing was tried";
  EXPECT_EQ(operations().Count("undo_provision"), 0u);
}

TEST_F(DriverProvisioningTest, AClassForOtherTopologiesHasNothingMadeHere) {
  const std::string zone =
      "allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [z1, z2]}]}]\n";
  Deliver(DriverClass(zone) + Claim() + Pod());
  EXPECT_EQ(Made(), 0u);
  EXPECT_NE(Problem().find("in none of the topologies that the class allows"), std::string::npos)
      << Problem();
  host_parts.labels["zone"] = "z2";
  DriverComes();
  EXPECT_EQ(Made(), 1u);
}

TEST_F(DriverProvisioningTest, OthersThatHaveStorageAreNamedToWhoeverMakesIt) {
  const std::string other =
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: other}\nspec:\n"
      "  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n"
      "  csi: {driver: disk.example.com, volumeHandle: vol-x}\n";
  Deliver(DriverClass() + other + Claim());
  ASSERT_EQ(LastRequest().volumes->size(), 1u);
  EXPECT_EQ(LastRequest().volumes->front()->metadata.name, "other");
}

TEST_F(DriverProvisioningTest, AClaimsVolumeIsClonedAndNotReclaimedMeanwhile) {
  const std::string clone =
      "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: copy, namespace: "
      "default, uid: c2}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: made\n"
      "  dataSource: {kind: PersistentVolumeClaim, name: data}\n"
      "  resources: {requests: {storage: 1Gi}}\n";
  operations().Hang(ProvisionKey("pvc-c2"));
  Deliver(DriverClass() + Claim() + clone);
  ASSERT_EQ(Made("pvc-c2"), 1u);
  EXPECT_EQ(LastRequest("provision", "pvc-c2").plan, "a disk of 1Gi from vol-pvc-c1");
  EXPECT_EQ(Row("pvc-c2")->cloned_volume, kVolume);
  Deliver(DriverClass() + clone);
  EXPECT_EQ(VolumeStatus(), "Released");
  EXPECT_EQ(operations().Count("reclaim"), 0u) << "the clone is made from it";
  operations().Release(ProvisionKey("pvc-c2"));
  Settle();
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

TEST_F(DriverProvisioningTest, ACloneWaitsForItsSource) {
  const std::string clone =
      "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: copy, namespace: "
      "default, uid: c2}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: made\n"
      "  dataSourceRef: {kind: PersistentVolumeClaim, name: data}\n"
      "  resources: {requests: {storage: 1Gi}}\n";
  Deliver(DriverClass() + clone);
  EXPECT_EQ(Made("pvc-c2"), 0u);
  EXPECT_FALSE(Row("pvc-c2"));
  Deliver(DriverClass() + Claim() + clone);
  EXPECT_EQ(Made("pvc-c2"), 1u);
}

}  // namespace
}  // namespace volumed
