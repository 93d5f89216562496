// Which bytes of snapshots have changed, over the engine and the pool of a simulated node.
#include "snapshot/changed_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "unit/snapshot/snapshot_engine_fixture.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ChangedBlocksTest : public SnapshotEngineTest {
 protected:
  // Of blocks.
  static ByteRange Blocks(int64_t first, int64_t count) {
    return {.offset = first * kPoolBlockBytes, .bytes = count * kPoolBlockBytes};
  }
  void Write(const std::string& volume, int64_t first, int64_t count = 1) {
    node_.WriteBlocks(PoolWorld::ImageOf(volume), first * kPoolBlockBytes, count * kPoolBlockBytes);
  }
  std::string CutNow(const std::string& volume) {
    return Must(Create("cut " + std::to_string(++cuts_), volume)).id;
  }
  Result<ChangedBlocks> Ask(const ChangedBlocksQuery& query) {
    return FindChangedBlocks(*engine_, *volumes_, query, {});
  }
  // All parts, with ranges that touch made one.
  std::vector<ByteRange> AllOf(ChangedBlocksQuery query) {
    std::vector<ByteRange> all;
    for (int parts = 0; parts < 100'000; ++parts) {
      const ChangedBlocks part = Must(Ask(query));
      EXPECT_LE(part.ranges.size(), query.most);
      for (const ByteRange& range : part.ranges) {
        EXPECT_TRUE(all.empty() || range.offset >= all.back().end());
        if (!all.empty() && all.back().end() == range.offset) {
          all.back().bytes += range.bytes;
        } else {
          all.push_back(range);
        }
      }
      if (part.is_last()) return all;
      EXPECT_GT(part.next, query.from - query.from % kPoolBlockBytes);
      query.from = part.next;
    }
    ADD_FAILURE() << "there was no last part";
    return all;
  }
  std::vector<ByteRange> Delta(const std::string& base, const std::string& target,
                               size_t most = 4096) {
    return AllOf({.base = base, .target = target, .from = 0, .most = most});
  }
  // The error of a delta, and of all that is allocated if there is no base.
  Error Refusal(const std::string& base, const std::string& target, int64_t from = 0) {
    return FailureOf(Ask({.base = base, .target = target, .from = from, .most = 10}));
  }

  int cuts_ = 0;
};

TEST_F(ChangedBlocksTest, WhatWasWrittenBetweenTwoCutsIsTheirDelta) {
  const PoolVolumeRecord volume = Made();
  Write(volume.id, 0, 100);
  const std::string first = CutNow(volume.id);
  Write(volume.id, 7);
  Write(volume.id, 9, 2);
  Write(volume.id, 500, 3);
  const std::string second = CutNow(volume.id);
  Write(volume.id, 8);
  EXPECT_THAT(Delta(first, second), ElementsAre(Blocks(7, 1), Blocks(9, 2), Blocks(500, 3)));
  EXPECT_THAT(Delta(second, first), ElementsAre(Blocks(7, 1), Blocks(9, 2), Blocks(500, 3)));
  EXPECT_THAT(Delta(first, first), IsEmpty());
  EXPECT_EQ(Must(Ask({.base = first, .target = second, .from = 0, .most = 10})).volume_bytes,
            volume.capacity_bytes);
}

TEST_F(ChangedBlocksTest, WithoutABaseItIsWhatWasEverWritten) {
  const std::string volume = Made().id;
  const std::string empty = CutNow(volume);
  Write(volume, 3, 2);
  Write(volume, 40);
  const std::string second = CutNow(volume);
  EXPECT_THAT(Delta("", empty), IsEmpty());
  EXPECT_THAT(Delta("", second), ElementsAre(Blocks(3, 2), Blocks(40, 1)));
}

TEST_F(ChangedBlocksTest, AnAnswerCanBeGoneOnWithFromAnyOffset) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  Write(volume, 2, 3);
  Write(volume, 9);
  const std::string target = CutNow(volume);
  for (int64_t block = 0; block < 12; ++block) {
    for (const int64_t within : {int64_t{0}, int64_t{1}, kPoolBlockBytes - 1}) {
      std::vector<ByteRange> rest;
      if (block < 5) rest.push_back(Blocks(std::max<int64_t>(block, 2), 0));
      if (block < 5) rest.back().bytes = 5 * kPoolBlockBytes - rest.back().offset;
      if (block < 10) rest.push_back(Blocks(9, 1));
      const int64_t from = block * kPoolBlockBytes + within;
      EXPECT_EQ(AllOf({.base = base, .target = target, .from = from, .most = 1}), rest) << from;
    }
  }
}

TEST_F(ChangedBlocksTest, ManyRangesComeInPartsOfAsManyAsAreWanted) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  std::vector<ByteRange> written;
  for (int64_t block = 0; block < 60; block += 2) {
    Write(volume, block);
    written.push_back(Blocks(block, 1));
  }
  const std::string target = CutNow(volume);
  for (const size_t most : {1, 2, 7, 29, 30, 31}) {
    EXPECT_EQ(Delta(base, target, most), written) << most;
  }
}

// A list has 4096 of them.
TEST_F(ChangedBlocksTest, MoreExtentsThanOneListHasAreAllLookedAt) {
  const std::string volume = Must(volumes_->Create(Wish("large", 64 * kMiB), {})).id;
  std::vector<ByteRange> written;
  for (int64_t block = 0; block < 9000; block += 2) {
    Write(volume, block);
    written.push_back(Blocks(block, 1));
  }
  const std::string base = CutNow(volume);
  Write(volume, 8998);
  const std::string target = CutNow(volume);
  EXPECT_EQ(Delta("", target), written);
  EXPECT_THAT(Delta(base, target), ElementsAre(Blocks(8998, 1)));
}

TEST_F(ChangedBlocksTest, WhatAVolumeHasGrownByIsComparedWithZeros) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  Must(volumes_->Expand(volume, 32 * kMiB, {}));
  const int64_t beyond = 20 * kMiB / kPoolBlockBytes;
  Write(volume, beyond, 2);
  const std::string target = CutNow(volume);
  EXPECT_THAT(Delta(base, target), ElementsAre(Blocks(beyond, 2)));
  const ChangedBlocks part =
      Must(Ask({.base = base, .target = target, .from = 32 * kMiB, .most = 10}));
  EXPECT_EQ(part.volume_bytes, 32 * kMiB);
  EXPECT_TRUE(part.is_last()) << "the end is an offset of the volume";
  EXPECT_EQ(Refusal(base, target, 32 * kMiB + 1).code(), Code::kOutOfRange);
  EXPECT_EQ(Refusal("", base, 16 * kMiB + 1).code(), Code::kOutOfRange);
}

// A balance of btrfs moves blocks, and what lies where a block of the base was may be another one.
TEST_F(ChangedBlocksTest, WhatTheFilesystemMovesWhileItIsAskedHasChanged) {
  const std::string volume = Made().id;
  Write(volume, 0, 50);
  const std::string base = CutNow(volume);
  const std::string target = CutNow(volume);
  ASSERT_THAT(Delta(base, target), IsEmpty());
  int lists = 0;
  Before("ListExtents", [&] {
    if (++lists != 3) return;
    node_.WriteBlocks(kPoolPath + "/cuts/" + base + "/image", 4 * kPoolBlockBytes, kPoolBlockBytes);
  });
  EXPECT_THAT(Delta(base, target), ElementsAre(Blocks(4, 1)));
  EXPECT_EQ(lists, 3);
}

TEST_F(ChangedBlocksTest, SnapshotsThatThereAreNotAndThoseOfOthersAreRefused) {
  const std::string cut = CutNow(Made().id);
  const std::string unknown = volumes_->NewCutId(Made("pvc-2").id);
  EXPECT_EQ(Refusal(unknown, cut).code(), Code::kNotFound);
  EXPECT_EQ(Refusal(cut, unknown).code(), Code::kNotFound);
  EXPECT_EQ(Refusal("", unknown).code(), Code::kNotFound);
  EXPECT_EQ(Refusal("", "no-id").code(), Code::kNotFound);
  const std::string elsewhere = "s-00000000-0123456789abcdef01234567";
  EXPECT_EQ(Refusal("", elsewhere).code(), Code::kFailedPrecondition);
  EXPECT_EQ(Refusal(elsewhere, cut).code(), Code::kFailedPrecondition);
}

TEST_F(ChangedBlocksTest, SnapshotsOfTwoVolumesAreNotCompared) {
  const Error refused = Refusal(CutNow(Made("pvc-1").id), CutNow(Made("pvc-2").id));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("different volumes"));
}

TEST_F(ChangedBlocksTest, ACopyHasNoDeltaAndIsToldWhole) {
  PoolVolumeWish wish = Wish("copied");
  wish.parameters = {{"snapshots", "copy"}};
  const std::string volume = Must(volumes_->Create(wish, {})).id;
  const std::string first = CutNow(volume);
  const std::string second = CutNow(volume);
  Run();  // the copies end
  ASSERT_EQ(engine_->Find(second)->phase, SnapshotPhase::kReady);
  ASSERT_EQ(engine_->Find(first)->phase, SnapshotPhase::kReady);
  const Error refused = Refusal(first, second);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("is a copy"));
  node_.WriteBlocks(kPoolPath + "/cuts/" + second + "/image", 0, kPoolBlockBytes);
  EXPECT_THAT(Delta("", second), ElementsAre(Blocks(0, 1)));
}

// A place there is one of some disk.
TEST_F(ChangedBlocksTest, WhereTwoBlocksMayHaveTheSamePlaceNothingIsCompared) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  const std::string target = CutNow(volume);
  for (const Record& row : store_.All()) {
    if (row.kind != kPoolCutRecordKind) continue;
    PoolCutRecord cut = Must(DecodePoolCutRecord(row));
    cut.object.fs_type = "bcachefs";
    ASSERT_TRUE(store_.Put(EncodeRecord(cut), kPoolRecordDurability).ok());
  }
  RestartAgent();
  const Error refused = Refusal(base, target);
  EXPECT_EQ(refused.code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("bcachefs"));
}

TEST_F(ChangedBlocksTest, WhatIsNotReadyOrHasFailedIsRefused) {
  PoolVolumeWish wish = Wish("copied");
  wish.parameters = {{"snapshots", "copy"}};
  const std::string volume = Must(volumes_->Create(wish, {})).id;
  node_.CutOffNext("CopyFile");
  const std::string cut = CutNow(volume);
  ASSERT_EQ(engine_->Find(cut)->phase, SnapshotPhase::kProcessing);
  EXPECT_EQ(Refusal("", cut).code(), Code::kFailedPrecondition);
  EXPECT_THAT(Refusal("", cut).message(), HasSubstr("is not ready"));
  Run(std::chrono::minutes(1));
  EXPECT_TRUE(Ask({.base = "", .target = cut, .from = 0, .most = 1}).ok());
}

TEST_F(ChangedBlocksTest, ASnapshotThatIsDeletedBetweenTwoPartsIsNotFound) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  Write(volume, 1);
  Write(volume, 3);
  const std::string target = CutNow(volume);
  const ChangedBlocks part = Must(Ask({.base = base, .target = target, .from = 0, .most = 1}));
  ASSERT_FALSE(part.is_last());
  ASSERT_TRUE(Delete(base).ok());
  EXPECT_EQ(Refusal(base, target, part.next).code(), Code::kNotFound);
  EXPECT_THAT(Delta("", target), ElementsAre(Blocks(1, 1), Blocks(3, 1)));
}

TEST_F(ChangedBlocksTest, ASnapshotWhoseFileIsMissingIsThereAndCannotBeLookedAt) {
  const std::string cut = CutNow(Made().id);
  node_.Remove(kPoolPath + "/cuts/" + cut + "/image");
  EXPECT_EQ(Refusal("", cut).code(), Code::kFailedPrecondition);
  EXPECT_THAT(Refusal("", cut).message(), HasSubstr("missing"));
}

// The map said that what was gone read as zeros, and the restore of the same snapshot was refused.
TEST_F(ChangedBlocksTest, ASnapshotWhoseFileHadBecomeShorterHadAMap) {
  const std::string volume = Made().id;
  Write(volume, 0, 2);
  const std::string base = CutNow(volume);
  Write(volume, 8);
  const std::string target = CutNow(volume);
  node_.AddFile(kPoolPath + "/cuts/" + base + "/image", std::string(kPoolBlockBytes, 'x'));
  for (const Error& error : {Refusal("", base), Refusal(base, target), Refusal(target, base)}) {
    EXPECT_EQ(error.code(), Code::kFailedPrecondition) << error.ToString();
    EXPECT_THAT(error.message(), HasSubstr("has 4Ki (4096 bytes), and had 16Mi"));
  }
  EXPECT_TRUE(Ask({.base = "", .target = target, .from = 0, .most = 1}).ok());
}

TEST_F(ChangedBlocksTest, ASnapshotWhoseDeletionHadBegunWasOneThatIsNotReady) {
  const std::string volume = Made().id;
  const std::string base = CutNow(volume);
  Write(volume, 1);
  const std::string target = CutNow(volume);
  node_.FailNext("RemoveFile", Error::NotApplied(Code::kUnavailable, "not now"));
  bool is_asked = false;
  Before("ListExtents", [&] {
    if (std::exchange(is_asked, true)) return;
    engine_->Delete(base, [](const Status&) {});
    EXPECT_FALSE(volumes_->Discard(base, {}).ok());
  });
  // It was whole when its first list was asked for, and is not when its second one is.
  const Error meanwhile = Refusal(base, target);
  EXPECT_TRUE(is_asked);
  EXPECT_EQ(meanwhile.code(), Code::kNotFound) << meanwhile.ToString();
  EXPECT_EQ(Refusal(base, target).code(), Code::kNotFound);
  EXPECT_EQ(Refusal("", base).code(), Code::kNotFound);
  EXPECT_TRUE(Ask({.base = "", .target = target, .from = 0, .most = 1}).ok());
}

}  // namespace
}  // namespace volumed
