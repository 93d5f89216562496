// What has left its source, and what was deleted by command, on fake operations.
#include "operation/reclaim_operations.h"
#include "unit/volumemanager/manager_fixture.h"

namespace volumed {
namespace {

class MissingClaimsTest : public ManagerTest {
 protected:
  void SetUp() override {
    removal_deletes = false;
    StartAgent();
    Deliver("");
  }
  static std::string Volume(const std::string& policy) {
    return "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
           "{storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: " +
           policy + ", hostPath: {path: /srv/data}}\n";
  }
  static std::string Claim(const std::string& name = "data") {
    return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name +
           ", namespace: default}\nspec: {accessModes: [ReadWriteOnce], storageClassName: '', "
           "resources: {requests: {storage: 1Gi}}}\n";
  }
  static std::string Replace(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  }
  std::optional<ClaimBindingRecord> Binding() {
    const auto row = store.Find(kClaimBindingRecordKind, "disk");
    if (!row) return std::nullopt;
    return DecodeClaimBindingRecord(*row).value();
  }
  PersistentVolumeClaimView ClaimView(const std::string& name = "data") {
    for (const PersistentVolumeClaimView& view : manager().storage().PersistentVolumeClaims()) {
      if (view.name == name) return view;
    }
    ADD_FAILURE() << "no claim " << name;
    return {};
  }
  // The row that the operation layer writes: the pod has the volume.
  void LeaveRecord() {
    PodVolumeRecord record;
    record.key = Key("a", "disk");
    record.pod_namespace = "default";
    record.pod_name = "a";
    record.plugin_name = "kubernetes.io/host-path";
    record.state = VolumeState::kSetUp;
    record.boot_id = BootId("boot-1");
    record.unique_name = UniqueVolumeName("kubernetes.io/host-path/a-disk");
    ASSERT_TRUE(store.Put(EncodeRecord(record), kPodVolumeRecordDurability).ok());
  }
  size_t DeletedRows() {
    size_t rows = 0;
    for (const Record& row : store.All()) rows += row.kind == kDeletedObjectRecordKind ? 1 : 0;
    return rows;
  }
};

// A manifest that vanished once took the data of its claim with it.
TEST_F(MissingClaimsTest, AClaimThatLeavesItsSourceKeepsItsVolumeOverRestarts) {
  for (const char* policy : {"Retain", "Delete", "Recycle"}) {
    Deliver(Volume(policy) + Claim());
    const std::string uid = Binding()->binding.claim_uid;
    Deliver(Volume(policy));
    Pass(std::chrono::hours(1));
    EXPECT_TRUE(ClaimView().missing);
    EXPECT_EQ(ClaimView().phase, "Bound");
    StartAgent();
    Deliver(Volume(policy));
    Pass(std::chrono::hours(1));
    EXPECT_EQ(operations().Count("reclaim"), 0u) << policy;
    EXPECT_EQ(Binding()->binding.state, BindingState::kBound);
    EXPECT_EQ(Binding()->binding.claim_uid, uid);
    ASSERT_TRUE(DeleteClaim("data")->ok());
    ASSERT_TRUE(Binding() == std::nullopt || Binding()->binding.state != BindingState::kBound);
    EXPECT_EQ(operations().Count("reclaim"), std::string(policy) == "Retain" ? 0u : 1u);
    ASSERT_TRUE(DeleteVolume("disk")->ok());
    Deliver("");
  }
}

// A delete that waits for its driver would begin days later, and take what is to be kept.
TEST_F(MissingClaimsTest, ADeleteThatWaitsIsGivenUpOnceItsVolumeIsToBeRetained) {
  const OperationKey reclaim = ReclaimKey("disk");
  operations().Hang(reclaim);
  operations().waits_for[reclaim] = {"CSI driver x is gone", true, kWaitForDriver};
  Deliver(Volume("Delete") + Claim());
  ASSERT_TRUE(DeleteClaim("data")->ok());
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_FALSE(operations().given_up.contains(reclaim));
  Deliver(Volume("Retain"));
  EXPECT_TRUE(operations().given_up.contains(reclaim));
  operations().Release(reclaim);
  Settle();
  EXPECT_EQ(operations().Count("reclaim"), 1u) << "it is not to be deleted any more";
  ASSERT_TRUE(Binding());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased) << "nothing was tried, nor failed";
  Deliver(Volume("Delete"));
  EXPECT_EQ(operations().Count("reclaim"), 2u);
}

// Whoever comes while the delete waits may have data in the same place.
TEST_F(MissingClaimsTest, ADeleteThatHasWaitedLooksAgainWhoElseThereIs) {
  const OperationKey reclaim = ReclaimKey("disk");
  operations().Hang(reclaim);
  Deliver(Volume("Delete") + Claim());
  ASSERT_TRUE(DeleteClaim("data")->ok());
  const auto* const call = operations().Last("reclaim", reclaim);
  ASSERT_NE(call, nullptr);
  ReclaimRequest request = *call->reclaim;
  EXPECT_TRUE(request.others.empty());
  EXPECT_TRUE(request.pods.empty());
  Deliver(Volume("Delete") + Replace(Volume("Retain"), "name: disk", "name: other") +
          PodManifest("a", {"one: emptyDir: {}"}));
  ReclaimVolume operation(request);
  operation.Waited();
  ASSERT_EQ(operation.request.others.size(), 1u);
  EXPECT_EQ(operation.request.others[0]->metadata.name, "other");
  EXPECT_EQ(operation.request.pods.size(), 1u);
  StartAgent();
  operation.Waited();
  EXPECT_EQ(operation.request.pods.size(), 1u) << "whoever was to be asked is gone";
}

TEST_F(MissingClaimsTest, APodMayUseAMissingClaimAndIsTold) {
  Deliver(Volume("Delete") + Claim());
  Deliver(Volume("Delete"));
  Deliver(Volume("Delete") + PodManifest("a", {kUse}));
  EXPECT_EQ(Phase("a"), "Ready");
  ASSERT_EQ(View("a").problems.size(), 1u);
  EXPECT_EQ(View("a").problems[0].step, "ClaimMissing");
  EXPECT_EQ(View("a").problems[0].message,
            "PersistentVolumeClaim default/data has left test.yaml, and nobody has deleted it: the "
            "pod keeps its volume");
  Deliver(Volume("Delete") + Claim() + PodManifest("a", {kUse}));
  EXPECT_TRUE(View("a").problems.empty());
}

TEST_F(MissingClaimsTest, AMissingVolumeTakesNoNewClaim) {
  Deliver(Volume("Retain"));
  Deliver("");
  Deliver(Claim());
  EXPECT_EQ(ClaimView().phase, "Pending");
  EXPECT_NE(ClaimView().reason.find("1 missing"), std::string::npos) << ClaimView().reason;
  Deliver(Volume("Retain") + Claim());
  EXPECT_EQ(ClaimView().phase, "Bound");
}

// The second guard of Claims::AddVolumes: no plugin can delete the volume, and it was deleted.
TEST_F(MissingClaimsTest, AVolumeThatNoPluginCanDeleteIsGoneOnceItIsDeletedByCommand) {
  const std::string volume =
      "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: "
      "{storage: 1Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, "
      "local: {path: /srv/data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: "
      "[{key: metadata.name, operator: In, values: [n1]}]}]}}}\n";
  operations().FailNext("reclaim", ReclaimKey("disk"),
                        Error::NotApplied(Code::kUnimplemented, "no deletable plugin"), 1000);
  Deliver(volume + Claim());
  ASSERT_TRUE(Binding());
  Deliver(volume);
  ASSERT_TRUE(DeleteClaim("data")->ok());
  ASSERT_TRUE(Binding());
  EXPECT_NE(Binding()->binding.state, BindingState::kBound);
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  Deliver("");
  EXPECT_FALSE(Binding());
  EXPECT_TRUE(manager().storage().PersistentVolumes().empty());
  const size_t tries = operations().Count("reclaim");
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("reclaim"), tries);
  EXPECT_EQ(DeletedRows(), 0u);
}

// Its plugin deletes volumes, but not this one: it stayed Terminating, with no way out.
TEST_F(MissingClaimsTest, AVolumeThatItsPluginNeverDeletesGoesAlsoIfItIsTerminatingAlready) {
  const std::string volume = Replace(Volume("Delete"), "/srv/data", "/outside/data");
  Deliver(volume + Claim());
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  ASSERT_TRUE(Binding());
  ASSERT_EQ(Binding()->binding.state, BindingState::kBound);
  StartAgent();
  Deliver(volume + Claim());
  ASSERT_TRUE(Binding()) << "it is bound";
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_FALSE(Binding());
  ASSERT_EQ(manager().storage().PersistentVolumes().size(), 1u);
  EXPECT_EQ(manager().storage().PersistentVolumes()[0].phase, "Refused");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
}

// The end of the try found nothing any more that it was of, and ended the agent.
TEST_F(MissingClaimsTest, AVolumeThatIsDeletedWhileAReclaimOfItRunsGoesWithTheEndOfThat) {
  const std::string volume = Replace(Volume("Delete"), "/srv/data", "/outside/data");
  const OperationKey reclaim = ReclaimKey("disk");
  Deliver(volume + Claim());
  operations().FailNext("reclaim", reclaim, Error::NotApplied(Code::kPermissionDenied, "outside"),
                        1000);
  operations().Hang(reclaim);
  ASSERT_TRUE(DeleteClaim("data")->ok());
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  ASSERT_TRUE(DeleteVolume("disk")->ok());
  EXPECT_TRUE(Binding());
  operations().Release(reclaim);
  Settle();
  EXPECT_FALSE(Binding());
}

// "nobody has deleted it", right after that.
TEST_F(MissingClaimsTest, AMissingClaimThatIsBeingDeletedDoesNotSayThatNobodyHasDeletedIt) {
  Deliver(Volume("Delete") + Claim() + PodManifest("a", {kUse}));
  Deliver(Volume("Delete") + PodManifest("a", {kUse}));
  EXPECT_EQ(ClaimView().reason, "it has left its source, and nobody has deleted it");
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_TRUE(ClaimView().deleting);
  EXPECT_EQ(ClaimView().reason, "it has left its source");
}

// It was Pending for ever, without a reason, and a claim that named it was told that it does not
// exist.
TEST_F(MissingClaimsTest, AVolumeWhoseStorageWasDeletedIsRefusedUntilItsFileHasLostIt) {
  const std::string naming =
      Replace(Claim("next"), "storageClassName", "volumeName: disk, storageClassName");
  Deliver(Volume("Delete") + Claim());
  const std::string uid =
      manager().storage().UidOnRecord({ObjectKind::kPersistentVolume, "", "disk"});
  ASSERT_TRUE(DeleteClaim("data")->ok());
  ASSERT_EQ(operations().Count("reclaim"), 1u);
  const std::string why =
      "deleted, by command or with its claim (reclaim policy Delete), and test.yaml still has it";
  for (const bool again : {false, true}) {
    if (again) StartAgent();
    Deliver(Volume("Delete") + naming);
    ASSERT_EQ(manager().storage().PersistentVolumes().size(), 1u);
    EXPECT_EQ(manager().storage().PersistentVolumes()[0].phase, "Refused") << again;
    EXPECT_EQ(manager().storage().PersistentVolumes()[0].reason.find(why), 0u) << again;
    EXPECT_EQ(ClaimView("next").reason.find("PersistentVolume disk, which it names, was " + why),
              0u)
        << ClaimView("next").reason;
    EXPECT_FALSE(Binding());
  }
  Deliver(naming);
  EXPECT_TRUE(manager().storage().PersistentVolumes().empty());
  EXPECT_EQ(DeletedRows(), 0u);
  Deliver(Volume("Delete") + naming);
  EXPECT_EQ(Binding()->binding.claim.name, "next");
  EXPECT_NE(manager().storage().UidOnRecord({ObjectKind::kPersistentVolume, "", "disk"}), uid);
}

TEST_F(MissingClaimsTest, ADeletedClaimIsRefusedUntilItsFileHasLostItAndIsAnotherOneThen) {
  Deliver(Volume("Retain") + Claim());
  const std::string uid = Binding()->binding.claim_uid;
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
  EXPECT_EQ(ClaimView().phase, "Refused");
  EXPECT_EQ(ClaimView().reason,
            "deleted by command and test.yaml still has it; to have one of its name again, take it "
            "out of test.yaml, wait for removal-settle and put it back, or give it by `volumectl "
            "apply`: it is another one then");
  StartAgent();
  Deliver(Volume("Retain") + Claim());
  EXPECT_EQ(ClaimView().phase, "Refused");
  EXPECT_EQ(DeletedRows(), 1u);
  Deliver(Volume("Retain"));
  EXPECT_EQ(DeletedRows(), 0u);
  Deliver(Volume("Retain") + Claim());
  EXPECT_EQ(ClaimView().phase, "Pending") << "the volume holds another one's data";
  EXPECT_EQ(Binding()->binding.state, BindingState::kReleased);
  EXPECT_EQ(Binding()->binding.claim_uid, uid);
}

TEST_F(MissingClaimsTest, ADeletedClaimIsTerminatingWhileAPodHasItAlsoForTheNextAgent) {
  Deliver(Volume("Delete") + Claim() + PodManifest("a", {kUse}));
  ASSERT_EQ(Phase("a"), "Ready");
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_TRUE(ClaimView().deleting);
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  LeaveRecord();
  StartAgent();
  Deliver(Volume("Delete") + Claim() + PodManifest("a", {kUse}));
  EXPECT_TRUE(ClaimView().deleting);
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  Deliver(Volume("Delete") + Claim());
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_EQ(ClaimView().phase, "Refused");
}

TEST_F(MissingClaimsTest, TheAnswerToADeletionComesOnceItIsOnRecord) {
  Deliver(Volume("Delete") + Claim());
  ASSERT_TRUE(DeleteClaim("data")->ok());
  EXPECT_EQ(DeletedRows(), 2u) << "the claim's, and that of the volume, which ended with it";
  EXPECT_TRUE(DeleteClaim("data")->ok()) << "the answer may have got lost";
  EXPECT_EQ(DeleteClaim("unheard")->error().code(), Code::kNotFound);
}

TEST_F(MissingClaimsTest, WhereRemovalIsTheCommandAClaimIsDeletedByIt) {
  removal_deletes = true;
  StartAgent();
  Deliver(Volume("Delete") + Claim());
  Deliver(Volume("Delete"));
  EXPECT_EQ(operations().Count("reclaim"), 1u);
  EXPECT_EQ(DeletedRows(), 1u) << "the volume's, which its file still has";
  Deliver("");
  EXPECT_EQ(DeletedRows(), 0u) << "nothing has them any more";
}

// A claim was moved to a directory that was not mounted at the next start, and its data was
// deleted.
TEST_F(MissingClaimsTest, WhatMayHaveMovedToASourceThatIsNotInOrderIsNotDeletedByItsRemoval) {
  for (const bool has_moved : {true, false}) {
    removal_deletes = true;
    sources = {"manifests", "others"};
    StartAgent();
    Deliver(Volume("Delete") + Claim());
    Deliver("", "others");
    StartAgent();
    Settle();
    Deliver(Volume("Delete"));
    ObjectList not_there;
    not_there.source = "others";
    not_there.complete = true;
    not_there.incomplete_because = "the directory is missing";
    agent_->catalog.Update(std::move(not_there));
    manager().ObjectsChanged();
    Pass(std::chrono::hours(1));
    EXPECT_EQ(operations().Count("reclaim"), 0u);
    EXPECT_TRUE(ClaimView().missing);
    Deliver(has_moved ? Claim() : "", "others");
    Pass(std::chrono::minutes(1));
    EXPECT_EQ(operations().Count("reclaim"), has_moved ? 0u : 1u);
  }
}

TEST_F(MissingClaimsTest, WhatIsImmutableStaysAsItWasInTheCatalog) {
  Deliver(Volume("Retain") + Claim());
  std::string other = Volume("Retain") + Claim();
  other.replace(other.find("/srv/data"), 9, "/srv/othr");
  other.replace(other.find("requests: {storage: 1Gi}"), 24, "requests: {storage: 9Mi}");
  Deliver(other);
  const auto volume = agent_->catalog.FindPersistentVolume("disk");
  EXPECT_EQ(std::get<HostPathVolumeSource>(volume->spec.source).path, "/srv/data");
  const auto problems = agent_->catalog.ProblemsOf({ObjectKind::kPersistentVolume, "", "disk"});
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].field_path, "spec.persistentvolumesource");
  const auto of_claim =
      agent_->catalog.ProblemsOf({ObjectKind::kPersistentVolumeClaim, "default", "data"});
  ASSERT_EQ(of_claim.size(), 1u);
  EXPECT_EQ(of_claim[0].field_path, "spec.resources.requests.storage");
  EXPECT_EQ(ClaimView().phase, "Bound");
}

// A PersistentVolume of a file that the agent had not read yet lost its storage: the delete of the
// last run went on by the list of the last run.
TEST_F(MissingClaimsTest, AReclaimRightAfterAStartTookWhatAFileHadThatWasNotReadYet) {
  Deliver(Volume("Delete") + Claim());
  StartAgent();
  DeliverUnseen(Volume("Delete") + Claim(), kSourceIsBeingRead);
  ASSERT_TRUE(DeleteClaim("data")->ok());
  Pass(std::chrono::hours(1));
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  auto view = manager().storage().FindPersistentVolume("disk");
  ASSERT_TRUE(view && view->problem);
  EXPECT_EQ(view->phase, "Released");
  EXPECT_NE(view->reason.find("manifests (it is being read)"), std::string::npos) << view->reason;
  EXPECT_EQ(view->problem->who_must_act, "nobody: retried");
  DeliverUnseen(Volume("Delete"), "/m does not answer");
  view = manager().storage().FindPersistentVolume("disk");
  ASSERT_TRUE(view && view->problem);
  EXPECT_NE(view->reason.find("/m does not answer"), std::string::npos) << view->reason;
  EXPECT_EQ(view->problem->who_must_act, "an administrator");
  EXPECT_EQ(operations().Count("reclaim"), 0u);
  DeliverSeen();
  EXPECT_EQ(operations().Count("reclaim"), 1u);
}

}  // namespace
}  // namespace volumed
