// Volumes that drivers make for claims, on fake operations.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "kube/about_object.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "unit/volumemanager/claims/provisioning_fixture.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

using std::chrono::seconds;

class DriverProvisioningTest : public ProvisioningFixture {
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

// A claim that waited for a pool was not tried when the pool's disk was mounted, but a minute
// later.
TEST_F(DriverProvisioningTest, AClaimWaitedForItsTimeAfterItsMakerWasBack) {
  const Error away =
      Error::NotApplied(Code::kUnavailable, "no directory is there").About(kStorageAway);
  operations().FailNext("provision", ProvisionKey(kVolume), away, 1000);
  Deliver(DriverClass() + Claim() + Pod());
  Pass(seconds(200));
  EXPECT_NE(Problem().find("; an administrator"), std::string::npos) << Problem();
  const size_t tried = Made();
  manager().events().MakersAreBack();
  Settle();
  EXPECT_EQ(Made(), tried + 1);
}

// A CreateVolume that hung for 45 seconds was "being made", and nothing said by which call.
TEST_F(DriverProvisioningTest, AVolumeThatIsBeingMadeSaidNotWhichCallHangs) {
  operations().Hang(ProvisionKey(kVolume));
  operations().awaited[ProvisionKey(kVolume)] = {"CSI driver disk.example.com: CreateVolume",
                                                 1'767'323'045'678};
  Deliver(DriverClass() + Claim() + Pod());
  ASSERT_EQ(Made(), 1u);
  const VolumeView volume = View("a").volumes.at(0);
  EXPECT_NE(volume.running_step, "");
  EXPECT_EQ(volume.awaited, "CSI driver disk.example.com: CreateVolume");
  EXPECT_EQ(volume.awaited_since_unix_ms, 1'767'323'045'678);
  const auto claim = manager().storage().FindPersistentVolumeClaim({"default", "data"});
  ASSERT_TRUE(claim);
  EXPECT_NE(claim->reason.find("awaits CSI driver disk.example.com: CreateVolume since 2026-01-02"),
            std::string::npos)
      << claim->reason;
}

TEST_F(DriverProvisioningTest, AVolumeThatIsBeingDeletedSaidNotWhichCallHangs) {
  Deliver(DriverClass() + Claim());
  operations().Hang(ReclaimKey(kVolume));
  operations().awaited[ReclaimKey(kVolume)] = {"CSI driver disk.example.com: DeleteVolume",
                                               1'767'323'045'678};
  Deliver(DriverClass());
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  const auto volume = manager().storage().FindPersistentVolume(kVolume);
  ASSERT_TRUE(volume);
  EXPECT_NE(
      volume->reason.find("awaits CSI driver disk.example.com: DeleteVolume since 2026-01-02"),
      std::string::npos)
      << volume->reason;
}

// An administrator was to act for a claim that wants too much, and for a slip in its class.
TEST_F(DriverProvisioningTest, WhoAsksInVainIsToActAndNotAnAdministrator) {
  operations().FailNext(
      "provision", ProvisionKey(kVolume),
      Error::NotApplied(Code::kResourceExhausted, "the pool has less").About(kAboutClaim), 1000);
  Deliver(DriverClass() + Claim() + Pod());
  EXPECT_NE(Problem().find("; the owner of claim default/data; an administrator, if there is to be "
                           "more"),
            std::string::npos)
      << Problem();
}

// Its pod was tried again, and the volume waited for its back-off.
TEST_F(DriverProvisioningTest, ARetryOfAPodLeftTheVolumeThatIsToBeMadeForItInItsBackOff) {
  operations().FailNext("provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kUnavailable, "no answer"), 2);
  Deliver(DriverClass() + Claim() + Pod());
  ASSERT_EQ(Made(), 1u);
  ASSERT_TRUE(manager().pod_commands().Retry(PodUid("a")).ok());
  Settle();
  EXPECT_EQ(Made(), 2u);
  ASSERT_TRUE(
      manager().pod_commands().RetryVolume({PodUid("a"), View("a").volumes.at(0).spec}).ok());
  Settle();
  EXPECT_EQ(Made(), 3u);
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
  EXPECT_GT(volumes[0].created_unix_ms, 0) << "its age was <unknown>";
  const std::vector<OwedView> owed = manager().storage().Owed();
  ASSERT_EQ(owed.size(), 1u);
  EXPECT_EQ(owed[0].what, "volume pvc-c1");
  EXPECT_EQ(owed[0].problem.message, "no disk is so large");
  EXPECT_EQ(owed[0].problem.who_must_act,
            "nobody: retried; `volumectl delete pv pvc-c1 --force` gives it up");
  EXPECT_GT(owed[0].problem.next_try_unix_ms, 0);
  EXPECT_GE(owed[0].problem.attempts, 1u);
}

// Its driver could be forgotten, and then nobody asked for it any more.
TEST_F(DriverProvisioningTest, WhatADriverMayHaveMadeIsNamedToWhoWouldForgetTheDriver) {
  UndoInVain();
  const std::vector<std::string> begun = manager().storage().BegunBy("disk.example.com");
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0],
            "volume pvc-c1, which it may have made for claim default/data: `volumectl delete pv "
            "pvc-c1 --force` gives it up");
  EXPECT_TRUE(manager().storage().BegunBy("other.example.com").empty());
}

TEST_F(DriverProvisioningTest, TheVolumesOfADriverAreNamedToWhoWouldForgetTheDriver) {
  Deliver(DriverClass() + Claim() + Pod());
  EXPECT_EQ(manager().storage().VolumesOfDriver("disk.example.com"),
            std::vector<std::string>{"pvc-c1"});
  EXPECT_TRUE(manager().storage().BegunBy("disk.example.com").empty());
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

// What its DeleteVolume had reserved was "being deleted" until the agent's next start.
TEST_F(DriverProvisioningTest, AnUndoThatWasGivenUpKeptWhatItHadReserved) {
  UndoInVain();
  EXPECT_TRUE(operations().ended_reclaims.empty()) << "it goes on";
  std::optional<Status> told;
  manager().object_commands().GiveUpUndo(kVolume, [&](const Status& status) {
    EXPECT_EQ(operations().ended_reclaims, std::vector<std::string>{kVolume})
        << "it may be deleted by hand once that was said";
    told = status;
  });
  Settle();
  ASSERT_TRUE(told && told->ok());
  EXPECT_EQ(operations().ended_reclaims, std::vector<std::string>{kVolume});
}

// Its DeleteVolume had an open outcome; then its driver said that nothing is there.
TEST_F(DriverProvisioningTest, AnUndoThatWasOverKeptWhatItHadReserved) {
  UndoInVain();
  EXPECT_TRUE(operations().ended_reclaims.empty());
  operations().FailNext("undo_provision", ProvisionKey(kVolume),
                        Error::MaybeApplied(Code::kInternal, "for the last time"), 1);
  Pass(std::chrono::minutes(10));
  EXPECT_FALSE(Row());
  EXPECT_EQ(operations().ended_reclaims, std::vector<std::string>{kVolume});
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

// The Secret was there, and the claim said for up to two minutes that it is not found.
TEST_F(DriverProvisioningTest, ASecretOfTheClassThatCameWasNotTriedAtOnce) {
  const std::string by_secret = DriverClass("parameters: {secret: prov}\n") + Claim();
  const std::string other =
      "---\napiVersion: v1\nkind: Secret\nmetadata: {name: other, namespace: default}\n";
  const std::string prov =
      "---\napiVersion: v1\nkind: Secret\nmetadata: {name: prov, namespace: default}\n";
  const Error missing = MissingObject(
      Error::NotApplied(Code::kUnavailable, "the provisioner secret default/prov cannot be had"),
      {ObjectKind::kSecret, "default", "prov"});
  operations().FailNext("provision", ProvisionKey(kVolume), missing, 1000);
  Deliver(by_secret + Pod());
  ASSERT_EQ(Made(), 1u);
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "the owner of secret default/prov")
      << "it said that nobody has to act";
  Deliver(by_secret + Pod() + other);
  EXPECT_EQ(Made(), 1u) << "it is another one's";
  Deliver(by_secret + Pod() + other + prov);
  EXPECT_EQ(Made(), 2u);
  Deliver(by_secret + Pod() + other + prov + "stringData: {password: other}\n");
  EXPECT_EQ(Made(), 3u) << "it may be right now";
}

TEST_F(DriverProvisioningTest, ASecretThatCameDidNotHaveADeletionTriedAtOnce) {
  const std::string by_secret = DriverClass("parameters: {secret: prov}\n");
  const std::string prov =
      "---\napiVersion: v1\nkind: Secret\nmetadata: {name: prov, namespace: default}\n";
  Deliver(by_secret + Claim());
  operations().FailNext("reclaim", ReclaimKey(kVolume),
                        Error::NotApplied(Code::kUnavailable, "no secret"), 1);
  Deliver(by_secret);
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  Deliver(by_secret + prov);
  EXPECT_EQ(operations().Count("reclaim"), 2u);
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

// The driver answered the id of a PersistentVolume that had come into a file while no agent ran and
// that was not read yet: the undo deleted its storage.
TEST_F(DriverProvisioningTest, AnUndoRightAfterAStartTookWhatAFileHadThatWasNotReadYet) {
  UndoInVain();
  StartAgent();
  DeliverUnseen(DriverClass() + Claim(), "/m does not answer");
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("undo_provision"), 0u);
  const auto view = manager().storage().FindPersistentVolume(kVolume);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->phase, "Undoing");
  EXPECT_NE(view->reason.find("/m does not answer"), std::string::npos) << view->reason;
  DeliverSeen();
  EXPECT_EQ(operations().Count("undo_provision"), 1u);
}

// Its volume was to be that of such a PersistentVolume. Only what has to be made waits.
TEST_F(DriverProvisioningTest, AClaimRightAfterAStartGotTheVolumeOfAFileThatWasNotReadYet) {
  DeliverUnseen(DriverClass() + Claim() + Pod(), "/m does not answer");
  EXPECT_EQ(Made(), 0u);
  EXPECT_FALSE(Row());
  EXPECT_NE(Problem().find("/m does not answer"), std::string::npos) << Problem();
  EXPECT_TRUE(Problem().ends_with("; an administrator")) << Problem();
  const auto claim = manager().storage().FindPersistentVolumeClaim({"default", "data"});
  ASSERT_TRUE(claim);
  EXPECT_NE(claim->reason.find("/m does not answer"), std::string::npos) << claim->reason;
  DeliverSeen();
  EXPECT_EQ(Made(), 1u);
  EXPECT_EQ(ClaimStatus(), "Bound pvc-c1");
}

}  // namespace
}  // namespace volumed
