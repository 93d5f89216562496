// VolumeSnapshots and contents that a command deletes: what goes with them, what keeps them, and in
// which order. Records of bindings.
#include <string>

#include "unit/snapshot/snapshot_objects_fixture.h"

namespace volumed {
namespace {

class SnapshotEndsTest : public SnapshotObjectsTest {
 protected:
  void MakeReady(const std::string& policy) {
    ApplyClaim(policy);
    Apply({OfClaim()});
    maker_.SetPhase(OnlyId(), SnapshotPhase::kReady);
    Settle();
  }
  void BindOld(const std::string& policy) {
    maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
    Apply({NamedContent("name: s, namespace: default", policy),
           SnapshotOf("volumeSnapshotContentName: old")});
  }
};

TEST_F(SnapshotEndsTest, WithDeleteItsSnapshotGoesFirst) {
  MakeReady("Delete");
  DeleteAndSettle(kSnapshot);
  EXPECT_TRUE(maker_.rows.empty());
  EXPECT_FALSE(ContentShown(kBoundName).has_value());
  EXPECT_TRUE(ended_.contains(kSnapshot));
}

TEST_F(SnapshotEndsTest, WithRetainSnapshotAndContentStayAlsoAfterARestart) {
  MakeReady("Retain");
  DeleteAndSettle(kSnapshot);
  EXPECT_TRUE(ended_.contains(kSnapshot));
  EXPECT_EQ(maker_.deletions, 0);
  Lose(kSnapshot);
  Begin();
  ASSERT_TRUE(ContentShown(kBoundName).has_value());
  EXPECT_EQ(ContentShown(kBoundName)->spec.volume_snapshot_ref.uid, "u1");
}

// It was told to be taken out of a file, and it is in none.
TEST_F(SnapshotEndsTest, AContentWithRetainThatWasDeletedWasListedAsRefusedUntilItsSnapshotWent) {
  MakeReady("Retain");
  DeleteAndSettle(kSnapshot);
  Lose(kSnapshot);
  const ObjectKey content{ObjectKind::kVolumeSnapshotContent, "", kBoundName};
  DeleteAndSettle(content);
  EXPECT_TRUE(ended_.contains(content));
  EXPECT_FALSE(ContentShown(kBoundName).has_value());
  EXPECT_FALSE(catalog_.Refused().contains(content));
  for (const SourceStatus& source : catalog_.Sources()) {
    EXPECT_TRUE(source.problems.empty()) << source.name;
  }
  EXPECT_EQ(maker_.deletions, 0);
  Begin();
  EXPECT_FALSE(ContentShown(kBoundName).has_value()) << "its snapshot is there still";
  EXPECT_EQ(maker_.rows.size(), 1u);
  EXPECT_TRUE(catalog_.IsEnded(content));
  maker_.Delete(OnlyId(), [](const Status&) {});
  Settle();
  EXPECT_FALSE(catalog_.IsEnded(content)) << "nothing has it any more";
}

TEST_F(SnapshotEndsTest, WhileTheSnapshotCannotBeDeletedItStaysAndSaysWhy) {
  MakeReady("Delete");
  maker_.fail_next = Error::NotApplied(Code::kFailedPrecondition, "a volume is made of it");
  DeleteAndSettle(kSnapshot);
  EXPECT_FALSE(ended_.contains(kSnapshot));
  EXPECT_NE(objects_->HeldBy(kSnapshot).find("a volume is made of it"), std::string::npos);
  EXPECT_EQ(CountOf("SnapshotDeleteError"), 1);
  EXPECT_TRUE(Shown().metadata.deletion_unix_millis.has_value());
  WaitLong();
  EXPECT_TRUE(ended_.contains(kSnapshot));
}

TEST_F(SnapshotEndsTest, NothingIsDeletedBeforeEachSourceWasLookedInto) {
  MakeReady("Delete");
  why_not_yet_ = "not yet: manifests";
  DeleteAndSettle(kSnapshot);
  WaitLong();
  EXPECT_EQ(maker_.deletions, 0);
  EXPECT_FALSE(ended_.contains(kSnapshot));
}

TEST_F(SnapshotEndsTest, AClaimThatIsRestoredFromItKeepsIt) {
  MakeReady("Delete");
  Apply(
      {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: r, uid: c2}\n"
       "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, dataSource: "
       "{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: s}}\n"});
  DeleteAndSettle(kSnapshot);
  EXPECT_EQ(maker_.deletions, 0);
  EXPECT_EQ(objects_->HeldBy(kSnapshot), "PersistentVolumeClaim default/r");
  EXPECT_EQ(CountOf("SnapshotDeletePending"), 1);
  volumes_["r"] = "pv-r";
  objects_->ObjectChanged(ObjectKey{ObjectKind::kPersistentVolumeClaim, "default", "r"});
  Settle();
  EXPECT_TRUE(ended_.contains(kSnapshot));
}

TEST_F(SnapshotEndsTest, OneThatIsBeingMadeWaitsForItAndLeavesNothing) {
  ApplyClaim("Retain");
  maker_.holds_back = true;
  Apply({OfClaim()});
  DeleteAndSettle(kSnapshot);
  EXPECT_FALSE(ended_.contains(kSnapshot)) << "the snapshot would be nobody's";
  maker_.waiting();
  maker_.rows.begin()->second.phase = SnapshotPhase::kFailed;
  WaitLong();
  EXPECT_TRUE(ended_.contains(kSnapshot));
  EXPECT_TRUE(maker_.rows.empty()) << "what has no point in time goes whatever the policy";
}

TEST_F(SnapshotEndsTest, ANamedContentWithDeleteGoesBetweenItsSnapshotAndTheOneThatNamesIt) {
  BindOld("Delete");
  DeleteAndSettle(kSnapshot);
  WaitLong();
  EXPECT_TRUE(maker_.rows.empty());
  EXPECT_TRUE(ended_.contains(kOldContent)) << "its manifest would name a snapshot that is gone";
  EXPECT_TRUE(ended_.contains(kSnapshot));
}

// The snapshot was deleted under the other one, which was to keep it.
TEST_F(SnapshotEndsTest, ASnapshotThatAnotherVolumeSnapshotHasAsWellIsNotDeletedUnderIt) {
  BindOld("Delete");
  const ObjectKey second{ObjectKind::kVolumeSnapshot, "default", "second"};
  Apply(
      {"apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotContent\n"
       "metadata: {name: kept, uid: o2}\nspec: {volumeSnapshotRef: {name: second, namespace: "
       "default}, deletionPolicy: Retain, driver: pool.volumed.io, source: {snapshotHandle: "
       "snap-old}}\n",
       "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: second, "
       "uid: u2}\nspec: {source: {volumeSnapshotContentName: kept}}\n"});
  DeleteAndSettle(kSnapshot);
  WaitLong();
  EXPECT_FALSE(ended_.contains(kSnapshot));
  EXPECT_EQ(maker_.deletions, 0);
  EXPECT_NE(objects_->HeldBy(kSnapshot).find("default/second, too"), std::string::npos)
      << objects_->HeldBy(kSnapshot);
  DeleteAndSettle(second);
  WaitLong();
  EXPECT_TRUE(ended_.contains(second));
  EXPECT_TRUE(ended_.contains(kSnapshot));
  EXPECT_TRUE(maker_.rows.empty());
}

TEST_F(SnapshotEndsTest, AContentThatIsBoundOutlivesItsOwnDeletion) {
  BindOld("Delete");
  DeleteAndSettle(kOldContent);
  WaitLong();
  EXPECT_FALSE(ended_.contains(kOldContent));
  EXPECT_EQ(maker_.deletions, 0);
  EXPECT_EQ(objects_->HeldBy(kOldContent), "VolumeSnapshot default/s is bound to it");
  DeleteAndSettle(kSnapshot);
  WaitLong();
  EXPECT_TRUE(ended_.contains(kOldContent));
  EXPECT_TRUE(ended_.contains(kSnapshot));
  EXPECT_TRUE(maker_.rows.empty());
}

TEST_F(SnapshotEndsTest, AContentThatNobodyHasGoesByItsOwnPolicy) {
  for (const std::string policy : {"Delete", "Retain"}) {
    SCOPED_TRACE(policy);
    maker_.Add("snap-old", "by hand", SnapshotPhase::kReady);
    Apply({NamedContent("name: s, namespace: default", policy, kTestDriver,
                        policy == "Delete" ? "o1" : "o2")});
    DeleteAndSettle(kOldContent);
    EXPECT_TRUE(ended_.contains(kOldContent));
    EXPECT_EQ(maker_.rows.empty(), policy == "Delete");
    Lose(kOldContent);
    ended_.clear();
  }
}

TEST_F(SnapshotEndsTest, TheRecordOfABindingGoesWithBoth) {
  BindOld("Retain");
  EXPECT_EQ(store_.Load(kSnapshotBindingRecordKind)->records.size(), 1U);
  DeleteAndSettle(kSnapshot);
  Lose(kSnapshot);
  EXPECT_EQ(store_.Load(kSnapshotBindingRecordKind)->records.size(), 1U)
      << "the content is still bound to it";
  DeleteAndSettle(kOldContent);
  Lose(kOldContent);
  Settle();
  EXPECT_TRUE(store_.Load(kSnapshotBindingRecordKind)->records.empty());
}

TEST_F(SnapshotEndsTest, WhoHasASnapshotIsKnown) {
  MakeReady("Delete");
  EXPECT_EQ(objects_->WhoHas(OnlyId()), kSnapshot);
  EXPECT_EQ(objects_->WhoHas("snap-unknown"), std::nullopt);
}

TEST(SnapshotBindingRecordTest, ARowThatLacksAUidIsUnreadable) {
  SnapshotBindingRecord record{"old", "o1", "default", "s", "u1"};
  const auto again = DecodeSnapshotBindingRecord(EncodeRecord(record));
  ASSERT_TRUE(again.ok()) << again.error().message();
  EXPECT_EQ(*again, record);
  record.uid.clear();
  EXPECT_EQ(DecodeSnapshotBindingRecord(EncodeRecord(record)).error().code(), Code::kDataLoss);
}

TEST(SnapshotTagsTest, TheyComeBackFromARowAndThoseOfOthersDoNot) {
  SnapshotTags tags;
  tags.snapshot = {"default", "s", "u1"};
  tags.policy = SnapshotDeletionPolicy::kRetain;
  tags.class_name = "fast";
  tags.mode = VolumeMode::kBlock;
  SnapshotRecord row;
  row.name = ObjectSnapshotName("u1");
  row.tags = TagsOf(tags);
  EXPECT_EQ(SnapshotTagsOf(row), tags);
  row.name = "csi:snapshot-u1";
  EXPECT_EQ(SnapshotTagsOf(row), std::nullopt) << "a CO may give any tags, and never this name";
}

// It must not take data away.
TEST(SnapshotTagsTest, APolicyThatIsNotKnownIsRetain) {
  SnapshotRecord row;
  row.name = ObjectSnapshotName("u1");
  row.tags = {{"volumed.io/volumesnapshot-uid", "u1"}, {"volumed.io/deletion-policy", "Archive"}};
  ASSERT_TRUE(SnapshotTagsOf(row).has_value());
  EXPECT_EQ(SnapshotTagsOf(row)->policy, SnapshotDeletionPolicy::kRetain);
}

}  // namespace
}  // namespace volumed
