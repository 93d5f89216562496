// Claims and the volumes that they are bound to: who has one, and what becomes of it, on fake
// operations.
#include "unit/volumemanager/claims/persistent_volumes_fixture.h"
#include "volumemanager/claims/claims.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kOfDriver = "csi: {driver: disks.io, volumeHandle: vol-1}";

// What a deletion looked at was as old as the request for it.
TEST_F(PersistentVolumesTest, WhichStorageOfADriverAVolumeNamesIsToldToTheOperations) {
  using Named = std::map<std::string, std::string>;
  const Named named = {{"st", "disks.io^vol-1"}};
  const std::string volume = Volume("st", "", "ReadWriteOnce", kOfDriver);
  Deliver(volume + Volume("disk"));
  EXPECT_EQ(operations().named_storage, named) << "of no driver is the other one";
  Deliver(volume + Claim("data", "  volumeName: st\n"));
  ASSERT_TRUE(Binding("st"));
  StartAgent();
  Settle();
  EXPECT_EQ(operations().named_storage, named) << "before any source has delivered";
  Deliver(volume + Claim("data", "  volumeName: st\n"));
  EXPECT_EQ(operations().named_storage, named);
}

TEST_F(PersistentVolumesTest, AVolumeThatHasEndedNamesNoStorageAnyMore) {
  Deliver(Volume("st", "", "ReadWriteOnce", kOfDriver));
  ASSERT_EQ(operations().named_storage.size(), 1u);
  ASSERT_TRUE(DeleteObject({ObjectKind::kPersistentVolume, "", "st"})->ok());
  EXPECT_TRUE(operations().named_storage.empty());
}

TEST_F(PersistentVolumesTest, WhatTheLastAgentHasBegunToDeleteIsToldToTheNextOne) {
  StorageReservationRecord begun;
  begun.holder = {.id = "reclaim/old",
                  .volume = "old",
                  .use = StorageUse::kReclaim,
                  .persistent = true,
                  .text = "persistent volume old"};
  begun.name = {.path = "vol-1", .server = "", .driver = "disk.example.com"};
  begun.boot_id = BootId("boot-a");
  ASSERT_TRUE(store.Put(EncodeRecord(begun), kStorageRecordDurability).ok());
  StartAgent();
  Settle();
  EXPECT_EQ(operations().expected_deletions, std::vector<StorageReservationRecord>{begun});
}

// A claim was bound to a volume while DeleteVolume was called for its handle.
TEST_F(PersistentVolumesTest, AVolumeWhoseStorageWasBeingDeletedForAnotherWasBound) {
  const std::string why = "its storage is being deleted for persistent volume old";
  operations().being_deleted = {{"st", why}};
  Deliver(Volume("st", "", "ReadWriteOnce", kOfDriver) + Claim("data", "  volumeName: st\n"));
  EXPECT_FALSE(Binding("st"));
  const std::optional<StorageStatus> claim =
      manager().storage().StatusOf({ObjectKind::kPersistentVolumeClaim, "default", "data"});
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->reason, "PersistentVolume st, which it names, is given to nobody: " + why);
  const std::optional<PersistentVolumeView> view = manager().storage().FindPersistentVolume("st");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->reason, why);
  operations().being_deleted.clear();
  manager().events().RetryStorage("old");  // the deletion has ended
  Pass(seconds(1));
  EXPECT_TRUE(Binding("st"));
}

// Each object of an Apply asks whether it is bound: 130 objects beside 1,000 volumes kept the agent
// from everything else for more than ten seconds.
TEST_F(PersistentVolumesTest, EachAnswerToAPersonCostADecisionUntilThePostedOneCame) {
  decide_claims_period = seconds(10);
  StartAgent();
  Deliver(Volume("disk"));
  Deliver(Volume("disk") + Claim("data", "  volumeName: disk\n"));
  EXPECT_FALSE(Binding("disk")) << "the decision is to come";
  const uint64_t before = manager().claim_decisions();
  const ObjectKey claim{ObjectKind::kPersistentVolumeClaim, "default", "data"};
  EXPECT_TRUE(manager().storage().StatusOf(claim)) << "whoever asks has it at once";
  EXPECT_EQ(manager().claim_decisions(), before + 1);
  for (int i = 0; i < 3; ++i) (void)manager().storage().IsBound(claim);
  EXPECT_EQ(manager().claim_decisions(), before + 1);
  Settle();
  EXPECT_TRUE(Binding("disk"));
}

TEST_F(PersistentVolumesTest, AnUnrecordedBindingIsNotActedOn) {
  store.FailNext(Error::NotApplied(Code::kUnavailable, "no disk"), 1, kClaimBindingRecordKind);
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_TRUE(operations().calls.empty());
  EXPECT_TRUE(ProblemHas("a", "its binding is being recorded")) << Problem("a");
  Pass(seconds(5));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, AClaimThatIsNotBoundSaysWhyAndWhoMustAct) {
  Deliver(PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "error processing PVC default/data: there is no such claim"))
      << Problem("a");
  Deliver(Claim("data") + PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "PVC is not bound: ")) << Problem("a");
  EXPECT_EQ(View("a").volumes.at(0).problem->who_must_act, "an administrator");
  EXPECT_EQ(Phase("a"), "Pending");
  Deliver(Storage() + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, ASecondPodIsRefusedAReadWriteOncePodVolumeUntilTheFirstHasLeft) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  Deliver(storage + PodManifest("a", {kUse}));
  Deliver(storage + PodManifest("a", {kUse}) + PodManifest("b", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_TRUE(ProblemHas("b",
                         "volume uses the ReadWriteOncePod access mode and is already in use by "
                         "another pod (default/a)"))
      << Problem("b");
  Deliver(storage + PodManifest("b", {kUse}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(DeviceCalls("mount_device"), 1u);
}

// The rows of pods' volumes go with the power; without them the first pod to come had the volume.
TEST_F(PersistentVolumesTest, APowerLossDoesNotChangeWhichPodHasAReadWriteOncePodVolume) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  const std::string first = PodManifest("z", {kUse});
  const std::string second = PodManifest("a", {kUse});
  Deliver(storage + first);
  LeaveDevice(VolumeState::kDeviceMounted, "z");
  StartAgent("boot-2");
  Deliver(storage + second + first);
  Pass(seconds(5));
  EXPECT_EQ(Phase("z"), "Ready");
  EXPECT_TRUE(ProblemHas("a", "already in use by another pod (default/z)")) << Problem("a");
  Deliver(storage + second);
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, APodThatNeverGotItAgainGivesAReadWriteOncePodVolumeFreeWhenItGoes) {
  const std::string storage =
      Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod");
  Deliver(storage + PodManifest("z", {kUse}));
  LeaveDevice(VolumeState::kDeviceMounted, "z");
  StartAgent("boot-2");
  operations().FailNext("mount", Key("z", "disk"),
                        Error::NotApplied(Code::kNotFound, "no such volume"), 100);
  Deliver(storage + PodManifest("a", {kUse}) + PodManifest("z", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "already in use by another pod (default/z)")) << Problem("a");
  Deliver(storage + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
}

TEST_F(PersistentVolumesTest, AVolumeThatAPodHasWhichNoRecordKnowsIsNobodys) {
  LeaveDevice(VolumeState::kDeviceMounted, "gone");
  StartAgent();
  Deliver(Volume("disk", "", "ReadWriteOncePod") + Claim("data", "", "ReadWriteOncePod") +
          PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(agent_->restored_devices.size(), 1u);
  EXPECT_TRUE(agent_->restored_devices.front().only_pod.empty());
}

TEST_F(PersistentVolumesTest, ARunningPodKeepsItsVolumeWhenClaimAndVolumeAreTakenFromTheSources) {
  removal_deletes = false;
  StartAgent();
  Deliver(Storage() + PodManifest("a", {kUse}));
  Deliver(PodManifest("a", {kUse}));
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_TRUE(Binding());
  EXPECT_EQ(Phase("a"), "Ready");
  LeaveRecords();
  StartAgent();
  Deliver(PodManifest("a", {kUse}));
  Pass(seconds(5));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("unmount"), 0u);
  EXPECT_EQ(DeviceCalls("unmount_device"), 0u);
  EXPECT_TRUE(Binding());
  Deliver("");
  EXPECT_EQ(DeviceCalls("unmount_device"), 1u);
  EXPECT_TRUE(Binding()) << "nobody has deleted the claim";
  EXPECT_EQ(DeviceCalls("forget_device"), 0u);
  ASSERT_TRUE(DeleteClaim("data") && DeleteVolume("disk"));
  EXPECT_FALSE(Binding());
  EXPECT_EQ(DeviceCalls("forget_device"), 1u);
}

TEST_F(PersistentVolumesTest, AReleasedVolumeIsRecycledOnceAndThenFree) {
  const std::string recycled = Volume("disk", "  persistentVolumeReclaimPolicy: Recycle\n",
                                      "ReadWriteOnce", "hostPath: {path: /srv/data}");
  Deliver(recycled + Claim("data") + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  Deliver(recycled + PodManifest("a", {kUse}));
  EXPECT_EQ(operations().Count("reclaim"), 0u);  // a pod has it
  Deliver(recycled);
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding());
  Deliver(recycled + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Ready");
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

TEST_F(PersistentVolumesTest, ARetainedVolumeIsNotGivenToAnotherClaim) {
  Deliver(Storage() + PodManifest("a", {kUse}));
  Deliver(Volume("disk"));
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
  Deliver(Volume("disk") + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_TRUE(ProblemHas("b", "PVC is not bound")) << Problem("b");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
}

TEST_F(PersistentVolumesTest, ADeletedVolumeIsGoneWhateverItsManifestSays) {
  const std::string deleted = Volume("disk", "  persistentVolumeReclaimPolicy: Delete\n");
  Deliver(deleted + Claim("data") + PodManifest("a", {kUse}));
  Deliver(deleted);
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding()) << "the volume has ended, which its manifest does not undo";
  StartAgent();
  Deliver(deleted + Claim("next") +
          PodManifest("b", {"data: persistentVolumeClaim: {claimName: next}"}));
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  Deliver("");
  EXPECT_FALSE(Binding());
}

TEST_F(PersistentVolumesTest, AFailedReclaimIsTriedAgainAlsoByTheNextAgent) {
  const std::string recycled = Volume("disk", "  persistentVolumeReclaimPolicy: Recycle\n");
  Deliver(recycled + Claim("data") + PodManifest("a", {kUse}));
  operations().FailNext("reclaim", ReclaimKey("disk"),
                        Error::MaybeApplied(Code::kUnavailable, "no pod"), 1);
  Deliver(recycled);
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReclaimFailed);
  StartAgent();
  Deliver(recycled);
  Pass(seconds(5));
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(Binding());
}

TEST_F(PersistentVolumesTest, AGenericEphemeralVolumeHasAClaimOfItsOwnWhichLeavesWithThePod) {
  const std::string use =
      "data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: "
      "{requests: {storage: 1Gi}}}}}";
  Deliver(Volume("disk") + PodManifest("a", {use}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(View("a").volumes.at(0).claim, "default/a-data");
  Deliver(Volume("disk"));
  EXPECT_EQ(Phase("a"), "gone");
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
}

TEST_F(PersistentVolumesTest, AClaimWithTheNameOfAPodsOwnTakesNeitherItsUidNorItsVolume) {
  const std::string objects =
      Volume("disk") +
      PodManifest("a", {"data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
                        "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"});
  Deliver(objects);
  ASSERT_EQ(Phase("a"), "Ready");
  const std::string uid = Binding()->binding.claim_uid;
  EXPECT_EQ(
      manager().storage().PodOfClaim({ObjectKind::kPersistentVolumeClaim, "default", "a-data"}),
      PodUid("a"));
  Deliver(objects + Claim("a-data"));
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(Phase("a"), "Ready") << Problem("a");
    ASSERT_TRUE(Binding());
    EXPECT_EQ(Binding()->binding.claim_uid, uid);
    EXPECT_EQ(Binding()->pod_uid, PodUid("a"));
    StartAgent();
    Deliver(objects + Claim("a-data"));
  }
  Deliver(Volume("disk") + Claim("a-data"));
  EXPECT_EQ(Phase("a"), "gone");
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased) << "the pod's claim ends with it";
}

TEST_F(PersistentVolumesTest, AClaimThatWasThereBeforeAPodIsNotItsGenericEphemeralVolume) {
  const std::string objects = Volume("disk") + Claim("a-data");
  Deliver(objects);
  ASSERT_TRUE(Binding());
  Deliver(objects +
          PodManifest("a", {"data: ephemeral: {volumeClaimTemplate: {spec: {accessModes: "
                            "[ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"}));
  EXPECT_TRUE(ProblemHas("a", "PVC default/a-data was not created for pod default/a"))
      << Problem("a");
  EXPECT_EQ(operations().Count("mount"), 0u);
  EXPECT_EQ(Binding()->binding.claim_uid, "claim-a-data");
}

TEST_F(PersistentVolumesTest, AVolumeOfAnotherNodeAndOneOfTheWrongModeAreRefused) {
  const std::string block = Volume("disk", "  volumeMode: Block\n");
  Deliver(block + Claim("data", "  volumeMode: Block\n") + PodManifest("a", {kUse}));
  EXPECT_TRUE(ProblemHas("a", "volume data has volumeMode Block, but is specified in volumeMounts"))
      << Problem("a");
  EXPECT_TRUE(operations().calls.empty());
}

TEST_F(PersistentVolumesTest, TwoVolumesOfAPodThatNameOneClaimAreOneOnTheNode) {
  Deliver(Storage() + PodManifest("a", {kUse, "more: persistentVolumeClaim: {claimName: data}"}));
  EXPECT_EQ(Phase("a"), "Ready");
  EXPECT_EQ(operations().Count("mount"), 1u);
  EXPECT_EQ(View("a").volumes.at(0).pod_volumes, (std::vector<std::string>{"data", "more"}));
}

// Of a thousand claims a decision takes 20 ms. While as many pods were deleted, one was made every
// 50 ms, and half of the agent's processor time went there.
TEST(RestOfDecisionTest, DecisionsThatTakeLongAreSeldom) {
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(0)), milliseconds(50));
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(5)), milliseconds(50));
  EXPECT_EQ(RestOfDecision(milliseconds(50), milliseconds(20)), milliseconds(200));
}

TEST(RestOfDecisionTest, AProcessThatWasStoppedDoesNotWaitForHours) {
  EXPECT_EQ(RestOfDecision(milliseconds(50), std::chrono::hours(1)), seconds(2));
}

}  // namespace
}  // namespace volumed
