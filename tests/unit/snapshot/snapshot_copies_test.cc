// Snapshots of volumes whose pool shares no blocks: their bytes are copied after the cut.
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

class SnapshotCopiesTest : public SnapshotEngineTest {
 protected:
  SnapshotCopiesTest() : SnapshotEngineTest("") {}
  SnapshotPhase PhaseOf(const std::string& name) {
    const std::optional<SnapshotRecord> found = engine_->FindByName(name);
    return found ? found->phase : SnapshotPhase::kNotKnown;
  }
  static Error DiskError() { return Error::FromErrno(EIO, "copy", Outcome::kMaybeApplied); }
  // Asks for it, and does not wait.
  void Ask(const std::string& name, const std::string& volume) {
    engine_->Create({name, volume}, [this](const Result<SnapshotRecord>& made) {
      answers_.push_back(made.ok() ? std::string(SnapshotPhaseName(made->phase))
                                   : std::string(CodeName(made.error().code())));
    });
  }
  // A snapshot that an agent has cut, and whose bytes are to be copied by the next one; its volume.
  std::string LeaveUncopied(const std::string& name) {
    settings_.most_copies = 0;
    RestartAgent();
    const std::string volume = Made().id;
    Ask(name, volume);
    Run();
    EXPECT_EQ(PhaseOf(name), SnapshotPhase::kCut);
    settings_.most_copies = 1;
    return volume;
  }
  std::vector<std::string> answers_;
};

TEST_F(SnapshotCopiesTest, TheCallIsAnsweredOnceThePointInTimeExistsAndTheBytesFollow) {
  const PoolVolumeRecord volume = Made();
  std::vector<std::string> told_at_copy;
  SnapshotPhase at_copy = SnapshotPhase::kNotKnown;
  Before("CopyFile", [&] {
    told_at_copy = answers_;
    at_copy = Rows().at(0).phase;
  });
  Ask("a", volume.id);
  Run();
  EXPECT_THAT(told_at_copy, ElementsAre("Cut")) << "it is told before anything is copied";
  EXPECT_EQ(at_copy, SnapshotPhase::kProcessing);
  const std::optional<SnapshotRecord> made = engine_->FindByName("a");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->phase, SnapshotPhase::kReady);
  EXPECT_EQ(made->bytes_total, volume.capacity_bytes);
  EXPECT_EQ(made->bytes_done, volume.capacity_bytes);
  EXPECT_TRUE(IsWhole(Must(volumes_->FindCut(made->id))));
}

TEST_F(SnapshotCopiesTest, AVolumeThatIsMountedForWritingCannotBeCut) {
  EXPECT_EQ(CodeOf(Create("a", Mounted())), Code::kFailedPrecondition);
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotCopiesTest, OnlySoManyAreCopiedAtATime) {
  settings_.most_copies = 1;
  RestartAgent();
  std::vector<std::string> volumes;
  for (const char* name : {"pvc-1", "pvc-2", "pvc-3"}) volumes.push_back(Made(name).id);
  size_t most = 0;
  Before("CopyFile", [&] {
    size_t running = 0;
    for (const RunningOperation& one : operations_->Running()) {
      running += one.operation == "snapshot_copy";
    }
    most = std::max(most, running);
  });
  for (size_t at = 0; at < volumes.size(); ++at) Ask(std::to_string(at), volumes[at]);
  Run();
  EXPECT_EQ(most, 1U);
  EXPECT_THAT(answers_, ElementsAre("Cut", "Cut", "Cut"));
  for (size_t at = 0; at < volumes.size(); ++at) {
    EXPECT_EQ(PhaseOf(std::to_string(at)), SnapshotPhase::kReady) << at;
  }
}

// Whoever had acknowledged it was told later that it had failed, after one start with a
// configuration that lacked the pool.
TEST_F(SnapshotCopiesTest, APoolThatTheConfigurationLackedOnceEndedACopy) {
  LeaveUncopied("a");
  has_pool_ = false;
  RestartAgent();
  Run(std::chrono::minutes(1));
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kProcessing);
  has_pool_ = true;
  RestartAgent();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kReady);
}

// The snapshot had become ready and its source been written to since: the copy went on over it.
TEST_F(SnapshotCopiesTest, ACopyWentOnByRecordsThatWereOlderThanItsSnapshot) {
  const std::string volume = LeaveUncopied("a");
  irreversible_.hold = true;
  bool was_copied = false;
  Before("CopyFile", [&] { was_copied = true; });
  RestartAgent();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kFailed);
  EXPECT_FALSE(was_copied);
  Ask("b", volume);
  Run();
  EXPECT_EQ(PhaseOf("b"), SnapshotPhase::kReady) << "it is of these records";
}

// One that was not ready let the others go: whoever was free went at once, and of the one that
// somebody had the bytes went once he had left it, while its row said for ever that it was ready.
TEST_F(SnapshotCopiesTest, AGroupWentThoughSomebodyHadAMemberAsAnotherWasNotReady) {
  const Error busy = Error::NotApplied(Code::kUnavailable, "the disk is away");
  for (const Error& why : {busy, DiskError()}) {
    node_.FailNext("CopyFile", why);
    const std::string name = why.ToString();
    const SnapshotGroupView made =
        Must(CreateGroup(name, {Made(name + "1").id, Made(name + "2").id}));
    std::vector<SnapshotRecord> rows = Rows();
    const auto ready = std::ranges::find(rows, SnapshotPhase::kReady, &SnapshotRecord::phase);
    ASSERT_NE(ready, rows.end());
    ASSERT_EQ(std::ranges::count(rows, SnapshotPhase::kReady, &SnapshotRecord::phase), 1);
    const std::vector<std::string> cuts = Cuts();
    BindCut(ready->id);
    EXPECT_EQ(CodeOf(DeleteGroup(made.group.id)), Code::kFailedPrecondition);
    EXPECT_EQ(Cuts(), cuts);
    Must(node_.DoAside(Unmount{{"/elsewhere", ""}}));
    Run(std::chrono::minutes(1));
    RestartAgent();
    EXPECT_EQ(Cuts(), cuts) << "nobody has asked again";
    rows = Rows();
    const bool goes_on = !why.maybe_applied();
    EXPECT_EQ(std::ranges::count(rows, SnapshotPhase::kReady, &SnapshotRecord::phase),
              goes_on ? 2 : 1);
    EXPECT_TRUE(DeleteGroup(made.group.id).ok());
    EXPECT_THAT(Cuts(), IsEmpty());
    EXPECT_THAT(Rows(), IsEmpty());
    EXPECT_THAT(GroupRows(), IsEmpty());
  }
}

// The doubt was noted once its pool was open, and forgotten once the records were accepted before.
TEST_F(SnapshotCopiesTest, ACopyWentOnByOlderRecordsThatWereAcceptedWhileItsPoolWasAway) {
  LeaveUncopied("a");
  bool was_copied = false;
  Before("CopyFile", [&] { was_copied = true; });
  irreversible_.hold = true;
  has_pool_ = false;
  RestartAgent();
  ASSERT_TRUE(engine_->SaveDoubted().ok());
  irreversible_.hold = false;
  has_pool_ = true;
  RestartAgent();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kFailed);
  EXPECT_FALSE(was_copied);
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotCopiesTest, RecordsAreNotAcceptedBeforeItIsOnRecordThatTheCopyHasFailed) {
  LeaveUncopied("a");
  irreversible_.hold = true;
  EndEngine();
  Restart();
  MakeEngine();
  EXPECT_EQ(engine_->SaveDoubted().error().code(), Code::kUnavailable) << "nobody has looked yet";
  store_.FailNext(Error::NotApplied(Code::kUnavailable, "the disk is away"), /*count=*/2,
                  kSnapshotRecordKind);
  StartEngine();
  EXPECT_FALSE(engine_->SaveDoubted().ok());
  EXPECT_NE(Rows().at(0).phase, SnapshotPhase::kFailed);
  EXPECT_TRUE(engine_->SaveDoubted().ok());
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kFailed);
  irreversible_.hold = false;
  Run(std::chrono::minutes(3));
  EXPECT_THAT(Cuts(), IsEmpty());
}

// Nothing could end it, and its source was "being copied" for ever.
TEST_F(SnapshotCopiesTest, ASnapshotWhoseRowWasLostAmidItsCopyHeldItsSource) {
  const std::string volume = LeaveUncopied("a");
  ASSERT_FALSE(volumes_->Delete(volume, false, {}).ok());
  ASSERT_TRUE(store_.Remove(kSnapshotRecordKind, Rows().at(0).id, kSnapshotRecordDurability).ok());
  irreversible_.hold = true;
  RestartAgent();
  EXPECT_THAT(Cuts(), SizeIs(1)) << "the row may come back while the records are in doubt";
  irreversible_.hold = false;
  // It was tried once at each start, which was too early for the second pool of a node.
  Run(std::chrono::minutes(3));
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_TRUE(volumes_->Delete(volume, false, {}).ok());
}

// Two that hung held up every other copy of the node.
TEST_F(SnapshotCopiesTest, CopiesOfADeviceHeldUpThoseOfThePool) {
  settings_.most_copies = 0;
  RestartAgent();
  FakeDevice disk;
  disk.identity.stable_id = "wwid:naa.1";
  disk.identity.size_bytes = 16 << 20;
  node_.AddDevice("/dev/sdx", disk);
  volumes_->ListStatic({"db"});
  Ask("device", Must(volumes_->TakeStatic({"db", "fast", "/dev/sdx", /*is_block=*/true}, {})).id);
  Ask("image", Made().id);
  Run();
  ASSERT_EQ(PhaseOf("device"), SnapshotPhase::kCut);
  ASSERT_EQ(PhaseOf("image"), SnapshotPhase::kCut);
  size_t most = 0;
  node_.SetCallHook([&](const AnyRequest&) {
    size_t running = 0;
    for (const RunningOperation& one : operations_->Running()) {
      running += one.operation == "snapshot_copy";
    }
    most = std::max(most, running);
  });
  settings_.most_copies = 1;
  engine_->SetSettings(settings_);
  Run();
  EXPECT_EQ(most, 2U) << "one of each";
  EXPECT_EQ(PhaseOf("device"), SnapshotPhase::kReady);
  EXPECT_EQ(PhaseOf("image"), SnapshotPhase::kReady);
}

TEST_F(SnapshotCopiesTest, ACopyIsAsFastAsTheSettingsSayWhenItBegins) {
  settings_.copy_bytes_per_second = 7;
  engine_->SetSettings(settings_);
  int64_t rate = 0;
  node_.SetCallHook([&](const AnyRequest& request) {
    if (const auto* copy = std::get_if<CopyFile>(&request)) rate = copy->bytes_per_second;
  });
  Ask("a", Made().id);
  Run();
  EXPECT_EQ(rate, 7);
}

TEST_F(SnapshotCopiesTest, WhatWentWrongWhileItWasCopiedIsToldOnceAndTheNextCallBeginsAnew) {
  const std::string volume = Made().id;
  node_.FailNext("CopyFile", DiskError());
  Ask("a", volume);
  Run();
  EXPECT_THAT(answers_, ElementsAre("Cut"));
  const SnapshotRecord failed = Rows().at(0);
  EXPECT_EQ(failed.phase, SnapshotPhase::kFailed);
  EXPECT_FALSE(failed.error_told);
  EXPECT_THAT(Cuts(), IsEmpty()) << "it keeps no place";

  RestartAgent();
  const Result<SnapshotRecord> told = Create("a", volume);
  EXPECT_EQ(CodeOf(told), CodeFromErrno(EIO));
  EXPECT_THAT(FailureOf(told).message(), HasSubstr("copy"));
  EXPECT_NE(Must(Create("a", volume)).id, failed.id);
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kReady);
  EXPECT_THAT(Rows(), SizeIs(1));
}

// Nobody could grow or delete it, unless the agent was started again.
TEST_F(SnapshotCopiesTest, AVolumeStayedUnchangeableForACopyThatHadFailed) {
  const std::string volume = Made().id;
  node_.FailNext("CopyFile", DiskError());
  irreversible_.hold = true;
  Ask("a", volume);
  Run();
  EXPECT_EQ(Rows().at(0).phase, SnapshotPhase::kFailed);
  irreversible_.hold = false;
  EXPECT_THAT(FailureOf(volumes_->Expand(volume, 64 * kMiB, {})).message(),
              HasSubstr("is being copied"));
  Run(std::chrono::minutes(3));
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_TRUE(volumes_->Expand(volume, 64 * kMiB, {}).ok());
}

TEST_F(SnapshotCopiesTest, ACopyWhoseWorkerDiedGoesOnByItself) {
  node_.CutOffNext("CopyFile");
  Ask("a", Made().id);
  Run();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kProcessing);
  Run(std::chrono::minutes(1));
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kReady);
  EXPECT_TRUE(IsWhole(Must(volumes_->FindCut(engine_->FindByName("a")->id))));
}

TEST_F(SnapshotCopiesTest, ACopyGoesOnInTheNextAgent) {
  node_.CutOffNext("CopyFile");
  Ask("a", Made().id);
  Run();
  ASSERT_EQ(Rows().at(0).phase, SnapshotPhase::kProcessing);
  const std::string id = Rows().at(0).id;
  RestartAgent();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kReady);
  EXPECT_EQ(engine_->FindByName("a")->id, id);
}

// The copy sees its cancel, as the kernel's does.
TEST_F(SnapshotCopiesTest, ACancelledCopyEndsAndIsDiscarded) {
  const std::string volume = Made().id;
  std::optional<Status> cancelled;
  Before("CopyFile", [&] {
    engine_->Cancel(engine_->FindByName("a")->id,
                    [&](const Status& status) { cancelled = status; });
  });
  node_.FailNext("CopyFile", Error::MaybeApplied(Code::kCancelled, "cancelled"));
  Ask("a", volume);
  Run();
  node_.SetCallHook(nullptr);
  ASSERT_TRUE(cancelled);
  EXPECT_TRUE(cancelled->ok());
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kCancelled);
  EXPECT_THAT(Cuts(), IsEmpty());
  EXPECT_TRUE(volumes_->Expand(volume, 32 * kMiB, {}).ok()) << "its volume is free again";
}

TEST_F(SnapshotCopiesTest, ASnapshotThatIsDeletedWhileItIsCopiedIsGone) {
  std::optional<Status> deleted;
  Before("CopyFile", [&] {
    engine_->Delete(engine_->FindByName("a")->id, [&](const Status& status) { deleted = status; });
  });
  node_.FailNext("CopyFile", Error::MaybeApplied(Code::kCancelled, "cancelled"));
  Ask("a", Made().id);
  Run();
  ASSERT_TRUE(deleted);
  EXPECT_TRUE(deleted->ok());
  EXPECT_THAT(Rows(), IsEmpty());
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotCopiesTest, ASnapshotThatWaitsForItsCopyIsDeletedWithoutOne) {
  settings_.most_copies = 0;
  engine_->SetSettings(settings_);
  Ask("a", Made().id);
  Run();
  EXPECT_EQ(PhaseOf("a"), SnapshotPhase::kCut);
  EXPECT_TRUE(Delete(engine_->FindByName("a")->id).ok());
  EXPECT_THAT(Rows(), IsEmpty());
}

TEST_F(SnapshotCopiesTest, ACloneThatHasToBeCopiedWaitsForThat) {
  const std::string volume = Made().id;
  const PoolVolumeWish wish = CloneOf(volume);
  EXPECT_EQ(CodeOf(volumes_->Create(wish, {})), Code::kUnavailable);
  Run();
  const Result<PoolVolumeRecord> made = volumes_->Create(wish, {});
  ASSERT_TRUE(made.ok()) << made.error().ToString();
  EXPECT_EQ(made->from_volume, volume);
  Run();
  EXPECT_THAT(Rows(), IsEmpty()) << "the clone has what it needs";
  EXPECT_THAT(Cuts(), IsEmpty());
}

TEST_F(SnapshotCopiesTest, WhatTheCopyForACloneFailedOfIsTold) {
  const PoolVolumeWish wish = CloneOf(Made().id);
  node_.FailNext("CopyFile", DiskError());
  EXPECT_EQ(CodeOf(volumes_->Create(wish, {})), Code::kUnavailable);
  Run();
  const Result<PoolVolumeRecord> told = volumes_->Create(wish, {});
  EXPECT_EQ(CodeOf(told), CodeFromErrno(EIO));
  Run();
  EXPECT_EQ(CodeOf(volumes_->Create(wish, {})), Code::kUnavailable) << "it is cut anew";
  Run();
  EXPECT_TRUE(volumes_->Create(wish, {}).ok());
}

}  // namespace
}  // namespace volumed
