// What an agent makes of the snapshots that the one before it has left in each phase.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SnapshotRestartTest : public SnapshotEngineTest {
 protected:
  // The row as an agent that ended there would have left it.
  void LeaveIn(SnapshotPhase phase, SnapshotRecord record) {
    record.phase = phase;
    EXPECT_TRUE(store_.Put(EncodeRecord(record), kSnapshotRecordDurability).ok());
  }
};

TEST_F(SnapshotRestartTest, WhatIsReadyIsThereAgain) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  RestartAgent();
  EXPECT_EQ(engine_->Find(made.id), made);
  EXPECT_EQ(Must(Create("a", made.volume)), made);
}

// The rows of the cut are synced by the snapshot's own.
TEST_F(SnapshotRestartTest, ASnapshotThatWasToldOfIsThereAfterAPowerLoss) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  store_.PowerLoss();
  RestartAgent();
  EXPECT_EQ(engine_->Find(made.id), made);
  EXPECT_TRUE(IsWhole(Must(volumes_->FindCut(made.id))));
}

TEST_F(SnapshotRestartTest, ASnapshotWhoseDeletionWasToldOfDoesNotComeBackInAPowerLoss) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  ASSERT_TRUE(Delete(made.id).ok());
  store_.PowerLoss();
  RestartAgent();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty()) << "what says that it is being discarded has ended";
}

TEST_F(SnapshotRestartTest, WhatWasBeingCutIsNoPointInTimeEvenIfItsFileIsWhole) {
  for (const SnapshotPhase phase : {SnapshotPhase::kFreezing, SnapshotPhase::kCutting}) {
    const SnapshotRecord made = Must(Create("a", Made().id));
    LeaveIn(phase, made);
    RestartAgent();
    EXPECT_THAT(Rows(), IsEmpty()) << SnapshotPhaseName(phase);
    EXPECT_THAT(Cuts(), IsEmpty());
    const SnapshotRecord anew = Must(Create("a", made.volume));
    EXPECT_NE(anew.id, made.id) << "the call that is repeated begins anew";
    EXPECT_TRUE(Delete(anew.id).ok());
  }
}

TEST_F(SnapshotRestartTest, AFreezeThatAnAgentLeftIsEndedByTheNextOne) {
  const std::string volume = Mounted();
  const std::string place = Must(MountedForWriting(*volumes_, paths_, *devices_, node_, volume, {}))
                                .value()
                                .place.Display();
  // Neither the worker nor the agent comes to thaw.
  node_.CutOffNext("CutFrozen");
  node_.FailNext("ThawFilesystem", Error::NotApplied(Code::kUnavailable, "no worker"));
  EXPECT_FALSE(Create("a", volume).ok());
  ASSERT_TRUE(node_.IsFrozen(place));
  ASSERT_THAT(Rows(), SizeIs(1));
  LeaveIn(SnapshotPhase::kFreezing, Rows().at(0));

  EndEngine();
  Restart();
  MakeEngine();
  engine_->EndFreezes();
  Run();
  EXPECT_FALSE(node_.IsFrozen(place)) << "it does not wait for the pool";
  StartEngine();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(node_.blocked_writes(), IsEmpty());
}

TEST_F(SnapshotRestartTest, ADeletionThatWasBegunEnds) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  LeaveIn(SnapshotPhase::kDeleting, made);
  RestartAgent();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotRestartTest, ACancellationThatWasBegunEnds) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  LeaveIn(SnapshotPhase::kCancelling, made);
  RestartAgent();
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kCancelled);
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotRestartTest, OfOneThatFailedTheFilesGoAndTheReasonStays) {
  SnapshotRecord made = Must(Create("a", Made().id));
  made.error = "it did not work";
  LeaveIn(SnapshotPhase::kFailed, made);
  RestartAgent();
  EXPECT_EQ(Rows().at(0).error, "it did not work");
  EXPECT_THAT(Cuts(), IsEmpty());
}

// The discard was refused at the start (its pool was not open yet, or deletions were held back),
// and its volume was "being copied" for ever.
TEST_F(SnapshotRestartTest, WhatIsLeftOfOneThatFailedWasNotDiscardedLater) {
  LeaveIn(SnapshotPhase::kFailed, Must(Create("a", Made().id)));
  irreversible_.hold = true;
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(1));
  irreversible_.hold = false;
  Run(std::chrono::minutes(3));
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kFailed);
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotRestartTest, AGroupThatWasNotCutWholeGoes) {
  const SnapshotGroupView made = Must(CreateGroup("g", {Made("pvc-1").id, Made("pvc-2").id}));
  LeaveIn(SnapshotPhase::kCutting, made.snapshots[1]);
  RestartAgent();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(GroupRows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_TRUE(CreateGroup("g", made.group.volumes).ok());
}

TEST_F(SnapshotRestartTest, AGroupIsThereAgainAndItsDeletionGoesOn) {
  const SnapshotGroupView made = Must(CreateGroup("g", {Made("pvc-1").id, Made("pvc-2").id}));
  RestartAgent();
  EXPECT_EQ(Must(engine_->FindGroup(made.group.id, {})).group, made.group);
  SnapshotGroupRecord going = made.group;
  going.deleting = true;
  EXPECT_TRUE(store_.Put(EncodeRecord(going), kSnapshotRecordDurability).ok());
  RestartAgent();
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(GroupRows(), IsEmpty());
}

TEST_F(SnapshotRestartTest, AGroupWithAMemberThatCannotBeReadIsLeftAlone) {
  const SnapshotGroupView made = Must(CreateGroup("g", {Made("pvc-1").id, Made("pvc-2").id}));
  store_.Corrupt(kSnapshotRecordKind, made.snapshots[0].id, "its checksum is wrong");
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(2));
  EXPECT_THAT(GroupRows(), SizeIs(1));
}

}  // namespace
}  // namespace volumed
