// Volumes that are cut: how each is, and what is made of a cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "unit/pool/pool_cuts_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- how each is cut ----------------------------------------------------------------------------

TEST_F(PoolCutsTest, AVolumeThatNobodyHasIsClonedAndHasARow) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const PoolCutRecord cut = CutOf(source.id);
  EXPECT_EQ(cut.state, PoolCutState::kCut);
  EXPECT_EQ(cut.volume, source.id);
  EXPECT_EQ(cut.size_bytes, 16 * kMiB);
  EXPECT_EQ(cut.family, source.id);
  EXPECT_EQ(cut.filesystem, source.filesystem);
  EXPECT_FALSE(cut.is_copy);
  EXPECT_FALSE(cut.was_frozen);
  EXPECT_TRUE(IsWhole(cut));
  EXPECT_NE(cut.object.inode, 0u);
  EXPECT_EQ(world_.Look(PoolCutsWorld::ImageOfCut(cut.id)).size_bytes, 16 * kMiB);
  EXPECT_THAT(world_.kernel.Find(kPoolPath + "/cuts/" + cut.id + "/cut.json").content,
              HasSubstr(source.id));
  EXPECT_EQ(world_.CutRows(), std::vector{cut});
  EXPECT_THAT(volumes().Cuts(), ElementsAre(cut.id));
  StartAgent();
  EXPECT_EQ(Must(volumes().FindCut(cut.id)), cut);
  EXPECT_EQ(volumes().DomainOf(cut.id), kPoolPath);
}

TEST_F(PoolCutsTest, AMountedVolumeIsFrozenMeanwhileAndItsCutIsNotTorn) {
  const std::string id = Make("pvc-1").id;
  const CutWish::Mounted mounted = MountAt("/mnt", id);
  const PoolCutRecord cut = Must(Cut(id, mounted)).at(0);
  EXPECT_TRUE(cut.was_frozen);
  EXPECT_FALSE(world_.kernel.IsFrozen("/mnt"));
  EXPECT_FALSE(world_.kernel.Image(PoolCutsWorld::ImageOfCut(cut.id)).torn);
  EXPECT_EQ(CallsOf("CutFrozen"), 1);
  EXPECT_EQ(CallsOf("CloneFile"), 0);
}

TEST_F(PoolCutsTest, AFreezeThatItsWatchHasEndedLeavesNoCut) {
  const std::string id = Make("pvc-1").id;
  const CutWish::Mounted mounted = MountAt("/mnt", id);
  world_.kernel.LetThawerWin();
  const auto cut = Cut(id, mounted);
  EXPECT_EQ(CodeOfCut(cut), Code::kAborted);
  ExpectNoCutIsLeft();
  EXPECT_TRUE(Cut(id, mounted).ok());
}

TEST_F(PoolCutsTest, ACutWhoseWorkerDiedAmidItIsThawedAndGone) {
  const std::string id = Make("pvc-1").id;
  const CutWish::Mounted mounted = MountAt("/mnt", id);
  world_.kernel.CutOffNext("CutFrozen");
  const auto cut = Cut(id, mounted);
  EXPECT_TRUE(FailureOfCut(cut).maybe_applied());
  EXPECT_FALSE(world_.kernel.IsFrozen("/mnt"));
  ExpectNoCutIsLeft();
}

TEST_F(PoolCutsTest, SeveralAreCutByOneFreezeWhetherTheyAreMountedOrNot) {
  const std::string first = Make("pvc-1").id;
  const std::string second = MakeUsed("pvc-2").id;
  const CutWish::Mounted mounted = MountAt("/mnt1", first);
  const std::string cut1 = volumes().NewCutId(first);
  const std::string cut2 = volumes().NewCutId(second);
  const auto cuts =
      Must(volumes().Cut({{first, cut1, mounted}, {second, cut2, std::nullopt}}, {}, {}));
  ASSERT_THAT(cuts, SizeIs(2));
  EXPECT_EQ(cuts[0].id, cut1);
  EXPECT_EQ(cuts[1].volume, second);
  EXPECT_TRUE(cuts[0].was_frozen);
  EXPECT_FALSE(cuts[1].was_frozen);
  EXPECT_EQ(CallsOf("CutFrozen"), 1);
  EXPECT_EQ(CallsOf("CloneFile"), 0);
}

TEST_F(PoolCutsTest, IfOneOfSeveralCannotBeCutNoneIs) {
  const std::string first = Make("pvc-1").id;
  const std::string second = Make("pvc-2").id;
  const CutWish::Mounted good = MountAt("/mnt1", first);
  CutWish::Mounted wrong = MountAt("/mnt2", second);
  ++wrong.device_minor;
  const auto cuts = volumes().Cut(
      {{first, volumes().NewCutId(first), good}, {second, volumes().NewCutId(second), wrong}}, {},
      {});
  EXPECT_EQ(CodeOfCut(cuts), Code::kFailedPrecondition);
  EXPECT_FALSE(FailureOfCut(cuts).maybe_applied());
  ExpectNoCutIsLeft();
}

TEST_F(PoolCutsTest, ABlockVolumeInUseIsCutAloneAndNotWithOthers) {
  const std::string block = Make("pvc-1", /*is_block=*/true).id;
  const std::string other = MakeUsed("pvc-2").id;
  ASSERT_TRUE(volumes().Open(block, false, {}).ok());
  EXPECT_TRUE(Cut(block).ok());
  const auto both = volumes().Cut({{block, volumes().NewCutId(block), std::nullopt},
                                   {other, volumes().NewCutId(other), std::nullopt}},
                                  {}, {});
  EXPECT_EQ(CodeOfCut(both), Code::kFailedPrecondition);
  EXPECT_THAT(world_.CutRows(), SizeIs(1));
}

TEST_F(PoolCutsTest, WhatCannotBeCutIsRefusedAndNothingIsLeft) {
  const std::string id = MakeUsed("pvc-1").id;
  const std::string cut = volumes().NewCutId(id);
  EXPECT_EQ(CodeOfCut(volumes().Cut({}, {}, {})), Code::kInvalidArgument);
  const std::string second = volumes().NewCutId(id);
  EXPECT_EQ(CodeOfCut(volumes().Cut({{id, cut, std::nullopt}, {id, second, std::nullopt}}, {}, {})),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOfCut(volumes().Cut({{id, "../x", std::nullopt}}, {}, {})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOfCut(volumes().Cut({{id, kCutOfAnotherPool, std::nullopt}}, {}, {})),
            Code::kInvalidArgument);
  EXPECT_EQ(CodeOfCut(volumes().Cut({{"v-none", cut, std::nullopt}}, {}, {})), Code::kNotFound);
  ASSERT_TRUE(volumes().Cut({{id, cut, std::nullopt}}, {}, {}).ok());
  EXPECT_EQ(CodeOfCut(volumes().Cut({{id, cut, std::nullopt}}, {}, {})), Code::kAlreadyExists);
  EXPECT_THAT(world_.CutRows(), SizeIs(1));
  EXPECT_EQ(volumes().NewCutId("v-none"), "");
}

// Its filesystem was there and on nobody's record: a copy of it would have the same UUID.
TEST_F(PoolCutsTest, AVolumeThatWasOpenedAndNeverNotedIsNotCut) {
  const std::string id = Make("pvc-1").id;
  ASSERT_TRUE(Cut(id).ok()) << "it is certainly blank";
  ASSERT_TRUE(volumes().Open(id, false, {}).ok());
  EXPECT_EQ(CodeOfCut(Cut(id)), Code::kFailedPrecondition);
  ASSERT_TRUE(volumes().NoteFilesystem(id, {"ext4", "uuid-1"}).ok());
  EXPECT_TRUE(Cut(id).ok());
}

// ---- copies -------------------------------------------------------------------------------------

TEST_F(PoolCopiesTest, AVolumeIsCopiedAndMayNotChangeMeanwhile) {
  const std::string id = MakeUsed("pvc-1").id;
  const PoolCutRecord begun = CutOf(id);
  EXPECT_TRUE(begun.is_copy);
  EXPECT_FALSE(IsWhole(begun));
  EXPECT_EQ(begun.family, begun.id);
  EXPECT_EQ(CodeOfCut(volumes().Open(id, false, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOfCut(volumes().Expand(id, 64 * kMiB, {})), Code::kFailedPrecondition);
  EXPECT_EQ(CodeOfCut(volumes().Delete(id, false, {})), Code::kFailedPrecondition);
  StartAgent();
  EXPECT_EQ(CodeOfCut(volumes().Open(id, false, {})), Code::kFailedPrecondition);
  std::vector<int64_t> told;
  CallOptions call;
  call.progress = [&told](int64_t bytes) { told.push_back(bytes); };
  ASSERT_TRUE(volumes().CopyCut(begun.id, 0, call).ok());
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), 16 * kMiB);
  const PoolCutRecord done = Must(volumes().FindCut(begun.id));
  EXPECT_TRUE(IsWhole(done));
  EXPECT_EQ(done.copied_bytes, 16 * kMiB);
  EXPECT_NE(done.object.inode, 0u);
  EXPECT_TRUE(volumes().CopyCut(begun.id, 0, {}).ok()) << "the same call again";
  EXPECT_EQ(CallsOf("CopyFile"), 1);
  EXPECT_TRUE(volumes().Open(id, false, {}).ok());
  EXPECT_TRUE(volumes().Delete(Must(volumes().Find(id)).id, false, {}).ok());
}

TEST_F(PoolCopiesTest, WhatIsMountedForWritingIsNotCut) {
  const std::string id = Make("pvc-1").id;
  const CutWish::Mounted mounted = MountAt("/mnt", id);
  const auto cut = Cut(id, mounted);
  EXPECT_EQ(CodeOfCut(cut), Code::kFailedPrecondition);
  EXPECT_FALSE(FailureOfCut(cut).maybe_applied());
  EXPECT_FALSE(world_.kernel.IsFrozen("/mnt"));
  ExpectNoCutIsLeft();
  EXPECT_TRUE(volumes().Open(id, false, {}).ok());
}

// The error was that of the kernel alone: "FICLONE: Operation not supported".
TEST_F(PoolCopiesTest, WhoWasRefusedASnapshotOfAMountedVolumeWasNotToldWhatToDo) {
  const std::string id = Make("pvc-1").id;
  const CutWish::Mounted mounted = MountAt("/mnt", id);
  EXPECT_THAT(FailureOfCut(Cut(id, mounted)).message(),
              ::testing::HasSubstr("end its pods first, or have it in a pool on xfs or btrfs"));
}

TEST_F(PoolCopiesTest, ABlockVolumeThatSomebodyHasIsNotCopied) {
  const std::string id = Make("pvc-1", /*is_block=*/true).id;
  ASSERT_TRUE(volumes().Open(id, false, {}).ok());
  EXPECT_EQ(CodeOfCut(Cut(id)), Code::kFailedPrecondition);
  ASSERT_TRUE(volumes().Close(id, {}).ok());
  EXPECT_TRUE(Cut(id).ok());
}

TEST_F(PoolCopiesTest, ACopyWhoseWorkerDiedIsMadeWhole) {
  const std::string id = MakeUsed("pvc-1").id;
  const PoolCutRecord cut = CutOf(id);
  world_.kernel.CutOffNext("CopyFile");
  EXPECT_TRUE(FailureOfCut(volumes().CopyCut(cut.id, 0, {})).maybe_applied());
  EXPECT_FALSE(IsWhole(Must(volumes().FindCut(cut.id))));
  EXPECT_TRUE(volumes().CopyCut(cut.id, 0, {}).ok());
  EXPECT_EQ(world_.kernel.Image(PoolCutsWorld::ImageOfCut(cut.id)).identity.uuid, "uuid-of-" + id);
}

TEST_F(PoolCopiesTest, WhoGivesACopyUpHasItsVolumeBack) {
  const std::string id = MakeUsed("pvc-1").id;
  const PoolCutRecord cut = CutOf(id);
  ASSERT_TRUE(volumes().Discard(cut.id, {}).ok());
  ExpectNoCutIsLeft();
  EXPECT_TRUE(volumes().Open(id, false, {}).ok());
}

TEST_F(PoolCutsTest, AClassThatWantsCopiesHasThemAlsoIfBlocksCanBeShared) {
  PoolVolumeWish wish = Wish("pvc-1");
  wish.parameters = {{"snapshots", "copy"}};
  const std::string id = Must(volumes().Create(wish, {})).id;
  EXPECT_TRUE(CutOf(id).is_copy);
}

TEST_F(PoolCopiesTest, AClassThatWantsSharedBlocksHasNoCopies) {
  PoolVolumeWish wish = Wish("pvc-1");
  wish.parameters = {{"snapshots", "reflink"}};
  const std::string id = Must(volumes().Create(wish, {})).id;
  EXPECT_FALSE(FailureOfCut(Cut(id)).maybe_applied());
  EXPECT_FALSE(Cut(id).ok());
  ExpectNoCutIsLeft();
}

// ---- what is made of them -----------------------------------------------------------------------

TEST_F(PoolCutsTest, ALargerVolumeIsMadeOfASnapshotAndGetsAUuidOfItsOwnBeforeItIsOpen) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const PoolCutRecord cut = CutOf(source.id);
  const PoolVolumeRecord made =
      Must(volumes().Create(WishOf("pvc-2", SnapshotContent(cut.id), 64 * kMiB), {}));
  EXPECT_EQ(made.capacity_bytes, 64 * kMiB);
  EXPECT_EQ(made.from_snapshot, cut.id);
  EXPECT_EQ(made.family, source.id);
  EXPECT_EQ(made.filesystem.uuid, source.filesystem.uuid);
  EXPECT_FALSE(made.filesystem.new_uuid.empty());
  EXPECT_FALSE(made.used);
  const std::string image = PoolWorld::ImageOf(made.id);
  EXPECT_EQ(world_.Look(image).size_bytes, 64 * kMiB);
  EXPECT_EQ(contents_->held_for, std::vector{made.id});
  ASSERT_TRUE(volumes().Open(made.id, /*read_only=*/true, {}).ok());
  const PoolVolumeRecord opened = Must(volumes().Find(made.id));
  EXPECT_EQ(opened.filesystem, (PoolFilesystem{"ext4", made.filesystem.new_uuid, ""}));
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  EXPECT_EQ(world_.kernel.Image(image).identity.uuid, made.filesystem.new_uuid);
  EXPECT_EQ(world_.kernel.Image(PoolWorld::ImageOf(source.id)).identity.uuid,
            source.filesystem.uuid);
  ASSERT_TRUE(volumes().Open(made.id, false, {}).ok());
  EXPECT_EQ(CallsOf("ChangeFilesystemUuid"), 1) << "once is enough";
}

TEST_F(PoolCutsTest, AChangeOfTheUuidThatWasCutOffIsEndedBeforeTheVolumeIsSeen) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const std::string cut = CutOf(source.id).id;
  const PoolVolumeRecord made = Must(volumes().Create(WishOf("pvc-2", SnapshotContent(cut)), {}));
  world_.kernel.CutOffNext("ChangeFilesystemUuid");
  EXPECT_FALSE(volumes().Open(made.id, false, {}).ok());
  EXPECT_THAT(world_.Loops(), IsEmpty());
  StartAgent();
  ASSERT_TRUE(volumes().Open(made.id, false, {}).ok());
  ASSERT_TRUE(volumes().Close(made.id, {}).ok());
  const FakeDevice image = world_.kernel.Image(PoolWorld::ImageOf(made.id));
  EXPECT_FALSE(image.unmountable);
  EXPECT_EQ(image.identity.uuid, made.filesystem.new_uuid);
}

// Of a copy that nobody has opened yet nobody could have told which UUID its cut has.
TEST_F(PoolCutsTest, ACopyOfACopyHasItsOwnUuidToo) {
  const std::string source = MakeUsed("pvc-1").id;
  const std::string cut1 = CutOf(source).id;
  const PoolVolumeRecord copy1 = Must(volumes().Create(WishOf("pvc-2", SnapshotContent(cut1)), {}));
  const PoolCutRecord cut2 = CutOf(copy1.id);
  EXPECT_EQ(cut2.filesystem, (PoolFilesystem{"ext4", copy1.filesystem.new_uuid, ""}));
  const PoolVolumeRecord copy2 =
      Must(volumes().Create(WishOf("pvc-3", SnapshotContent(cut2.id)), {}));
  ASSERT_TRUE(volumes().Open(copy1.id, false, {}).ok());
  ASSERT_TRUE(volumes().Open(copy2.id, false, {}).ok());
  std::set<std::string> uuids;
  for (const std::string& id : {source, copy1.id, copy2.id}) {
    uuids.insert(Must(volumes().Find(id)).filesystem.uuid);
  }
  EXPECT_THAT(uuids, SizeIs(3));
}

TEST_F(PoolCutsTest, AVolumeIsClonedAndTheSameCallFindsTheClone) {
  const PoolVolumeRecord source = MakeUsed("pvc-1");
  const PoolVolumeWish wish = WishOf("pvc-2", CloneContent(source.id));
  const PoolVolumeRecord made = Must(volumes().Create(wish, {}));
  EXPECT_EQ(made.from_volume, source.id);
  EXPECT_EQ(Must(volumes().Create(wish, {})).id, made.id);
  EXPECT_EQ(CodeOfCut(volumes().Create(Wish("pvc-2"), {})), Code::kAlreadyExists);
  // Its source may go, and it is still found.
  ASSERT_TRUE(volumes().Delete(source.id, false, {}).ok());
  EXPECT_EQ(Must(volumes().Create(wish, {})).id, made.id);
}

TEST_F(PoolCutsTest, ABlankVolumeIsRestoredBlankAndABlockVolumeByteForByte) {
  const std::string blank = Make("pvc-1").id;
  const PoolVolumeRecord made =
      Must(volumes().Create(WishOf("pvc-2", SnapshotContent(CutOf(blank).id)), {}));
  EXPECT_EQ(made.filesystem, PoolFilesystem{});
  const std::string block = Make("pvc-3", /*is_block=*/true).id;
  PoolVolumeWish wish = WishOf("pvc-4", SnapshotContent(CutOf(block).id));
  wish.is_block = true;
  EXPECT_EQ(Must(volumes().Create(wish, {})).filesystem, PoolFilesystem{});
}

TEST_F(PoolCutsTest, WhatDoesNotFitTheContentIsRefused) {
  const std::string source = MakeUsed("pvc-1").id;
  const VolumeContent content = SnapshotContent(CutOf(source).id);
  PoolVolumeWish small = WishOf("pvc-2", content, 0);
  small.size.limit_bytes = 8 * kMiB;
  EXPECT_EQ(CodeOfCut(volumes().Create(small, {})), Code::kOutOfRange);
  PoolVolumeWish block = WishOf("pvc-2", content);
  block.is_block = true;
  EXPECT_EQ(CodeOfCut(volumes().Create(block, {})), Code::kInvalidArgument);
  PoolVolumeWish xfs = WishOf("pvc-2", content, 512 * kMiB);
  xfs.parameters = {{kPoolFsTypeParameter, "xfs"}};
  EXPECT_EQ(CodeOfCut(volumes().Create(xfs, {})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOfCut(volumes().Create(WishOf("pvc-2", SnapshotContent("s-none")), {})),
            Code::kNotFound);
  EXPECT_EQ(CodeOfCut(volumes().Create(WishOf("pvc-2", SnapshotContent(kCutOfAnotherPool)), {})),
            Code::kFailedPrecondition);
  volumes().SetContentHolder(nullptr);
  EXPECT_EQ(CodeOfCut(volumes().Create(WishOf("pvc-2", content), {})), Code::kUnimplemented);
  EXPECT_THAT(world_.Rows(), SizeIs(1));
  EXPECT_THAT(world_.Directories(), ElementsAre(source));
}

// A clone that was waited for got a new id with each call, and so a new cut.
TEST_F(PoolCutsTest, AVolumeWhoseContentIsNotReadyYetKeepsItsId) {
  const std::string source = MakeUsed("pvc-1").id;
  const PoolVolumeWish wish = WishOf("pvc-2", CloneContent(source));
  contents_->not_ready = true;
  const auto waits = volumes().Create(wish, {});
  EXPECT_EQ(CodeOfCut(waits), Code::kUnavailable);
  EXPECT_TRUE(FailureOfCut(waits).maybe_applied());
  const PoolVolumeRecord begun = volumes().FindByName("pvc-2").value_or(PoolVolumeRecord{});
  EXPECT_EQ(begun.state, PoolVolumeState::kMaking);
  contents_->not_ready = false;
  EXPECT_EQ(Must(volumes().Create(wish, {})).id, begun.id);
  EXPECT_EQ(contents_->held_for, std::vector{begun.id});
}

TEST_F(PoolCopiesTest, WhatIsMadeOfACopyHasBlocksOfItsOwn) {
  const std::string source = MakeUsed("pvc-1").id;
  const PoolVolumeRecord made =
      Must(volumes().Create(WishOf("pvc-2", CloneContent(source), 32 * kMiB), {}));
  EXPECT_EQ(made.family, made.id);
  EXPECT_EQ(world_.Look(PoolWorld::ImageOf(made.id)).size_bytes, 32 * kMiB);
  EXPECT_EQ(made.filesystem.uuid, "uuid-of-" + source);
}

}  // namespace
}  // namespace volumed
