// Snapshots that a CO makes, deletes and is told of.
#include "csidriver/snapshot_rpcs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "unit/csidriver/snapshot_fixture.h"

namespace volumed {
namespace {

using ::csi::v1::CreateSnapshotRequest;
using ::csi::v1::ListSnapshotsRequest;
using ::csi::v1::Snapshot;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using Controller = ::csi::v1::ControllerServiceCapability::RPC;
using Plugin = ::csi::v1::PluginCapability::Service;
using grpc::StatusCode;

class SnapshotRpcsTest : public SnapshotFixture {
 protected:
  using SnapshotFixture::SnapshotFixture;

  std::string UnknownCut() const { return NewIdOf(*volumes_, PoolObject::kCut); }
  static ListSnapshotsRequest Of(const std::string& snapshot, const std::string& volume = "") {
    ListSnapshotsRequest request;
    request.set_snapshot_id(snapshot);
    request.set_source_volume_id(volume);
    return request;
  }
};

// What it takes where no blocks can be shared: bytes are copied after the cut.
class CopiedSnapshotRpcsTest : public SnapshotRpcsTest {
 protected:
  CopiedSnapshotRpcsTest() : SnapshotRpcsTest("") {}
};

// ---- what is announced --------------------------------------------------------------------------

TEST_F(SnapshotRpcsTest, EachProfileAnnouncesSnapshotsAndWhatIsMadeOfThem) {
  for (const CsiProfile profile : {CsiProfile::kCentral, CsiProfile::kNode}) {
    RestartSnapshots(profile);
    const CsiCapabilities has = handlers_->Capabilities();
    for (const auto type : {Controller::CREATE_DELETE_SNAPSHOT, Controller::LIST_SNAPSHOTS,
                            Controller::CLONE_VOLUME}) {
      EXPECT_THAT(has.controller, Contains(type)) << CsiProfileName(profile);
    }
    EXPECT_THAT(has.plugin,
                ElementsAre(Plugin::CONTROLLER_SERVICE, Plugin::VOLUME_ACCESSIBILITY_CONSTRAINTS,
                            Plugin::GROUP_CONTROLLER_SERVICE));
    EXPECT_THAT(has.group, ElementsAre(::csi::v1::GroupControllerServiceCapability::RPC::
                                           CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT));
  }
}

TEST_F(SnapshotRpcsTest, TheNewerLevelKnowsGetSnapshotThePlacesOfSnapshotsAndTheHealthOfVolumes) {
  RestartSnapshots(CsiProfile::kCentral, CsiServeLevel::k1_13);
  const CsiCapabilities has = handlers_->Capabilities();
  EXPECT_THAT(has.plugin, Contains(Plugin::SNAPSHOT_ACCESSIBILITY_CONSTRAINTS));
  EXPECT_THAT(has.controller, Contains(Controller::GET_SNAPSHOT));
  EXPECT_THAT(has.controller, Contains(Controller::GET_VOLUME_HEALTH));
  EXPECT_THAT(has.controller, Contains(Controller::LIST_VOLUME_HEALTH));
}

// ---- CreateSnapshot -----------------------------------------------------------------------------

TEST_F(SnapshotRpcsTest, ASnapshotIsToldWithItsVolumeItsMomentAndTheLeastSizeOfAVolumeOfIt) {
  const std::string volume = CreateNamed("a");
  const int64_t second = clock_.WallUnixMillis() / 1000;
  clock_.ShiftWallMillis(second * 1000 + 123 - clock_.WallUnixMillis());
  const Snapshot made = Cut("one", volume);
  EXPECT_EQ(volumes_->FindCut(made.snapshot_id())->volume, volume);
  EXPECT_EQ(made.source_volume_id(), volume);
  EXPECT_EQ(made.size_bytes(), 16 * kMiB);
  EXPECT_EQ(made.creation_time().seconds(), second);
  EXPECT_EQ(made.creation_time().nanos(), 123000000);
  EXPECT_TRUE(made.ready_to_use());
  EXPECT_EQ(made.group_snapshot_id(), "");
  ASSERT_EQ(made.accessible_topology_size(), 1);
  EXPECT_EQ(made.accessible_topology(0).segments().at(PoolTopologyLabel(kDriver)), kThisNode);
}

TEST_F(SnapshotRpcsTest, TheSameCallFindsTheSameSnapshotOverARestartToo) {
  const std::string volume = CreateNamed("a");
  const Snapshot made = Cut("one", volume);
  scheduler_.RunFor(std::chrono::seconds(5));
  EXPECT_EQ(Cut("one", volume).ShortDebugString(), made.ShortDebugString());
  RestartSnapshots();
  EXPECT_EQ(Cut("one", volume).ShortDebugString(), made.ShortDebugString());
  EXPECT_THAT(ListedIds(), ElementsAre(made.snapshot_id()));
}

TEST_F(SnapshotRpcsTest, TheNameWithAnotherSourceAlreadyExists) {
  const std::string volume = CreateNamed("a");
  const std::string id = Cut("one", volume).snapshot_id();
  EXPECT_EQ(CutCode("one", CreateNamed("b")), StatusCode::ALREADY_EXISTS) << message_;
  EXPECT_THAT(ListedIds(), ElementsAre(id));
}

TEST_F(SnapshotRpcsTest, NamesOfTheLongestKindAndWithLineBreaksAreNames) {
  const std::string volume = CreateNamed("a");
  const std::string longest(128, 'n');
  const std::string id = Cut(longest, volume).snapshot_id();
  EXPECT_EQ(Cut(longest, volume).snapshot_id(), id);
  const std::string broken = Cut("a\nb", volume).snapshot_id();
  EXPECT_NE(Cut("a\tb", volume).snapshot_id(), broken);
  EXPECT_EQ(Cut("a\nb", volume).snapshot_id(), broken);
}

// An object's snapshot has the very name that an external-snapshotter gives: "snapshot-<uid>".
TEST_F(SnapshotRpcsTest, ANameOfACoNeverFindsTheSnapshotOfAnObject) {
  const std::string volume = CreateNamed("a");
  std::string of_object;
  engine_->Create({"snapshot-1", volume}, [&](const Result<SnapshotRecord>& made) {
    of_object = made.ok() ? made->id : made.error().message();
  });
  scheduler_.RunFor(std::chrono::milliseconds(1));
  const std::string of_co = Cut("snapshot-1", volume).snapshot_id();
  EXPECT_NE(of_co, of_object);
  EXPECT_THAT(ListedIds(), UnorderedElementsAre(of_object, of_co));
}

TEST_F(SnapshotRpcsTest, ARequestThatIsNoneIsRefused) {
  const std::string volume = CreateNamed("a");
  EXPECT_EQ(CutCode("", volume), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CutCode("one", ""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(CutCode(std::string(129, 'n'), volume), StatusCode::INVALID_ARGUMENT);
  CreateSnapshotRequest unknown_key = CutRequestOf("one", volume);
  (*unknown_key.mutable_parameters())["XXX_FakeKey"] = "1";
  EXPECT_EQ(CutCode(unknown_key), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, HasSubstr("XXX_FakeKey"));
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
}

TEST_F(SnapshotRpcsTest, ParametersOfSidecarsArePassedOver) {
  CreateSnapshotRequest request = CutRequestOf("one", CreateNamed("a"));
  (*request.mutable_parameters())["csi.storage.k8s.io/volumesnapshot/name"] = "monday";
  EXPECT_EQ(CutCode(request), StatusCode::OK) << message_;
}

TEST_F(SnapshotRpcsTest, AVolumeThatThereIsNotIsNotFoundAndOneOfAnotherPoolIsNot) {
  EXPECT_EQ(CutCode("one", "no-id"), StatusCode::NOT_FOUND) << message_;
  EXPECT_EQ(CutCode("one", NewIdOf(*volumes_, PoolObject::kVolume)), StatusCode::NOT_FOUND);
  EXPECT_EQ(CutCode("one", kIdOfAnotherPool), StatusCode::FAILED_PRECONDITION) << message_;
}

TEST_F(SnapshotRpcsTest, ASnapshotIsWhereItHasToBeOrIsNotMade) {
  CreateSnapshotRequest request = CutRequestOf("one", CreateNamed("a"));
  auto& required = *request.mutable_accessibility_requirements()->add_requisite();
  (*required.mutable_segments())[PoolTopologyLabel(kDriver)] = "other";
  EXPECT_EQ(CutCode(request), StatusCode::RESOURCE_EXHAUSTED) << message_;
  (*required.mutable_segments())[PoolTopologyLabel(kDriver)] = kThisNode;
  EXPECT_EQ(CutCode(request), StatusCode::OK) << message_;
}

TEST_F(SnapshotRpcsTest, AVolumeInUseIsCutAndNothingStaysFrozen) {
  const std::string volume = CreateNamed("a");
  ASSERT_EQ(StageIt(volume), StatusCode::OK) << message_;
  const Snapshot made = Cut("one", volume);
  EXPECT_TRUE(made.ready_to_use());
  EXPECT_TRUE(volumes_->FindCut(made.snapshot_id())->was_frozen);
  EXPECT_FALSE(node_.IsFrozen(kStaging));
}

// The cut waited for the other filesystem, in the place of a worker of the pool.
TEST_F(SnapshotRpcsTest, AVolumeWhosePlaceLiesOnWhatDoesNotAnswerIsNotFrozenThere) {
  const std::string volume = CreateNamed("a");
  const std::string far = kCo + "/far";
  node_.AddDirectory(far + "/stage");
  ASSERT_EQ(StageIt(volume, Mount(), far + "/stage"), StatusCode::OK) << message_;
  node_.Hang(far);
  kernel_.calls.clear();
  EXPECT_NE(CutCode("one", volume), StatusCode::OK);
  EXPECT_THAT(message_, ::testing::HasSubstr(far + " does not answer"));
  EXPECT_THAT(kernel_.DomainsOf("CutFrozen"), IsEmpty());
  node_.Unhang(far);
  Cut("two", volume);
  EXPECT_FALSE(node_.IsFrozen(far + "/stage"));
}

TEST_F(SnapshotRpcsTest, ACutWhoseFreezeWasEndedByItsWatchCountsForNothing) {
  const std::string volume = CreateNamed("a");
  ASSERT_EQ(StageIt(volume), StatusCode::OK) << message_;
  node_.LetThawerWin();
  EXPECT_EQ(CutCode("one", volume), StatusCode::ABORTED) << message_;
  EXPECT_FALSE(node_.IsFrozen(kStaging));
  EXPECT_THAT(ListedIds(), IsEmpty());
  const Snapshot made = Cut("one", volume);
  EXPECT_THAT(ListedIds(), ElementsAre(made.snapshot_id()));
}

TEST_F(SnapshotRpcsTest, WhereThereIsNoRoomForWhatTheVolumeHasNothingIsCut) {
  ::csi::v1::CreateVolumeRequest thick = CreateRequest("a", 16 * kMiB);
  (*thick.mutable_parameters())["allocation"] = "thick";
  const std::string volume = Create(thick).volume_id();
  node_.LimitFilesystem(kPoolPath, 20 * kMiB);
  EXPECT_EQ(CutCode("one", volume), StatusCode::RESOURCE_EXHAUSTED) << message_;
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  node_.LimitFilesystem(kPoolPath, 200 * kMiB);
  EXPECT_EQ(CutCode("one", volume), StatusCode::OK) << message_;
}

TEST_F(SnapshotRpcsTest, ASecondCallOfTheNameIsAbortedWhileTheFirstGoesOn) {
  const CreateSnapshotRequest request = CutRequestOf("one", CreateNamed("a"));
  ::csi::v1::CreateSnapshotResponse first_response;
  ::csi::v1::CreateSnapshotResponse second_response;
  const auto first = Begin(request, &first_response);
  const auto second = Begin(request, &second_response);
  scheduler_.RunFor(std::chrono::milliseconds(1));
  EXPECT_TRUE(first->ok()) << first->error_message();
  EXPECT_EQ(second->error_code(), StatusCode::ABORTED);
}

TEST_F(SnapshotRpcsTest, NoSecretOfARequestIsOnRecordOrInTheLog) {
  CreateSnapshotRequest request = CutRequestOf("one", CreateNamed("a"));
  (*request.mutable_secrets())["password"] = "CANARY-1";
  ASSERT_EQ(CutCode(request), StatusCode::OK) << message_;
  (*request.mutable_parameters())["CANARY-1"] = "CANARY-1";
  EXPECT_EQ(CutCode(request), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(message_, Not(HasSubstr("CANARY")));
  EXPECT_EQ(log_.Count("CANARY"), 0);
  for (const Record& row : store_.All()) {
    EXPECT_EQ(row.bytes.find("CANARY"), std::string::npos) << row.kind;
  }
}

// ---- what is not ready, or has failed -----------------------------------------------------------

TEST_F(CopiedSnapshotRpcsTest, ASnapshotIsToldOnceItIsCutAndTheCallIsRepeatedUntilItIsReady) {
  const std::string volume = CreateNamed("a");
  ::csi::v1::CreateSnapshotResponse response;
  const auto status = Begin(CutRequestOf("one", volume), &response);
  scheduler_.RunUntil([&] { return status->error_code() != StatusCode::UNKNOWN; },
                      std::chrono::seconds(1));
  ASSERT_TRUE(status->ok()) << status->error_message();
  EXPECT_FALSE(response.snapshot().ready_to_use());
  const std::optional<SnapshotRecord> copied = engine_->Find(response.snapshot().snapshot_id());
  ASSERT_TRUE(copied.has_value());
  EXPECT_TRUE(IsCut(copied->phase));
  scheduler_.RunFor(std::chrono::seconds(1));  // the copy ends
  const Snapshot later = Cut("one", volume);
  EXPECT_TRUE(later.ready_to_use());
  EXPECT_EQ(later.snapshot_id(), response.snapshot().snapshot_id());
  EXPECT_EQ(later.creation_time().seconds(), response.snapshot().creation_time().seconds());
}

TEST_F(CopiedSnapshotRpcsTest, AVolumeThatIsWrittenToIsNotCutWhereItsBytesWouldBeCopied) {
  const std::string volume = CreateNamed("a");
  ASSERT_EQ(StageIt(volume), StatusCode::OK) << message_;
  EXPECT_EQ(CutCode("one", volume), StatusCode::FAILED_PRECONDITION) << message_;
  EXPECT_FALSE(node_.IsFrozen(kStaging));
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  ASSERT_EQ(UnstageIt(volume), StatusCode::OK) << message_;
  EXPECT_EQ(CutCode("one", volume), StatusCode::OK) << message_;
}

TEST_F(CopiedSnapshotRpcsTest, WhatFailsAfterTheCutIsToldOnceAndTheNextCallBeginsAnew) {
  const std::string volume = CreateNamed("a");
  node_.FailNext("CopyFile", Error::NotApplied(Code::kDataLoss, "a sector cannot be read"));
  const std::string failed = Cut("one", volume).snapshot_id();
  EXPECT_EQ(GetCut(failed), StatusCode::DATA_LOSS) << message_;
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_EQ(CutCode("one", volume), StatusCode::DATA_LOSS) << message_;
  EXPECT_THAT(message_, HasSubstr("a sector cannot be read"));
  EXPECT_NE(Cut("one", volume).snapshot_id(), failed);
}

// ---- DeleteSnapshot -----------------------------------------------------------------------------

TEST_F(SnapshotRpcsTest, ASnapshotIsDeletedOnceAndAgain) {
  const std::string volume = CreateNamed("a");
  const std::string id = Cut("one", volume).snapshot_id();
  EXPECT_EQ(DeleteCut(id), StatusCode::OK) << message_;
  EXPECT_THAT(ListedIds(), IsEmpty());
  EXPECT_THAT(volumes_->Cuts(), IsEmpty());
  EXPECT_EQ(GetCut(id), StatusCode::NOT_FOUND);
  EXPECT_EQ(DeleteCut(id), StatusCode::OK) << message_;
  EXPECT_NE(Cut("one", volume).snapshot_id(), id);
}

// A snapshot that a VolumeSnapshot of the node has was deleted under it.
TEST_F(SnapshotRpcsTest, ASnapshotThatAnObjectOfTheNodeHasIsNotDeleted) {
  had_by_object_ = Cut("one", CreateNamed("a")).snapshot_id();
  EXPECT_EQ(DeleteCut(had_by_object_), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(GetCut(had_by_object_), StatusCode::OK) << message_;
}

TEST_F(SnapshotRpcsTest, WhatIsNoSnapshotIsDeletedAndWhatIsOfAnotherPoolIsNot) {
  EXPECT_EQ(DeleteCut("non-existing-snapshot-id"), StatusCode::OK) << message_;
  EXPECT_EQ(DeleteCut(UnknownCut()), StatusCode::OK) << message_;
  EXPECT_EQ(DeleteCut(kCutOfAnotherPool), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(DeleteCut(""), StatusCode::INVALID_ARGUMENT);
}

TEST_F(SnapshotRpcsTest, ASnapshotOutlivesItsVolume) {
  const std::string volume = CreateNamed("a");
  const std::string id = Cut("one", volume).snapshot_id();
  ASSERT_EQ(Delete(volume), StatusCode::OK) << message_;
  EXPECT_EQ(GetCut(id), StatusCode::OK) << message_;
  EXPECT_THAT(ListedIds(Of("", volume)), ElementsAre(id));
  EXPECT_EQ(Create(RestoreRequest("again", id)).capacity_bytes(), 16 * kMiB);
}

// ---- ListSnapshots ------------------------------------------------------------------------------

TEST_F(SnapshotRpcsTest, AFilterFindsWhatItNamesAndNothingIsNoError) {
  const std::string a = CreateNamed("a");
  const std::string b = CreateNamed("b");
  const std::string one = Cut("one", a).snapshot_id();
  const std::string two = Cut("two", a).snapshot_id();
  const std::string of_b = Cut("three", b).snapshot_id();
  EXPECT_THAT(ListedIds(Of(one)), ElementsAre(one));
  EXPECT_THAT(ListedIds(Of("", a)), UnorderedElementsAre(one, two));
  EXPECT_THAT(ListedIds(Of(of_b, b)), ElementsAre(of_b));
  EXPECT_THAT(ListedIds(Of(of_b, a)), IsEmpty());
  for (const std::string& unknown : {std::string("none-exist-id"), UnknownCut()}) {
    EXPECT_THAT(ListedIds(Of(unknown)), IsEmpty());
  }
  EXPECT_THAT(ListedIds(Of("", "no-id")), IsEmpty());
}

// An empty list would say that there is no such snapshot.
TEST_F(SnapshotRpcsTest, AFilterOfAnotherPoolIsNotTakenForNothing) {
  EXPECT_EQ(ListCuts(Of(kCutOfAnotherPool)), StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ListCuts(Of("", kIdOfAnotherPool)), StatusCode::FAILED_PRECONDITION);
}

TEST_F(SnapshotRpcsTest, EverySnapshotIsListedOnceOverPages) {
  const std::string volume = CreateNamed("a");
  std::set<std::string> made;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    made.insert(Cut(name, volume).snapshot_id());
  }
  std::set<std::string> listed;
  ListSnapshotsRequest request;
  request.set_max_entries(2);
  for (int pages = 1; pages <= 3; ++pages) {
    const std::vector<std::string> page = ListedIds(request);
    EXPECT_EQ(page.size(), pages < 3 ? 2u : 1u);
    for (const std::string& id : page) EXPECT_TRUE(listed.insert(id).second) << "twice";
    request.set_starting_token(listed_.next_token());
    EXPECT_EQ(listed_.next_token().empty(), pages == 3);
  }
  EXPECT_EQ(listed, made);
  EXPECT_EQ(ListedIds().size(), 5u);
  EXPECT_EQ(listed_.next_token(), "");
}

TEST_F(SnapshotRpcsTest, APageThatEndsWithTheLastSnapshotHasNoToken) {
  const std::string volume = CreateNamed("a");
  Cut("one", volume);
  Cut("two", volume);
  ListSnapshotsRequest request;
  request.set_max_entries(2);
  EXPECT_EQ(ListedIds(request).size(), 2u);
  EXPECT_EQ(listed_.next_token(), "");
}

TEST_F(SnapshotRpcsTest, APageGoesOnBehindASnapshotThatIsGoneMeanwhile) {
  const std::string volume = CreateNamed("a");
  for (const char* name : {"a", "b", "c"}) Cut(name, volume);
  ListSnapshotsRequest request;
  request.set_max_entries(1);
  const std::vector<std::string> first = ListedIds(request);
  request.set_starting_token(listed_.next_token());
  request.set_max_entries(0);
  ASSERT_EQ(DeleteCut(first.at(0)), StatusCode::OK) << message_;
  EXPECT_EQ(ListedIds(request).size(), 2u);
}

TEST_F(SnapshotRpcsTest, ATokenThatIsNoneOfThisListIsAborted) {
  ListSnapshotsRequest request;
  for (const std::string& token : {std::string("invalid-token"), "volumes/" + CreateNamed("a"),
                                   "snapshots/" + UnknownCut() + "0"}) {
    request.set_starting_token(token);
    EXPECT_EQ(ListCuts(request), StatusCode::ABORTED) << token;
  }
  request.set_starting_token("");
  request.set_max_entries(-1);
  EXPECT_EQ(ListCuts(request), StatusCode::INVALID_ARGUMENT);
}

// ---- GetSnapshot --------------------------------------------------------------------------------

TEST_F(SnapshotRpcsTest, ASnapshotIsToldByItsId) {
  const Snapshot made = Cut("one", CreateNamed("a"));
  ASSERT_EQ(GetCut(made.snapshot_id()), StatusCode::OK) << message_;
  EXPECT_EQ(got_.snapshot().ShortDebugString(), made.ShortDebugString());
  EXPECT_EQ(GetCut(""), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetCut("no-id"), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetCut(UnknownCut()), StatusCode::NOT_FOUND);
  EXPECT_EQ(GetCut(kCutOfAnotherPool), StatusCode::FAILED_PRECONDITION);
}

}  // namespace
}  // namespace volumed
