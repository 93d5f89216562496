// What a cut is worth to the pool, and what ends it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "unit/pool/pool_cuts_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- capacity -----------------------------------------------------------------------------------

TEST_F(PoolCutsTest, ACutIsPromisedWhatItsVolumeHadAllocated) {
  const std::string source = MakeThick().id;
  const PoolAccount before = Must(volumes().Capacity({}, {}));
  EXPECT_EQ(before.outstanding_bytes, 0);
  const PoolCutRecord cut = CutOf(source);
  EXPECT_EQ(cut.allocated_bytes, 16 * kMiB);
  const PoolAccount after = Must(volumes().Capacity({}, {}));
  EXPECT_EQ(after.promised_bytes, before.promised_bytes + 16 * kMiB);
  // All of it may be written anew: the blocks that both have are counted as there once.
  EXPECT_EQ(after.outstanding_bytes, 16 * kMiB);
  ASSERT_TRUE(volumes().Discard(cut.id, {}).ok());
  EXPECT_EQ(Must(volumes().Capacity({}, {})).promised_bytes, before.promised_bytes);
}

TEST_F(PoolCutsTest, APoolThatIsFullIsNotCut) {
  const std::string source = MakeThick().id;
  PoolSettings small = TestPool();
  small.limits = {.capacity_bytes = 20 * kMiB, .reserve_percent = 0};
  StartAgent({small});
  const auto cut = Cut(source);
  EXPECT_EQ(CodeOfCut(cut), Code::kResourceExhausted);
  ExpectNoCutIsLeft();
}

// ---- their end ----------------------------------------------------------------------------------

TEST_F(PoolCutsTest, AVolumeThatIsDeletedLeavesItsCutsAndACutItsVolumes) {
  const std::string source = MakeUsed("pvc-1").id;
  const std::string cut = CutOf(source).id;
  const std::string made = Must(volumes().Create(WishOf("pvc-2", SnapshotContent(cut)), {})).id;
  ASSERT_TRUE(volumes().Delete(source, false, {}).ok());
  EXPECT_EQ(Must(volumes().FindCut(cut)).volume, source);
  ASSERT_TRUE(volumes().Discard(cut, {}).ok());
  ExpectNoCutIsLeft();
  EXPECT_TRUE(volumes().Open(made, false, {}).ok());
  EXPECT_TRUE(volumes().Discard(cut, {}).ok()) << "the same call again";
}

TEST_F(PoolCutsTest, ACutThatIsNoneOfOursIsNeverTakenForGone) {
  EXPECT_TRUE(volumes().Discard("no-id", {}).ok());
  EXPECT_EQ(CodeOfCut(volumes().FindCut("no-id")), Code::kNotFound);
  EXPECT_EQ(CodeOfCut(volumes().Discard(kCutOfAnotherPool, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOfCut(volumes().FindCut(kCutOfAnotherPool)), Code::kFailedPrecondition);
}

TEST_F(PoolCutsTest, NoCutIsDiscardedWhileThatIsHeldBack) {
  const std::string cut = CutOf(MakeUsed("pvc-1").id).id;
  agent_->irreversible.hold = true;
  EXPECT_EQ(CodeOfCut(volumes().Discard(cut, {})), Code::kFailedPrecondition);
  EXPECT_TRUE(world_.kernel.Exists(PoolCutsWorld::ImageOfCut(cut)));
  EXPECT_EQ(Must(volumes().FindCut(cut)).state, PoolCutState::kCut);
}

TEST_F(PoolCutsTest, ADiscardThatFailedGoesOnWhenTheAgentStarts) {
  const std::string cut = CutOf(MakeUsed("pvc-1").id).id;
  world_.kernel.FailNext("RemoveFile", Error::NotApplied(Code::kUnavailable, "not now"));
  EXPECT_TRUE(FailureOfCut(volumes().Discard(cut, {})).maybe_applied());
  EXPECT_EQ(Must(volumes().FindCut(cut)).state, PoolCutState::kDiscarding);
  EXPECT_EQ(CodeOfCut(volumes().CopyCut(cut, 0, {})), Code::kFailedPrecondition);
  StartAgent();
  ExpectNoCutIsLeft();
}

TEST_F(PoolCutsTest, ACutWhoseRowCannotBeReadStaysAndVolumesAreStillMade) {
  const std::string source = MakeUsed("pvc-1").id;
  const std::string cut = CutOf(source).id;
  world_.store.Corrupt(kPoolCutRecordKind, cut, "the checksum is wrong");
  StartAgent();
  for (const Error& error :
       {FailureOfCut(volumes().FindCut(cut)), FailureOfCut(volumes().Discard(cut, {})),
        FailureOfCut(volumes().CopyCut(cut, 0, {})),
        FailureOfCut(volumes().Create(WishOf("pvc-2", SnapshotContent(cut)), {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_THAT(error.message(), HasSubstr("the checksum is wrong"));
  }
  EXPECT_THAT(volumes().Cuts(), ElementsAre(cut));
  EXPECT_TRUE(world_.kernel.Exists(PoolCutsWorld::ImageOfCut(cut)));
  EXPECT_TRUE(volumes().Create(Wish("pvc-3"), {}).ok());
}

TEST_F(PoolCutsTest, ACutWithFilesAndWithoutARowIsNotOneThatThereIsNot) {
  const std::string cut = CutOf(MakeUsed("pvc-1").id).id;
  ASSERT_TRUE(world_.store.Remove(kPoolCutRecordKind, cut, Durability::kPowerLoss).ok());
  StartAgent();
  EXPECT_EQ(CodeOfCut(volumes().Discard(cut, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOfCut(volumes().FindCut(cut)), Code::kFailedPrecondition);
  EXPECT_TRUE(world_.kernel.Exists(PoolCutsWorld::ImageOfCut(cut)));
}

// ---- a volume that has lost its end -------------------------------------------------------------

// A backup schedule would have replaced good snapshots by such ones.
TEST_F(PoolCutsTest, AVolumeWhoseFileHadBecomeShorterWasCutAndCloned) {
  const std::string id = MakeUsed("pvc-1").id;
  world_.kernel.AddFile(PoolWorld::ImageOf(id), std::string(4096, 'x'));
  for (const Error& error : {FailureOfCut(Cut(id)), FailureOfCut(volumes().Create(
                                                        WishOf("pvc-2", CloneContent(id)), {}))}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_THAT(error.message(), HasSubstr("has 4Ki (4096 bytes), and is to have 16Mi"));
  }
  ExpectNoCutIsLeft();
}

TEST_F(PoolCopiesTest, AVolumeWhoseFileHadBecomeShorterWasPromisedACopy) {
  const std::string id = MakeUsed("pvc-1").id;
  world_.kernel.AddFile(PoolWorld::ImageOf(id), std::string(4096, 'x'));
  EXPECT_THAT(FailureOfCut(Cut(id)).message(),
              HasSubstr("has 4Ki (4096 bytes), and is to have 16Mi"));
  ExpectNoCutIsLeft();
}

// A copy gets its UUID before it is cut, or opened.
TEST_F(PoolCutsTest, ACopyWhoseFileHadBecomeShorterWasWrittenToBeforeItWasRefused) {
  const std::string cut = CutOf(MakeUsed("pvc-1").id).id;
  const std::string copy = Must(volumes().Create(WishOf("pvc-2", SnapshotContent(cut)), {})).id;
  world_.kernel.AddFile(PoolWorld::ImageOf(copy), std::string(4096, 'x'));
  EXPECT_EQ(CodeOfCut(Cut(copy)), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOfCut(volumes().Open(copy, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CallsOf("ChangeFilesystemUuid"), 0);
}

}  // namespace
}  // namespace volumed
