// VolumeSnapshots of claims, and bindings to contents that are there already; what a claim finds.
#include <string>

#include "unit/snapshot/snapshot_objects_fixture.h"

namespace volumed {
namespace {

TEST_F(SnapshotObjectsTest, ASnapshotOfAClaimIsMadeBoundAndReady) {
  ApplyClaim();
  Apply({OfClaim()});
  ASSERT_EQ(maker_.rows.size(), 1U);
  EXPECT_EQ(maker_.rows.begin()->second.name, "snapshot-u1");
  EXPECT_EQ(maker_.rows.begin()->second.volume, "vol-1");
  EXPECT_EQ(StatusShown().bound_volume_snapshot_content_name, kBoundName);
  EXPECT_EQ(StatusShown().ready_to_use, false) << "its bytes may still be copied";
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  const VolumeSnapshotStatus status = StatusShown();
  EXPECT_EQ(status.ready_to_use, true);
  EXPECT_EQ(status.restore_size, Quantity::FromBytes(int64_t{1} << 30));
  EXPECT_EQ(status.creation_unix_millis, 1'767'323'045'000);
  EXPECT_EQ(CountOf("CreatingSnapshot"), 1);
  EXPECT_EQ(CountOf("SnapshotCreated"), 1);
  EXPECT_EQ(CountOf("SnapshotReady"), 1);
  EXPECT_EQ(maker_.creations, 1);
}

TEST_F(SnapshotObjectsTest, ItsContentIsPublishedWithAllThatItsDriverKnows) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  const auto content = ContentShown(kBoundName);
  ASSERT_TRUE(content.has_value());
  EXPECT_EQ(content->spec.volume_snapshot_ref, (SnapshotReference{"default", "s", "u1"}));
  EXPECT_EQ(content->spec.driver, kTestDriver);
  EXPECT_EQ(content->spec.volume_handle, "vol-1");
  EXPECT_EQ(content->spec.volume_snapshot_class_name, "fast");
  EXPECT_EQ(content->spec.deletion_policy, SnapshotDeletionPolicy::kDelete);
  EXPECT_EQ(content->status.snapshot_handle, OnlyId());
  EXPECT_EQ(content->status.creation_unix_nanos, 1'767'323'045'678'000'000);
  EXPECT_EQ(content->status.ready_to_use, true);
  EXPECT_EQ(catalog_.OriginOf(KeyOf(Object(*content)))->source, kSnapshotSource);
  EXPECT_EQ(Shown().metadata.finalizers,
            (std::vector<std::string>{std::string(kSnapshotAsSourceProtection),
                                      std::string(kSnapshotBoundProtection)}));
}

// The column of the class was empty, although one had been taken.
TEST_F(SnapshotObjectsTest, TheDefaultClassThatWasTakenWasNotShown) {
  ApplyClaim();
  Apply({OfClaim()});
  Settle();
  EXPECT_EQ(Shown().spec.volume_snapshot_class_name, "fast");
}

// A crash could otherwise make two snapshots of one VolumeSnapshot.
TEST_F(SnapshotObjectsTest, NothingIsMadeBeforeItsUidIsOnRecord) {
  ApplyClaim();
  uids_on_record_ = false;
  Apply({OfClaim()});
  WaitLong();
  EXPECT_EQ(maker_.creations, 0);
  uids_on_record_ = true;
  objects_->ObjectChanged(std::nullopt);
  Settle();
  EXPECT_EQ(maker_.creations, 1);
}

TEST_F(SnapshotObjectsTest, NothingIsMadeBeforeEachSourceWasLookedInto) {
  ApplyClaim();
  why_not_yet_ = "not yet: manifests";
  Apply({OfClaim()});
  EXPECT_EQ(maker_.creations, 0);
  why_not_yet_.clear();
  WaitLong();
  EXPECT_EQ(maker_.creations, 1);
}

TEST_F(SnapshotObjectsTest, WhatIsMissingIsSaidAndWhenItComesTheSnapshotIsMade) {
  ApplyClaim();
  volumes_.clear();
  Apply({OfClaim()});
  EXPECT_EQ(ErrorShown(),
            "the PVC data is not yet bound to a PV, will not attempt to take a snapshot");
  EXPECT_EQ(StatusShown().ready_to_use, false);
  EXPECT_EQ(CountOf("SnapshotContentCreationFailed"), 1);
  volumes_["data"] = "pv";
  objects_->ObjectChanged(ObjectKey{ObjectKind::kPersistentVolumeClaim, "default", "data"});
  Settle();
  EXPECT_EQ(maker_.creations, 1);
  EXPECT_EQ(ErrorShown(), "");
}

TEST_F(SnapshotObjectsTest, TheClassHasToBeOneOfTheDriverAndTheDefaultTheOnlyOne) {
  ApplyClaim();
  Apply({OfClaim(", volumeSnapshotClassName: none")});
  EXPECT_EQ(ErrorShown(), "there is no VolumeSnapshotClass none");
  Apply({ClassOf("other", "d.io", "Delete", false), OfClaim(", volumeSnapshotClassName: other")});
  EXPECT_EQ(ErrorShown(),
            "VolumeSnapshotClass other is of driver d.io, and the claim's volume of "
            "pool.volumed.io");
  Apply({ClassOf("slow", kTestDriver, "Delete", true), OfClaim()});
  EXPECT_EQ(ErrorShown(),
            "it names no class, and driver pool.volumed.io has 2 default VolumeSnapshotClasses: "
            "fast, slow");
  Apply({ClassOf("slow", kTestDriver, "Delete", false),
         ClassOf("fast", kTestDriver, "Delete", false)});
  EXPECT_EQ(ErrorShown(),
            "it names no class, and driver pool.volumed.io has no default VolumeSnapshotClass");
  EXPECT_EQ(maker_.creations, 0);
  // The default class of another driver does not count.
  Apply({ClassOf("other", "d.io", "Delete", true), ClassOf("fast", kTestDriver, "Delete", true)});
  EXPECT_EQ(maker_.creations, 1);
}

TEST_F(SnapshotObjectsTest, AParameterThatNobodyKnowsIsRefusedAndThoseOfSidecarsAreNot) {
  ApplyClaim();
  Apply({ClassOf("fast", kTestDriver, "Delete", true, "{colour: red}"), OfClaim()});
  EXPECT_NE(ErrorShown().find("the parameter colour"), std::string::npos) << ErrorShown();
  EXPECT_EQ(maker_.creations, 0);
  Apply({ClassOf("fast", kTestDriver, "Delete", true,
                 "{csi.storage.k8s.io/snapshotter-secret-name: s}")});
  EXPECT_EQ(maker_.creations, 1);
}

TEST_F(SnapshotObjectsTest, AVolumeOfAnotherDriverGetsNoSnapshotHere) {
  ApplyClaim();
  volumes_["data"] = "pv-other";
  Apply(
      {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-other, uid: p2}\n"
       "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d.io, "
       "volumeHandle: x}}\n",
       OfClaim()});
  EXPECT_NE(ErrorShown().find("of driver"), std::string::npos) << ErrorShown();
  EXPECT_EQ(maker_.creations, 0);
}

TEST_F(SnapshotObjectsTest, AFailureIsToldAndTriedAgainLaterAndLater) {
  ApplyClaim();
  maker_.fail_next = Error::NotApplied(Code::kResourceExhausted, "the pool is full");
  Apply({OfClaim()});
  EXPECT_NE(ErrorShown().find("the pool is full"), std::string::npos) << ErrorShown();
  EXPECT_EQ(CountOf("SnapshotCreationFailed"), 1);
  EXPECT_EQ(maker_.creations, 1);
  scheduler_.RunFor(std::chrono::milliseconds(500));
  EXPECT_EQ(maker_.creations, 1) << "a second has not passed";
  scheduler_.RunFor(std::chrono::seconds(1));
  EXPECT_EQ(maker_.creations, 2);
  EXPECT_EQ(ErrorShown(), "");
}

TEST_F(SnapshotObjectsTest, AnotherAgentFindsTheSnapshotAndMakesNoSecondOne) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  Begin();
  EXPECT_EQ(maker_.creations, 1);
  EXPECT_EQ(StatusShown().ready_to_use, true);
}

// It would be of another moment, and nobody would know.
TEST_F(SnapshotObjectsTest, ASnapshotThatIsLostIsNotTakenAnew) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.Delete(OnlyId(), [](const Status&) {});
  Settle();
  EXPECT_EQ(ErrorShown(), "VolumeSnapshotContent snapcontent-u1 is missing");
  EXPECT_EQ(CountOf("SnapshotContentMissing"), 1);
  Begin();
  WaitLong();
  EXPECT_EQ(maker_.creations, 1);
  EXPECT_EQ(StatusShown().ready_to_use, false);
}

TEST_F(SnapshotObjectsTest, OneWhoseCopyFailedIsTakenAnewAndOneThatWasCancelledIsNot) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kFailed);
  WaitLong();
  EXPECT_EQ(maker_.creations, 2);
  EXPECT_EQ(StatusShown().bound_volume_snapshot_content_name, kBoundName);
  maker_.SetPhase(OnlyId(), SnapshotPhase::kCancelled);
  WaitLong();
  EXPECT_EQ(maker_.creations, 2);
  EXPECT_EQ(ErrorShown(), "the snapshot was cancelled by command");
}

// Absence is no command: see docs/LAWS.md.
TEST_F(SnapshotObjectsTest, WhatLeavesItsSourceKeepsItsSnapshot) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  Lose(kSnapshot);
  Lose({ObjectKind::kVolumeSnapshotClass, "", "fast"});
  WaitLong();
  EXPECT_TRUE(catalog_.IsMissing(kSnapshot));
  EXPECT_TRUE(catalog_.IsMissing({ObjectKind::kVolumeSnapshotClass, "", "fast"}));
  EXPECT_EQ(maker_.deletions, 0);
  EXPECT_TRUE(ContentShown(kBoundName).has_value());
}

PersistentVolumeClaim ClaimOfSource(const std::string& source) {
  PersistentVolumeClaim claim;
  claim.metadata.name = "restored";
  claim.spec.data_source_json = source;
  return claim;
}

// A manifest was copied with its uid: both got the first one's snapshot, and with it the data of
// another claim, and the deletion of either deleted it.
TEST_F(SnapshotObjectsTest, TwoVolumeSnapshotsOfOneUidDoNotShareASnapshot) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  const ObjectKey copy{ObjectKind::kVolumeSnapshot, "default", "copy"};
  Apply(
      {"apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: copy, uid: "
       "u1}\nspec: {source: {persistentVolumeClaimName: data}}\n"});
  const auto shown = objects_->Shown(std::get<VolumeSnapshot>(*catalog_.FindObject(copy))).status;
  EXPECT_EQ(shown.bound_volume_snapshot_content_name, "");
  EXPECT_EQ(shown.ready_to_use, false);
  ASSERT_TRUE(shown.error.has_value());
  EXPECT_NE(shown.error->message.find("was made for VolumeSnapshot default/s"), std::string::npos)
      << shown.error->message;
  EXPECT_EQ(maker_.creations, 1);
  const std::string id = OnlyId();
  DeleteAndSettle(copy);
  EXPECT_TRUE(ended_.contains(copy));
  EXPECT_TRUE(maker_.Find(id).has_value());
  EXPECT_EQ(StatusShown().ready_to_use, true);
}

// A claim was restored from another one's data.
TEST_F(SnapshotObjectsTest, AContentThatWasAppliedByTheNameOfASnapshotsOwnIsNotTakenForIt) {
  maker_.Add("snap-other", "by hand", SnapshotPhase::kReady);
  Apply(
      {"apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotContent\n"
       "metadata: {name: snapcontent-u1, uid: o9}\nspec: {volumeSnapshotRef: {name: evil, "
       "namespace: default}, deletionPolicy: Retain, driver: pool.volumed.io, "
       "source: {snapshotHandle: snap-other}}\n"});
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(maker_.FindByName("snapshot-u1")->id, SnapshotPhase::kReady);
  Settle();
  WaitLong();
  EXPECT_EQ(StatusShown().ready_to_use, false);
  EXPECT_NE(ErrorShown().find("VolumeSnapshotContent snapcontent-u1 was applied"),
            std::string::npos)
      << ErrorShown();
  const ClaimedSnapshots found(catalog_, maker_, [this](const VolumeSnapshot& snapshot) {
    VolumeSnapshot seen = objects_->Shown(snapshot);
    seen.status.bound_volume_snapshot_content_name = "snapcontent-u1";
    return seen;
  });
  const auto content = found.Find(ClaimOfSource(
      R"({"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s"})"));
  ASSERT_FALSE(content.ok());
  EXPECT_EQ(content.error().code(), Code::kFailedPrecondition);
}

TEST_F(SnapshotObjectsTest, WhoDeletesSnapshotsByIdIsToldWhoseTheyAre) {
  ApplyClaim();
  Apply({OfClaim()});
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  const Status may = objects_->CheckNotHad(OnlyId());
  ASSERT_FALSE(may.ok());
  EXPECT_EQ(may.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(may.error().message().find("default/s"), std::string::npos) << may.error().message();
  EXPECT_TRUE(objects_->CheckNotHad("snap-none").ok());
  why_not_yet_ = "not yet: manifests";
  EXPECT_EQ(objects_->CheckNotHad("snap-none").error().code(), Code::kUnavailable);
}

// ---- contents that are there already ------------------------------------------------------------

TEST_F(SnapshotObjectsTest, ANamedContentIsBoundByNameAndUid) {
  maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
  Apply(
      {NamedContent("name: s, namespace: default"), SnapshotOf("volumeSnapshotContentName: old")});
  EXPECT_EQ(ErrorShown(), "");
  EXPECT_EQ(StatusShown().bound_volume_snapshot_content_name, "old");
  EXPECT_EQ(StatusShown().ready_to_use, true);
  ASSERT_TRUE(ContentShown("old").has_value());
  EXPECT_EQ(ContentShown("old")->spec.volume_snapshot_ref.uid, "u1");
  EXPECT_EQ(ContentShown("old")->status.snapshot_handle, "snap-old");
  EXPECT_EQ(maker_.creations, 0);
}

TEST_F(SnapshotObjectsTest, AContentOfAnotherSnapshotIsNeverTaken) {
  maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
  for (const std::string ref : {"name: t, namespace: default", "name: s, namespace: other",
                                "name: s, namespace: default, uid: u2"}) {
    SCOPED_TRACE(ref);
    Apply({NamedContent(ref), SnapshotOf("volumeSnapshotContentName: old")});
    EXPECT_EQ(ErrorShown(), "VolumeSnapshotContent old is bound to a different snapshot");
    EXPECT_EQ(StatusShown().bound_volume_snapshot_content_name, "");
  }
}

// The uid that a controller writes into the content is on record here.
TEST_F(SnapshotObjectsTest, TheNextSnapshotOfTheNameDoesNotGetWhatTheFirstLeft) {
  maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
  Apply({NamedContent("name: s, namespace: default", "Retain"),
         SnapshotOf("volumeSnapshotContentName: old")});
  DeleteAndSettle(kSnapshot);
  EXPECT_TRUE(ended_.contains(kSnapshot));
  Lose(kSnapshot);
  Begin();
  Apply({SnapshotOf("volumeSnapshotContentName: old", "u2")});
  EXPECT_EQ(ErrorShown(), "VolumeSnapshotContent old is bound to a different snapshot");
  EXPECT_EQ(maker_.deletions, 0);
}

// It was never told that the copy had come to its end, as that was another VolumeSnapshot's.
TEST_F(SnapshotObjectsTest, ANamedContentWithASnapshotThatIsMadeForAnotherBecomesReadyWithIt) {
  maker_.Add("snap-old", "snapshot-u9", SnapshotPhase::kProcessing);
  SnapshotTags of_another;
  of_another.snapshot.name_space = "default";
  of_another.snapshot.name = "another";
  of_another.snapshot.uid = "u9";
  maker_.rows.at("snap-old").tags = TagsOf(of_another);
  Apply(
      {NamedContent("name: s, namespace: default"), SnapshotOf("volumeSnapshotContentName: old")});
  EXPECT_NE(StatusShown().ready_to_use, true);
  maker_.SetPhase("snap-old", SnapshotPhase::kReady);
  Settle();
  EXPECT_EQ(StatusShown().ready_to_use, true);
}

TEST_F(SnapshotObjectsTest, WhatANamedContentLacksIsSaid) {
  Apply({SnapshotOf("volumeSnapshotContentName: old")});
  EXPECT_EQ(ErrorShown(), "VolumeSnapshotContent old is missing");
  Apply({NamedContent("name: s, namespace: default")});
  EXPECT_EQ(ErrorShown(), "VolumeSnapshotContent old names snapshot snap-old, which is not there");
  maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
  WaitLong();
  EXPECT_EQ(ErrorShown(), "");
}

TEST_F(SnapshotObjectsTest, ANamedContentOfAnotherDriverIsNotThisNodes) {
  maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
  Apply({NamedContent("name: s, namespace: default", "Delete", "d.io"),
         SnapshotOf("volumeSnapshotContentName: old")});
  EXPECT_NE(ErrorShown().find("is of driver d.io"), std::string::npos) << ErrorShown();
  DeleteAndSettle(kSnapshot);
  EXPECT_TRUE(ended_.contains(kSnapshot)) << "nothing here keeps it";
  EXPECT_EQ(maker_.deletions, 0);
}

// ---- as the source of a claim -------------------------------------------------------------------

std::string SourceJson(const std::string& kind) {
  return R"({"apiGroup":"snapshot.storage.k8s.io","kind":")" + kind + R"(","name":"s"})";
}

TEST_F(SnapshotObjectsTest, AClaimFindsASnapshotThatIsReady) {
  const ClaimedSnapshots found(catalog_, maker_, [this](const VolumeSnapshot& snapshot) {
    return objects_->Shown(snapshot);
  });
  const PersistentVolumeClaim claim = ClaimOfSource(SourceJson("VolumeSnapshot"));
  EXPECT_EQ(found.Find(claim).error().code(), Code::kNotFound);
  ApplyClaim();
  volumes_.clear();
  Apply({OfClaim()});
  EXPECT_EQ(found.Find(claim).error().code(), Code::kUnavailable) << "it is not bound";
  volumes_["data"] = "pv";
  objects_->ObjectChanged(std::nullopt);
  Settle();
  EXPECT_EQ(found.Find(claim).error().code(), Code::kUnavailable) << "it is not ready";
  maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
  Settle();
  const auto content = found.Find(claim);
  ASSERT_TRUE(content.ok()) << content.error().message();
  ASSERT_TRUE(content->has_value());
  EXPECT_TRUE((*content)->is_snapshot);
  EXPECT_EQ((*content)->driver, kTestDriver);
  EXPECT_EQ((*content)->handle, OnlyId());
  EXPECT_EQ((*content)->size, Quantity::FromBytes(int64_t{1} << 30));
  deleted_.insert(kSnapshot);
  EXPECT_EQ(found.Find(claim).error().code(), Code::kFailedPrecondition);
}

TEST_F(SnapshotObjectsTest, ASourceOfAnotherKindIsNoSnapshot) {
  const ClaimedSnapshots found(catalog_, maker_,
                               [](const VolumeSnapshot& snapshot) { return snapshot; });
  EXPECT_EQ(found.Find(ClaimOfSource(SourceJson("Backup"))).error().code(), Code::kInvalidArgument);
  const auto none = found.Find(PersistentVolumeClaim());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());
}

}  // namespace
}  // namespace volumed
