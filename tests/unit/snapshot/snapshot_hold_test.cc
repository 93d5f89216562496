// What a volume is made of is held meanwhile: snapshots, and volumes that are cloned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SnapshotHoldTest : public SnapshotEngineTest {
 protected:
  static VolumeContent ContentOf(const SnapshotRecord& snapshot) {
    VolumeContent content;
    content.is_snapshot = true;
    content.driver = kDriver;
    content.handle = snapshot.id;
    return content;
  }
  Result<PoolVolumeRecord> Restore(const SnapshotRecord& snapshot, const std::string& name) {
    PoolVolumeWish wish = Wish(name);
    wish.content = ContentOf(snapshot);
    return volumes_->Create(wish, {});
  }
  // The cut is made and the volume, too, but nothing says so.
  void LeaveHalfAClone(const std::string& volume) {
    int clones = 0;
    Before("CloneFile", [this, &clones] {
      if (++clones != 2) return;
      store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "the disk is full"), 1,
                      kPoolVolumeRecordKind);
    });
    EXPECT_FALSE(volumes_->Create(CloneOf(volume), {}).ok());
    node_.SetCallHook(nullptr);
    Run();
  }
};

TEST_F(SnapshotHoldTest, ASnapshotStaysWhileAVolumeIsMadeOfIt) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  std::unique_ptr<HeldContent> held = Must(contents_->Hold(ContentOf(made), "v", {}));
  std::unique_ptr<HeldContent> second = Must(contents_->Hold(ContentOf(made), "w", {}));
  EXPECT_EQ(held->cut_id(), made.id);
  EXPECT_EQ(CodeOf(Delete(made.id)), Code::kFailedPrecondition);
  held.reset();
  EXPECT_EQ(CodeOf(Delete(made.id)), Code::kFailedPrecondition) << "another one has it";
  second.reset();
  EXPECT_TRUE(Delete(made.id).ok());
}

TEST_F(SnapshotHoldTest, ASnapshotThatIsBeingDeletedIsNotHeld) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  engine_->Delete(made.id, [](const Status&) {});
  EXPECT_EQ(CodeOf(contents_->Hold(ContentOf(made), "v", {})), Code::kFailedPrecondition);
  Run();
  EXPECT_EQ(CodeOf(contents_->Hold(ContentOf(made), "v", {})), Code::kNotFound);
}

TEST_F(SnapshotHoldTest, OneThatFailedOrIsNotReadyIsNotHeldForAReason) {
  const std::string volume = Mounted();
  node_.LetThawerWin();
  EXPECT_FALSE(Create("a", volume).ok());
  const SnapshotRecord failed = engine_->FindByName("a").value();
  const auto refused = contents_->Hold(ContentOf(failed), "v", {});
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_THAT(FailureOf(refused).message(), HasSubstr("thawed by its watch"));

  engine_->Create({"b", volume}, [](const Result<SnapshotRecord>&) {});
  const SnapshotRecord begun = engine_->FindByName("b").value();
  EXPECT_EQ(CodeOf(contents_->Hold(ContentOf(begun), "v", {})), Code::kUnavailable);
}

TEST_F(SnapshotHoldTest, AContentOfAnotherDriverIsRefused) {
  VolumeContent content = ContentOf(Must(Create("a", Made().id)));
  content.driver = "disk.example.com";
  EXPECT_EQ(CodeOf(contents_->Hold(content, "v", {})), Code::kInvalidArgument);
}

TEST_F(SnapshotHoldTest, AVolumeIsMadeOfASnapshotWhichCanGoThen) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  const PoolVolumeRecord restored = Must(Restore(made, "pvc-2"));
  EXPECT_EQ(restored.from_snapshot, made.id);
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_EQ(volumes_->Find(restored.id)->state, PoolVolumeState::kReady);
}

TEST_F(SnapshotHoldTest, ACutThatHadLostTheEndOfItsFileWasRestoredWithZerosInItsPlace) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  PoolCutRecord longer = Must(volumes_->FindCut(made.id));
  longer.size_bytes += 16 * kMiB;
  ASSERT_TRUE(store_.Put(EncodeRecord(longer), Durability::kPowerLoss).ok());
  RestartAgent();
  PoolVolumeWish wish = Wish("pvc-2", 32 * kMiB);
  wish.content = ContentOf(made);
  EXPECT_EQ(CodeOf(volumes_->Create(wish, {})), Code::kFailedPrecondition);
  EXPECT_FALSE(volumes_->FindByName("pvc-2").has_value()) << "nothing is left of it";
}

// It stayed half made for ever: its name was taken, and nobody had its id.
TEST_F(SnapshotHoldTest, AVolumeWhoseSnapshotWasDeletedWhileItWasHalfMadeCouldNeverGo) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  Before("CloneFile", [this] {
    store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "the disk is full"), 1,
                    kPoolVolumeRecordKind);
  });
  EXPECT_FALSE(Restore(made, "pvc-2").ok());
  node_.SetCallHook(nullptr);
  const std::string half = volumes_->FindByName("pvc-2").value().id;
  RestartAgent();
  ASSERT_TRUE(Delete(made.id).ok());
  const auto again = Restore(made, "pvc-2");
  EXPECT_EQ(CodeOf(again), Code::kNotFound);
  EXPECT_FALSE(FailureOf(again).maybe_applied());
  EXPECT_FALSE(volumes_->FindByName("pvc-2").has_value());
  EXPECT_FALSE(node_.Exists(kPoolPath + "/volumes/" + half));
}

TEST_F(SnapshotHoldTest, ASnapshotWhoseFileWasMissingWasToldAsNone) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  node_.Remove(kPoolPath + "/cuts/" + made.id + "/image");
  EXPECT_EQ(CodeOf(Restore(made, "pvc-2")), Code::kFailedPrecondition);
}

TEST_F(SnapshotHoldTest, AVolumeIsClonedAndItsCutGoesWithTheMaking) {
  const std::string volume = Made().id;
  std::string row;
  Before("CloneFile", [&] {
    if (row.empty()) row = Rows().at(0).name;
  });
  const PoolVolumeRecord clone = Must(volumes_->Create(CloneOf(volume), {}));
  EXPECT_EQ(row, "clone/" + clone.id) << "it was on record";
  EXPECT_THAT(engine_->List({}), IsEmpty()) << "it is nobody's snapshot";
  Run();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_EQ(volumes_->Find(clone.id)->state, PoolVolumeState::kReady);
}

TEST_F(SnapshotHoldTest, ARepeatedCallHoldsTheCutThatWasMadeBefore) {
  const std::string volume = Made().id;
  LeaveHalfAClone(volume);
  ASSERT_THAT(Rows(), SizeIs(1)) << "the volume is still to be made";
  const std::string id = Rows().at(0).id;
  EXPECT_FALSE(engine_->Find(id)) << "it is nobody's snapshot";
  EXPECT_EQ(CodeOf(Delete(id)), Code::kFailedPrecondition);
  RestartAgent();
  ASSERT_THAT(Rows(), SizeIs(1));

  const PoolVolumeRecord made = Must(volumes_->Create(CloneOf(volume), {}));
  EXPECT_EQ(made.from_volume, volume);
  Run();
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(SnapshotHoldTest, TheCutOfACloneThatIsGivenUpGoesWithItsVolume) {
  const std::string volume = Made().id;
  LeaveHalfAClone(volume);
  const std::string clone = volumes_->FindByName("clone").value().id;
  EXPECT_TRUE(volumes_->Delete(clone, false, {}).ok());
  Run();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotHoldTest, WhatCannotBeCutForACloneLeavesNothing) {
  const std::string volume = Mounted();
  node_.LetThawerWin();
  EXPECT_EQ(CodeOf(volumes_->Create(CloneOf(volume), {})), Code::kAborted);
  Run();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
}

}  // namespace
}  // namespace volumed
