// Snapshots of volumes whose pool shares blocks: made, repeated, failed, cancelled, deleted, shown.
#include "snapshot/snapshot_engine.h"

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
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(SnapshotEngineTest, AVolumeThatNobodyHasIsCutAndReadyAtOnce) {
  const PoolVolumeRecord volume = Made();
  const SnapshotRecord made = Must(Create("a", volume.id));
  EXPECT_EQ(made.phase, SnapshotPhase::kReady);
  EXPECT_EQ(made.volume, volume.id);
  EXPECT_EQ(made.size_bytes, volume.capacity_bytes);
  EXPECT_GT(made.cut_unix_ms, 0);
  EXPECT_EQ(made.bytes_total, 0) << "nothing is copied";
  EXPECT_THAT(Cuts(), ElementsAre(made.id));
  EXPECT_THAT(Rows(), ElementsAre(made));
  EXPECT_EQ(engine_->Find(made.id), made);
  EXPECT_EQ(engine_->FindByName("a"), made);
}

TEST_F(SnapshotEngineTest, TheIntentIsOnRecordBeforeTheFilesystemIsFrozen) {
  const std::string volume = Mounted();
  SnapshotPhase at_cut = SnapshotPhase::kNotKnown;
  Before("CutFrozen", [&] { at_cut = Rows().at(0).phase; });
  EXPECT_EQ(Must(Create("a", volume)).phase, SnapshotPhase::kReady);
  EXPECT_EQ(at_cut, SnapshotPhase::kFreezing);
  EXPECT_TRUE(volumes_->FindCut(Rows().at(0).id)->was_frozen);
}

TEST_F(SnapshotEngineTest, TheIntentIsOnRecordBeforeTheFileIsCloned) {
  const std::string volume = Made().id;
  SnapshotPhase at_cut = SnapshotPhase::kNotKnown;
  Before("CloneFile", [&] { at_cut = Rows().at(0).phase; });
  EXPECT_TRUE(Create("a", volume).ok());
  EXPECT_EQ(at_cut, SnapshotPhase::kCutting);
}

TEST_F(SnapshotEngineTest, TheSameCallAgainFindsTheSameSnapshot) {
  const std::string volume = Made().id;
  const SnapshotRecord made = Must(Create("a", volume));
  EXPECT_EQ(Must(Create("a", volume)), made);
  EXPECT_THAT(Rows(), SizeIs(1));
  EXPECT_NE(Must(Create("b", volume)).id, made.id);
}

TEST_F(SnapshotEngineTest, TheNameOfAnotherVolumesSnapshotIsRefused) {
  EXPECT_TRUE(Create("a", Made("pvc-1").id).ok());
  EXPECT_EQ(CodeOf(Create("a", Made("pvc-2").id)), Code::kAlreadyExists);
  EXPECT_EQ(CodeOf(Create("b", "no-volume")), Code::kNotFound);
  EXPECT_THAT(Rows(), SizeIs(1));
}

TEST_F(SnapshotEngineTest, ACallBesideTheOneThatMakesItIsAborted) {
  const std::string volume = Made().id;
  int answers = 0;
  std::string id;
  engine_->Create({"a", volume}, [&](const Result<SnapshotRecord>& made) {
    ++answers;
    id = Must(made).id;
  });
  engine_->Create({"a", volume}, [&](const Result<SnapshotRecord>& made) {
    EXPECT_EQ(CodeOf(made), Code::kAborted);
    ++answers;
  });
  Run();
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(Must(Create("a", volume)).id, id);
}

TEST_F(SnapshotEngineTest, AVolumeThatIsBeingChangedIsNotCutMeanwhile) {
  const std::string volume = Made().id;
  PoolServed pools{*volumes_, kDriver};
  EXPECT_EQ(operations_->Start(ExpandPoolVolume(pools, volume, 32 * kMiB), [](const auto&) {}),
            StartResult::kStarted);
  EXPECT_EQ(CodeOf(Create("a", volume)), Code::kAborted);
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_FALSE(engine_->FindByName("a"));
  EXPECT_TRUE(Create("a", volume).ok());
}

TEST_F(SnapshotEngineTest, NothingElseHasTheVolumeWhileItIsCut) {
  const std::string volume = Made().id;
  bool was_free = true;
  Before("CloneFile", [&] { was_free = !operations_->FindOwner(PoolDeviceName(volume)); });
  EXPECT_TRUE(Create("a", volume).ok());
  EXPECT_FALSE(was_free);
}

TEST_F(SnapshotEngineTest, ACutThatFailedIsToldOnceAndTheNextCallBeginsAnew) {
  const std::string volume = Mounted();
  node_.LetThawerWin();
  EXPECT_EQ(CodeOf(Create("a", volume)), Code::kAborted);
  EXPECT_THAT(Cuts(), IsEmpty());
  ASSERT_THAT(Rows(), SizeIs(1));
  const SnapshotRecord failed = Rows().at(0);
  EXPECT_EQ(failed.phase, SnapshotPhase::kFailed);
  EXPECT_TRUE(failed.error_told);
  EXPECT_THAT(failed.error, HasSubstr("thawed by its watch"));
  EXPECT_THAT(engine_->List({}), IsEmpty()) << "it has no point in time";

  const SnapshotRecord made = Must(Create("a", volume));
  EXPECT_EQ(made.phase, SnapshotPhase::kReady);
  EXPECT_NE(made.id, failed.id);
  EXPECT_THAT(Rows(), ElementsAre(made));
}

TEST_F(SnapshotEngineTest, ARowThatCannotBeWrittenMakesNoCut) {
  const std::string volume = Made().id;
  store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "the disk is full"), 1,
                  kSnapshotRecordKind);
  EXPECT_EQ(CodeOf(Create("a", volume)), Code::kResourceExhausted);
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_TRUE(Create("a", volume).ok());
}

TEST_F(SnapshotEngineTest, ACutWhoseEndCannotBeWrittenIsNoSnapshot) {
  const std::string volume = Made().id;
  // The intent is written, and nothing after it for a while.
  Before("CloneFile", [&] {
    store_.FailNext(Error::NotApplied(Code::kResourceExhausted, "the disk is full"), 2,
                    kSnapshotRecordKind);
  });
  EXPECT_EQ(CodeOf(Create("a", volume)), Code::kResourceExhausted);
  node_.SetCallHook(nullptr);
  EXPECT_THAT(engine_->List({}), IsEmpty());
  Run(std::chrono::minutes(5));
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_TRUE(Create("a", volume).ok());
}

TEST_F(SnapshotEngineTest, ADeletedSnapshotIsGoneAndItsVolumeStays) {
  const std::string volume = Made().id;
  const SnapshotRecord made = Must(Create("a", volume));
  SnapshotPhase at_removal = SnapshotPhase::kNotKnown;
  Before("RemoveFile", [&] {
    if (!Rows().empty()) at_removal = Rows().at(0).phase;
  });
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_EQ(at_removal, SnapshotPhase::kDeleting) << "on record before the effect";
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_FALSE(engine_->Find(made.id));
  EXPECT_EQ(volumes_->Find(volume)->state, PoolVolumeState::kReady);
  EXPECT_TRUE(Delete(made.id).ok()) << "the same call again";
  EXPECT_TRUE(Delete("no-id").ok());
}

// It was shown to nobody any more, and went with the next start once the bind was gone.
TEST_F(SnapshotEngineTest, ASnapshotWhoseDeletionWasRefusedWasDeletedLater) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  const std::string device = BindCut(made.id);
  const Status refused = Delete(made.id);
  EXPECT_EQ(CodeOf(refused), Code::kFailedPrecondition);
  EXPECT_FALSE(refused.error().maybe_applied());
  EXPECT_THAT(refused.error().message(), HasSubstr(device + " is bound at \"/elsewhere\""));
  EXPECT_THAT(Rows(), ElementsAre(made));
  EXPECT_THAT(engine_->List({}), SizeIs(1));
  Must(node_.DoAside(Unmount{{"/elsewhere", ""}}));
  RestartAgent();
  EXPECT_THAT(Cuts(), ElementsAre(made.id));
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotEngineTest, WhatMayBeAnotherPoolsIsNotDeletedAsIfItWereGone) {
  EXPECT_EQ(CodeOf(Delete("s-00000000-0123456789abcdef01234567")), Code::kFailedPrecondition);
}

TEST_F(SnapshotEngineTest, ADeletionThatFailsGoesOnByItselfAndByTheSameCall) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  irreversible_.hold = true;
  EXPECT_EQ(CodeOf(Delete(made.id)), Code::kFailedPrecondition);
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kDeleting);
  irreversible_.hold = false;
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_THAT(Cuts(), IsEmpty());

  const SnapshotRecord other = Must(Create("b", made.volume));
  irreversible_.hold = true;
  EXPECT_FALSE(Delete(other.id).ok());
  irreversible_.hold = false;
  Run(std::chrono::minutes(5));
  EXPECT_THAT(Rows(), IsEmpty()) << "nobody has asked again";
}

TEST_F(SnapshotEngineTest, AnAgentThatEndsKnowsOfACutThatHasAFilesystemFrozenAndBeginsNone) {
  const std::string volume = Mounted();
  std::optional<bool> goes_on;
  Before("CutFrozen", [&] { goes_on = engine_->EndCuts(); });
  EXPECT_TRUE(Create("a", volume).ok()) << "it was begun before";
  EXPECT_EQ(goes_on, true);
  EXPECT_FALSE(engine_->EndCuts());

  goes_on.reset();
  const Error refused = FailureOf(Create("b", volume));
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_EQ(refused.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(goes_on, std::nullopt) << "it was frozen";
  EXPECT_EQ(Rows().size(), 1U);
  RestartAgent();
  EXPECT_TRUE(Create("b", volume).ok());
}

TEST_F(SnapshotEngineTest, ASnapshotThatIsDeletedWhileItIsCutGoesOnceItIsCut) {
  const std::string volume = Made().id;
  std::optional<Result<SnapshotRecord>> made;
  std::optional<Status> deleted;
  engine_->Create({"a", volume}, [&](const auto& answer) { made.emplace(answer); });
  engine_->Delete(engine_->FindByName("a")->id, [&](const Status& status) { deleted = status; });
  Run();
  ASSERT_TRUE(made && deleted);
  EXPECT_EQ(CodeOf(*made), Code::kCancelled);
  EXPECT_TRUE(deleted->ok());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(SnapshotEngineTest, ACancellationLeavesARowThatTheNextCallReplaces) {
  const std::string volume = Made().id;
  std::optional<Status> cancelled;
  Before("CloneFile", [&] {
    engine_->Cancel(engine_->FindByName("a")->id,
                    [&](const Status& status) { cancelled = status; });
  });
  EXPECT_EQ(CodeOf(Create("a", volume)), Code::kCancelled);
  node_.SetCallHook(nullptr);
  ASSERT_TRUE(cancelled);
  EXPECT_TRUE(cancelled->ok());
  ASSERT_THAT(Rows(), SizeIs(1));
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kCancelled);
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_EQ(Must(Create("a", volume)).phase, SnapshotPhase::kReady);
}

TEST_F(SnapshotEngineTest, WhatIsReadyIsNotTakenAwayByACancellation) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  EXPECT_TRUE(Cancel(made.id).ok());
  EXPECT_EQ(engine_->Find(made.id), made);
  EXPECT_EQ(CodeOf(Cancel("no-id")), Code::kNotFound);
}

TEST_F(SnapshotEngineTest, SnapshotsAreListedByTheirIdsInPagesAndByTheirVolumes) {
  const std::string one = Made("pvc-1").id;
  const std::string other = Made("pvc-2").id;
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(Create(name, one).ok());
  const std::string lone = Must(Create("d", other)).id;
  std::vector<std::string> ids;
  std::string after;
  for (;;) {
    const auto page = engine_->List({.id = "", .volume = "", .after = after, .most = 3});
    for (const SnapshotRecord& record : page) ids.push_back(record.id);
    if (page.size() < 3) break;
    after = ids.back();
  }
  EXPECT_THAT(ids, SizeIs(4));
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_THAT(engine_->List({.id = "", .volume = one, .after = "", .most = 0}), SizeIs(3));
  const auto found = engine_->List({.id = lone, .volume = other, .after = "", .most = 0});
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found.at(0).name, "d");
  EXPECT_THAT(engine_->List({.id = lone, .volume = one, .after = "", .most = 0}), IsEmpty());
}

TEST_F(SnapshotEngineTest, WhoListensHearsOfEachChange) {
  std::vector<SnapshotPhase> heard;
  engine_->AddListener([&](const SnapshotRecord& record) { heard.push_back(record.phase); });
  const SnapshotRecord made = Must(Create("a", Made().id));
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_THAT(heard, ElementsAre(SnapshotPhase::kCutting, SnapshotPhase::kReady,
                                 SnapshotPhase::kDeleting, SnapshotPhase::kNotKnown));
}

TEST_F(SnapshotEngineTest, BeforeAPoolIsOpenNothingIsMadeOrDeleted) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  EndEngine();
  MakeEngine();
  EXPECT_EQ(CodeOf(Create("b", made.volume)), Code::kUnavailable);
  EXPECT_EQ(CodeOf(Delete(made.id)), Code::kUnavailable);
  EXPECT_THAT(engine_->List({}), SizeIs(1)) << "what there is, is shown";
  StartEngine();
  EXPECT_TRUE(Delete(made.id).ok());
}

TEST_F(SnapshotEngineTest, WhileARowCannotBeReadNothingIsMadeOrDeleted) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  store_.Corrupt(kSnapshotRecordKind, made.id, "its checksum is wrong");
  RestartAgent();
  EXPECT_EQ(CodeOf(Create("a", made.volume)), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOf(Delete(made.id)), Code::kFailedPrecondition);
  EXPECT_THAT(Cuts(), ElementsAre(made.id)) << "it may be somebody's";
}

// Nothing could delete it, also after the records were accepted.
TEST_F(SnapshotEngineTest, ACutWithoutASnapshotIsKeptUntilSomebodyAsksForItsEnd) {
  const SnapshotRecord made = Must(Create("a", Made().id));
  EXPECT_TRUE(store_.Remove(kSnapshotRecordKind, made.id, kSnapshotRecordDurability).ok());
  RestartAgent();
  EXPECT_THAT(Cuts(), ElementsAre(made.id)) << "it is whole, and somebody may look for it";
  irreversible_.hold = true;
  EXPECT_FALSE(Delete(made.id).ok()) << "its row may come back";
  EXPECT_THAT(Cuts(), ElementsAre(made.id));
  irreversible_.hold = false;
  EXPECT_TRUE(Delete(made.id).ok());
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_TRUE(Delete(made.id).ok());
}

}  // namespace
}  // namespace volumed
