// Groups of snapshots that a CO makes, deletes and is told of.
#include "csidriver/group_rpcs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "unit/csidriver/snapshot_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::CreateVolumeGroupSnapshotRequest;
using ::csi::v1::DeleteVolumeGroupSnapshotRequest;
using ::csi::v1::DeleteVolumeGroupSnapshotResponse;
using ::csi::v1::GetVolumeGroupSnapshotRequest;
using ::csi::v1::GetVolumeGroupSnapshotResponse;
using ::csi::v1::VolumeGroupSnapshot;
using grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

class GroupRpcsTest : public SnapshotFixture {
 protected:
  static std::vector<std::string> MembersOf(const VolumeGroupSnapshot& group) {
    std::vector<std::string> ids;
    for (const auto& member : group.snapshots()) ids.push_back(member.snapshot_id());
    return ids;
  }
  StatusCode GetGroup(const std::string& id, const std::vector<std::string>& members = {}) {
    GetVolumeGroupSnapshotRequest request;
    request.set_group_snapshot_id(id);
    for (const std::string& member : members) request.add_snapshot_ids(member);
    got_group_.Clear();
    return CodeOf(request, &got_group_);
  }
  StatusCode DeleteGroup(const std::string& id, const std::vector<std::string>& members = {}) {
    DeleteVolumeGroupSnapshotRequest request;
    request.set_group_snapshot_id(id);
    for (const std::string& member : members) request.add_snapshot_ids(member);
    DeleteVolumeGroupSnapshotResponse response;
    return CodeOf(request, &response);
  }
  StatusCode StageAt(const std::string& id, const std::string& path) {
    return StageIt(id, Mount(), path);
  }

  GetVolumeGroupSnapshotResponse got_group_;
};

// ---- CreateVolumeGroupSnapshot ------------------------------------------------------------------

TEST_F(GroupRpcsTest, AGroupHasASnapshotOfEachVolumeOfOneMoment) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  const VolumeGroupSnapshot made = CutGroup("g", {b, a});
  ASSERT_EQ(made.snapshots_size(), 2);
  EXPECT_TRUE(made.ready_to_use());
  EXPECT_GT(made.creation_time().seconds(), 0);
  std::vector<std::string> sources;
  for (const auto& member : made.snapshots()) {
    EXPECT_EQ(member.group_snapshot_id(), made.group_snapshot_id());
    EXPECT_EQ(member.creation_time().ShortDebugString(), made.creation_time().ShortDebugString());
    EXPECT_TRUE(member.ready_to_use());
    EXPECT_EQ(member.size_bytes(), 16 * kMiB);
    sources.push_back(member.source_volume_id());
  }
  EXPECT_THAT(sources, UnorderedElementsAreArray({a, b}));
  EXPECT_THAT(ListedIds(), UnorderedElementsAreArray(MembersOf(made)));
  EXPECT_EQ(listed_.entries(0).snapshot().group_snapshot_id(), made.group_snapshot_id());
}

TEST_F(GroupRpcsTest, TheSameCallFindsTheSameGroupInAnyOrderAndOverARestart) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  const VolumeGroupSnapshot made = CutGroup("g", {a, b});
  EXPECT_EQ(CutGroup("g", {b, a}).ShortDebugString(), made.ShortDebugString());
  RestartSnapshots();
  EXPECT_EQ(CutGroup("g", {a, b}).ShortDebugString(), made.ShortDebugString());
  EXPECT_THAT(ListedIds(), SizeIs(2));
}

TEST_F(GroupRpcsTest, TheNameWithOtherSourcesAlreadyExists) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  CutGroup("g", {a, b});
  EXPECT_EQ(GroupCode(GroupRequest("g", {a})), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, b, CreateNamed("c")})), StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(ListedIds(), SizeIs(2));
}

TEST_F(GroupRpcsTest, TheNameOfASnapshotIsNotThatOfAGroup) {
  const std::string a = CreateNamed("a");
  Cut("g", a);
  EXPECT_EQ(GroupCode(GroupRequest("g", {a})), StatusCode::OK) << message_;
  EXPECT_THAT(ListedIds(), SizeIs(2));
}

TEST_F(GroupRpcsTest, ARequestThatIsNoneIsRefused) {
  const std::string a = CreateNamed("a");
  EXPECT_EQ(GroupCode(GroupRequest("", {a})), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GroupCode(GroupRequest("g", {})), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, a})), StatusCode::INVALID_ARGUMENT) << message_;
  CreateVolumeGroupSnapshotRequest unknown_key = GroupRequest("g", {a});
  (*unknown_key.mutable_parameters())["k"] = "v";
  EXPECT_EQ(GroupCode(unknown_key), StatusCode::INVALID_ARGUMENT);
  CreateVolumeGroupSnapshotRequest of_sidecar = GroupRequest("g", {a});
  (*of_sidecar.mutable_parameters())["csi.storage.k8s.io/volumegroupsnapshot/name"] = "monday";
  EXPECT_EQ(GroupCode(of_sidecar), StatusCode::OK) << message_;
}

TEST_F(GroupRpcsTest, OfAMemberThatThereIsNotNobodyIsCut) {
  const std::string a = CreateNamed("a");
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, "no-id"})), StatusCode::NOT_FOUND) << message_;
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, kIdOfAnotherPool})), StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  EXPECT_EQ(GroupCode(GroupRequest("g", {a})), StatusCode::OK) << "the name is free: " << message_;
}

TEST_F(GroupRpcsTest, VolumesInUseAreCutTogetherAndNothingStaysFrozen) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageAt(a, kStaging), StatusCode::OK) << message_;
  ASSERT_EQ(StageAt(b, kCo + "/stage-b"), StatusCode::OK) << message_;
  const VolumeGroupSnapshot made = CutGroup("g", {a, b});
  for (const std::string& id : MembersOf(made)) {
    EXPECT_TRUE(volumes_->FindCut(id)->was_frozen) << id;
  }
  EXPECT_FALSE(node_.IsFrozen(kStaging));
  EXPECT_FALSE(node_.IsFrozen(kCo + "/stage-b"));
}

TEST_F(GroupRpcsTest, OfAGroupThatFailsNothingIsLeft) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  ASSERT_EQ(StageAt(a, kStaging), StatusCode::OK) << message_;
  node_.LetThawerWin();
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, b})), StatusCode::ABORTED) << message_;
  EXPECT_FALSE(node_.IsFrozen(kStaging));
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  EXPECT_EQ(GroupCode(GroupRequest("g", {a, b})), StatusCode::OK) << message_;
}

// ---- GetVolumeGroupSnapshot ---------------------------------------------------------------------

TEST_F(GroupRpcsTest, AGroupIsToldByItsIdAndByItsMembersIfTheyAreNamed) {
  const VolumeGroupSnapshot made = CutGroup("g", {CreateNamed("a"), CreateNamed("b")});
  std::vector<std::string> members = MembersOf(made);
  ASSERT_EQ(GetGroup(made.group_snapshot_id()), StatusCode::OK) << message_;
  EXPECT_EQ(got_group_.group_snapshot().ShortDebugString(), made.ShortDebugString());
  std::reverse(members.begin(), members.end());
  EXPECT_EQ(GetGroup(made.group_snapshot_id(), members), StatusCode::OK) << message_;
  const std::string alone = Cut("alone", CreateNamed("c")).snapshot_id();
  EXPECT_EQ(GetGroup(made.group_snapshot_id(), {members[0]}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetGroup(made.group_snapshot_id(), {members[0], alone}), StatusCode::INVALID_ARGUMENT);
}

TEST_F(GroupRpcsTest, AGroupThatThereIsNotIsNotFoundAndOneOfAnotherPoolIsNot) {
  EXPECT_EQ(GetGroup(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetGroup("no-id"), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetGroup(NewIdOf(*volumes_, PoolObject::kGroup)), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetGroup(kGroupOfAnotherPool), StatusCode::FAILED_PRECONDITION);
}

// ---- DeleteVolumeGroupSnapshot ------------------------------------------------------------------

TEST_F(GroupRpcsTest, AGroupIsDeletedWithItsMembersOnceAndAgain) {
  const VolumeGroupSnapshot made = CutGroup("g", {CreateNamed("a"), CreateNamed("b")});
  EXPECT_EQ(DeleteGroup(made.group_snapshot_id(), MembersOf(made)), StatusCode::OK) << message_;
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  EXPECT_EQ(GetGroup(made.group_snapshot_id()), StatusCode::NOT_FOUND);
  EXPECT_EQ(DeleteGroup(made.group_snapshot_id()), StatusCode::OK) << message_;
}

TEST_F(GroupRpcsTest, AGroupOfWhichAnObjectOfTheNodeHasAMemberIsNotDeleted) {
  const auto made = CutGroup("g", {CreateNamed("a"), CreateNamed("b")});
  had_by_object_ = MembersOf(made)[1];
  EXPECT_EQ(DeleteGroup(made.group_snapshot_id(), MembersOf(made)),
            StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(GetGroup(made.group_snapshot_id()), StatusCode::OK) << message_;
}

TEST_F(GroupRpcsTest, WhatIsNoGroupIsDeletedAndWhatIsOfAnotherPoolIsNot) {
  EXPECT_EQ(DeleteGroup(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeleteGroup("reallyfakevolumegroupid"), StatusCode::OK) << message_;
  EXPECT_EQ(DeleteGroup(NewIdOf(*volumes_, PoolObject::kGroup)), StatusCode::OK) << message_;
  EXPECT_EQ(DeleteGroup(kGroupOfAnotherPool), StatusCode::FAILED_PRECONDITION) << message_;
}

TEST_F(GroupRpcsTest, AGroupIsDeletedAsAWholeOrNotAtAll) {
  const VolumeGroupSnapshot made = CutGroup("g", {CreateNamed("a"), CreateNamed("b")});
  const std::vector<std::string> members = MembersOf(made);
  EXPECT_EQ(DeleteGroup(made.group_snapshot_id(), {members[0]}), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DeleteCut(members[0]), StatusCode::INVALID_ARGUMENT) << message_;
  EXPECT_THAT(ListedIds(), SizeIs(2));
}

TEST_F(GroupRpcsTest, AVolumeIsMadeOfAMember) {
  const VolumeGroupSnapshot made = CutGroup("g", {CreateNamed("a"), CreateNamed("b")});
  const std::string member = MembersOf(made).at(1);
  EXPECT_EQ(Create(RestoreRequest("c", member)).content_source().snapshot().snapshot_id(), member);
  EXPECT_EQ(DeleteGroup(made.group_snapshot_id()), StatusCode::OK) << message_;
}

}  // namespace
}  // namespace volumed
