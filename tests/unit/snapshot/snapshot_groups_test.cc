// Snapshots of several volumes at one moment: all of them, or none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SnapshotGroupsTest : public SnapshotEngineTest {
 protected:
  std::vector<std::string> Volumes() { return {Made("pvc-1").id, Made("pvc-2").id}; }
};

TEST_F(SnapshotGroupsTest, AGroupHasASnapshotOfEachVolume) {
  std::vector<std::string> volumes = Volumes();
  const SnapshotGroupView made = Must(CreateGroup("g", volumes));
  ASSERT_THAT(made.snapshots, SizeIs(2));
  std::sort(volumes.begin(), volumes.end());
  for (size_t at = 0; at < 2; ++at) {
    EXPECT_EQ(made.snapshots[at].volume, volumes[at]);
    EXPECT_EQ(made.snapshots[at].phase, SnapshotPhase::kReady);
    EXPECT_EQ(made.snapshots[at].group, made.group.id);
    EXPECT_EQ(made.group.snapshots[at], made.snapshots[at].id);
  }
  EXPECT_EQ(Must(engine_->FindGroup(made.group.id, {})).group, made.group);
  EXPECT_THAT(engine_->List({}), SizeIs(2));
  EXPECT_THAT(GroupRows(), SizeIs(1));
}

TEST_F(SnapshotGroupsTest, AGroupWhoseRecordsWereLostWasDeletedWhileItsCutsStayed) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  for (const char* kind : {kSnapshotRecordKind, kSnapshotGroupRecordKind, kPoolCutRecordKind}) {
    for (const Record& row : Must(store_.Load(kind)).records) {
      ASSERT_TRUE(store_.Remove(kind, row.key, Durability::kPowerLoss).ok());
    }
  }
  RestartAgent();
  EXPECT_EQ(CodeOf(DeleteGroup(made.group.id)), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(engine_->FindGroup(made.group.id, {})), Code::kFailedPrecondition);
  EXPECT_THAT(Cuts(), SizeIs(2));
}

// A copy that ends while the deletion is asked for saves its row as one that goes: it went with the
// next start, although the deletion had been refused.
TEST_F(SnapshotGroupsTest, AMemberWhoseRowSaidThatItWasToGoWentAfterTheDeletionWasRefused) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  for (SnapshotRecord row : Rows()) {
    row.delete_asked = true;
    ASSERT_TRUE(store_.Put(EncodeRecord(row), Durability::kPowerLoss).ok());
  }
  SnapshotGroupRecord group = made.group;
  group.deleting = true;
  ASSERT_TRUE(store_.Put(EncodeRecord(group), Durability::kPowerLoss).ok());
  BindCut(made.snapshots[1].id);
  RestartAgent();
  EXPECT_EQ(Must(engine_->FindGroup(made.group.id, {})).group, made.group) << "it was refused";
  Must(node_.DoAside(Unmount{{"/elsewhere", ""}}));
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(2));
  EXPECT_TRUE(std::ranges::none_of(Rows(), &SnapshotRecord::delete_asked));
}

// While its pool was away nobody could be seen who had it, and its end was put on record.
TEST_F(SnapshotGroupsTest, AGroupThatSomebodyHadWasDeletedIfItsPoolWasAwayWhenThatWasAsked) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  BindCut(made.snapshots[1].id);
  node_.FailNext("IdentifyStorage", Error::NotApplied(Code::kUnavailable, "the pool is away"));
  EXPECT_EQ(CodeOf(DeleteGroup(made.group.id)), Code::kUnavailable);
  Run(std::chrono::minutes(1));
  EXPECT_THAT(Cuts(), SizeIs(2));
  EXPECT_EQ(Must(engine_->FindGroup(made.group.id, {})).group, made.group) << "it was refused";
  Must(node_.DoAside(Unmount{{"/elsewhere", ""}}));
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(2));
}

TEST_F(SnapshotGroupsTest, AGroupOfWhichSomebodyHasOneMemberStaysWhole) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  BindCut(made.snapshots[1].id);
  EXPECT_EQ(CodeOf(DeleteGroup(made.group.id)), Code::kFailedPrecondition);
  EXPECT_EQ(Must(engine_->FindGroup(made.group.id, {})).snapshots.size(), 2u);
  Must(node_.DoAside(Unmount{{"/elsewhere", ""}}));
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(2));
  EXPECT_TRUE(DeleteGroup(made.group.id).ok());
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotGroupsTest, MembersThatAreMountedAreFrozenTogetherAndTheOthersAreCutMeanwhile) {
  const std::string mounted = Mounted("pvc-1");
  const std::string idle = Made("pvc-2").id;
  size_t frozen = 0;
  size_t cut = 0;
  node_.SetCallHook([&](const AnyRequest& request) {
    const auto* one = std::get_if<CutFrozen>(&request);
    if (one == nullptr) return;
    frozen = one->freeze.size();
    cut = one->cuts.size();
  });
  EXPECT_TRUE(CreateGroup("g", {mounted, idle}).ok());
  EXPECT_EQ(frozen, 1U);
  EXPECT_EQ(cut, 2U);
}

TEST_F(SnapshotGroupsTest, AllDevicesAreTheCutsAlone) {
  const std::vector<std::string> volumes = Volumes();
  bool are_free = false;
  Before("CloneFile", [&] {
    for (const std::string& volume : volumes) {
      are_free = are_free || !operations_->FindOwner(PoolDeviceName(volume));
    }
  });
  EXPECT_TRUE(CreateGroup("g", volumes).ok());
  EXPECT_FALSE(are_free);
}

TEST_F(SnapshotGroupsTest, WhatIsLeftOfAGroupThatFailedIsGoneBeforeTheErrorIsTold) {
  const std::vector<std::string> volumes = Volumes();
  int clones = 0;
  Before("CloneFile", [&] {
    if (++clones == 2) node_.FailNext("CloneFile", EIO, Outcome::kMaybeApplied);
  });
  std::optional<size_t> left_when_told;
  engine_->CreateGroup({"g", volumes}, [&](const Result<SnapshotGroupView>& made) {
    EXPECT_EQ(CodeOf(made), CodeFromErrno(EIO));
    left_when_told = Cuts().size() + Rows().size() + GroupRows().size();
  });
  Run();
  EXPECT_EQ(clones, 2);
  EXPECT_EQ(left_when_told, 0U);
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  node_.SetCallHook(nullptr);
  EXPECT_TRUE(CreateGroup("g", volumes).ok());
}

TEST_F(SnapshotGroupsTest, TheSameCallAgainFindsTheGroupInWhateverOrderItNamesTheVolumes) {
  const std::vector<std::string> volumes = Volumes();
  const SnapshotGroupView made = Must(CreateGroup("g", volumes, {{"k", "v"}}));
  EXPECT_EQ(Must(CreateGroup("g", {volumes[1], volumes[0]}, {{"k", "v"}})).group, made.group);
  EXPECT_EQ(CodeOf(CreateGroup("g", {volumes[0]}, {{"k", "v"}})), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(CreateGroup("g", volumes)), Code::kAlreadyExists) << "other parameters";
}

TEST_F(SnapshotGroupsTest, AGroupNeedsVolumesThatAreNamedOnce) {
  const std::string volume = Made().id;
  EXPECT_EQ(CodeOf(CreateGroup("g", {})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(CreateGroup("g", {volume, volume})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(CreateGroup("g", {volume, "no-volume"})), Code::kNotFound);
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(SnapshotGroupsTest, AGroupOfWhichAVolumeIsBusyIsAbortedAndNothingStays) {
  const std::vector<std::string> volumes = Volumes();
  PoolServed pools{*volumes_, kDriver};
  EXPECT_EQ(operations_->Start(ExpandPoolVolume(pools, volumes[1], 32 * kMiB), [](const auto&) {}),
            StartResult::kStarted);
  EXPECT_EQ(CodeOf(CreateGroup("g", volumes)), Code::kAborted);
  EXPECT_THAT(GroupRows(), IsEmpty());
  EXPECT_TRUE(CreateGroup("g", volumes).ok());
}

TEST_F(SnapshotGroupsTest, MembersGoWithTheirGroupAlone) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  EXPECT_EQ(CodeOf(Delete(made.snapshots[0].id)), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Cancel(made.snapshots[0].id)), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(DeleteGroup(made.group.id, {made.snapshots[0].id})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(engine_->FindGroup(made.group.id, {made.snapshots[0].id})),
            Code::kInvalidArgument);
  EXPECT_TRUE(DeleteGroup(made.group.id, {made.snapshots[1].id, made.snapshots[0].id}).ok());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(GroupRows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_EQ(CodeOf(engine_->FindGroup(made.group.id, {})), Code::kNotFound);
  EXPECT_TRUE(DeleteGroup(made.group.id).ok()) << "the same call again";
  EXPECT_TRUE(DeleteGroup("no-id").ok());
  EXPECT_EQ(CodeOf(DeleteGroup("g-00000000-0123456789abcdef01234567")), Code::kFailedPrecondition);
}

TEST_F(SnapshotGroupsTest, AGroupStaysWhileAVolumeIsMadeOfAMember) {
  const SnapshotGroupView made = Must(CreateGroup("g", Volumes()));
  ASSERT_TRUE(engine_->Hold(made.snapshots[1].id).ok());
  EXPECT_EQ(CodeOf(DeleteGroup(made.group.id)), Code::kFailedPrecondition);
  EXPECT_THAT(Cuts(), SizeIs(2));
  engine_->Release(made.snapshots[1].id);
  EXPECT_TRUE(DeleteGroup(made.group.id).ok());
}

class SnapshotGroupCopiesTest : public SnapshotEngineTest {
 protected:
  SnapshotGroupCopiesTest() : SnapshotEngineTest("") {}
};

TEST_F(SnapshotGroupCopiesTest, TheErrorOfAMemberIsToldOnceAndTheNextCallBeginsAnew) {
  const std::vector<std::string> volumes = {Made("pvc-1").id, Made("pvc-2").id};
  node_.FailNext("CopyFile", Error::FromErrno(EIO, "copy", Outcome::kMaybeApplied));
  const std::string id = Must(CreateGroup("g", volumes)).group.id;
  EXPECT_EQ(CodeOf(CreateGroup("g", volumes)), CodeFromErrno(EIO));
  const SnapshotGroupView anew = Must(CreateGroup("g", volumes));
  EXPECT_NE(anew.group.id, id);
  EXPECT_THAT(GroupRows(), SizeIs(1));
  EXPECT_THAT(Rows(), SizeIs(2));
}

}  // namespace
}  // namespace volumed
