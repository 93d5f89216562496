// What may differ between files that share blocks, by their extents alone.
#include "snapshot/extent_delta.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kDeltaBlock = 4096;
constexpr ByteRange kTenBlocks{.offset = 0, .bytes = 10 * kDeltaBlock};

// In blocks.
FileExtentRun RunAt(int64_t logical, int64_t physical, int64_t blocks, uint32_t flags = 0) {
  return {.logical = logical * kDeltaBlock,
          .physical = physical * kDeltaBlock,
          .bytes = blocks * kDeltaBlock,
          .flags = flags};
}
ByteRange RangeOf(int64_t block, int64_t blocks) {
  return {.offset = block * kDeltaBlock, .bytes = blocks * kDeltaBlock};
}
std::vector<ByteRange> DeltaOf(const ExtentRuns& base, const ExtentRuns& target,
                               const ByteRange& window = kTenBlocks) {
  return ChangedRanges(std::array{base, target}, window, kDeltaBlock);
}

TEST(ExtentDeltaTest, WhatLiesAtTheSamePlaceIsUnchangedHoweverItIsListed) {
  EXPECT_THAT(DeltaOf({RunAt(0, 100, 10)}, {RunAt(0, 100, 10)}), IsEmpty());
  EXPECT_THAT(DeltaOf({RunAt(0, 100, 10)}, {RunAt(0, 100, 3), RunAt(3, 103, 7)}), IsEmpty());
  EXPECT_THAT(DeltaOf({RunAt(0, 100, 10, FIEMAP_EXTENT_LAST)},
                      {RunAt(0, 100, 10, FIEMAP_EXTENT_SHARED | FIEMAP_EXTENT_MERGED)}),
              IsEmpty());
  EXPECT_THAT(DeltaOf({}, {}), IsEmpty());
}

TEST(ExtentDeltaTest, WhatLiesElsewhereHasChanged) {
  EXPECT_THAT(DeltaOf({RunAt(0, 100, 10)}, {RunAt(0, 100, 4), RunAt(4, 200, 2), RunAt(6, 106, 4)}),
              ElementsAre(RangeOf(4, 2)));
  EXPECT_THAT(DeltaOf({RunAt(0, 100, 2)}, {RunAt(0, 101, 2)}), ElementsAre(RangeOf(0, 2)))
      << "the same blocks at another offset";
}

TEST(ExtentDeltaTest, DataAgainstAHoleHasChangedEitherWay) {
  EXPECT_THAT(DeltaOf({}, {RunAt(3, 100, 2)}), ElementsAre(RangeOf(3, 2)));
  EXPECT_THAT(DeltaOf({RunAt(3, 100, 2)}, {}), ElementsAre(RangeOf(3, 2)));
}

TEST(ExtentDeltaTest, WhatWasNeverWrittenToReadsAsAHole) {
  constexpr uint32_t kUnwritten = FIEMAP_EXTENT_UNWRITTEN;
  EXPECT_THAT(DeltaOf({}, {RunAt(3, 100, 2, kUnwritten)}), IsEmpty());
  EXPECT_THAT(DeltaOf({RunAt(3, 300, 2, kUnwritten)}, {RunAt(3, 100, 2, kUnwritten)}), IsEmpty());
  EXPECT_THAT(DeltaOf({RunAt(3, 100, 2, kUnwritten)}, {RunAt(3, 100, 2)}),
              ElementsAre(RangeOf(3, 2)))
      << "it was written to in its place";
}

TEST(ExtentDeltaTest, WhatSaysNothingCertainHasChangedOnEitherSide) {
  for (const uint32_t doubt :
       {FIEMAP_EXTENT_UNKNOWN, FIEMAP_EXTENT_DELALLOC, FIEMAP_EXTENT_ENCODED,
        FIEMAP_EXTENT_DATA_ENCRYPTED, FIEMAP_EXTENT_NOT_ALIGNED, FIEMAP_EXTENT_DATA_INLINE,
        FIEMAP_EXTENT_DATA_TAIL, FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNWRITTEN, 0x40000000}) {
    EXPECT_THAT(DeltaOf({RunAt(3, 100, 2)}, {RunAt(3, 100, 2, doubt)}), ElementsAre(RangeOf(3, 2)))
        << std::hex << doubt;
    EXPECT_THAT(DeltaOf({RunAt(3, 100, 2, doubt)}, {RunAt(3, 100, 2)}), ElementsAre(RangeOf(3, 2)))
        << std::hex << doubt;
    EXPECT_THAT(DeltaOf({RunAt(3, 100, 2, doubt)}, {RunAt(3, 100, 2, doubt)}),
                ElementsAre(RangeOf(3, 2)))
        << std::hex << doubt;
    EXPECT_THAT(DeltaOf({}, {RunAt(3, 100, 2, doubt)}), ElementsAre(RangeOf(3, 2)))
        << std::hex << doubt;
  }
  EXPECT_THAT(DeltaOf({RunAt(3, 0, 2)}, {RunAt(3, 0, 2)}), ElementsAre(RangeOf(3, 2)))
      << "at no known place";
}

TEST(ExtentDeltaTest, RangesAreWholeBlocksInTheWindowAndApart) {
  const FileExtentRun small{.logical = 5000, .physical = 1 << 20, .bytes = 512, .flags = 0};
  EXPECT_THAT(DeltaOf({}, {small}), ElementsAre(RangeOf(1, 1)));
  const FileExtentRun near{.logical = 6144, .physical = 2 << 20, .bytes = 512, .flags = 0};
  EXPECT_THAT(DeltaOf({}, {small, near}), ElementsAre(RangeOf(1, 1))) << "of one block";
  EXPECT_THAT(DeltaOf({}, {RunAt(1, 50, 1), RunAt(2, 90, 1), RunAt(4, 70, 1)}),
              ElementsAre(RangeOf(1, 2), RangeOf(4, 1)));
  EXPECT_THAT(DeltaOf({}, {RunAt(0, 100, 10)}, RangeOf(3, 2)), ElementsAre(RangeOf(3, 2)));
  const ByteRange odd{.offset = 0, .bytes = kDeltaBlock + 100};
  EXPECT_THAT(DeltaOf({}, {RunAt(1, 100, 1)}, odd),
              ElementsAre(ByteRange{.offset = kDeltaBlock, .bytes = 100}));
  EXPECT_THAT(DeltaOf({}, {small}, {.offset = 0, .bytes = 5100}),
              ElementsAre(ByteRange{.offset = kDeltaBlock, .bytes = 5100 - kDeltaBlock}));
}

TEST(ExtentDeltaTest, OfThreeFilesAllHaveToHaveTheSame) {
  const ExtentRuns same = {RunAt(0, 100, 10)};
  const ExtentRuns moved = {RunAt(0, 100, 4), RunAt(4, 300, 1), RunAt(5, 105, 5)};
  EXPECT_THAT(ChangedRanges(std::array{same, same, moved}, kTenBlocks, kDeltaBlock),
              ElementsAre(RangeOf(4, 1)));
  EXPECT_THAT(ChangedRanges(std::array{moved, same, same}, kTenBlocks, kDeltaBlock),
              ElementsAre(RangeOf(4, 1)));
}

// ---- at random, against a model of extents ------------------------------------------------------

// A piece of a file of 512 bytes: where it lies, in such pieces; 0: a hole.
struct ModelPiece {
  int64_t place = 0;
  uint32_t flags = 0;
  friend bool operator==(const ModelPiece&, const ModelPiece&) = default;
};

constexpr int64_t kPieceBytes = 512;
constexpr int64_t kPieces = 40 * kDeltaBlock / kPieceBytes;

class ModelOfExtents {
 public:
  explicit ModelOfExtents(uint32_t seed) : random_(seed), base_(kPieces) {
    for (int i = Draw(0, 12); i > 0; --i) Change(base_);
    target_ = base_;
    for (int i = Draw(0, 12); i > 0; --i) Change(target_);
  }
  ExtentRuns base() { return ListOf(base_); }
  ExtentRuns target() { return ListOf(target_); }

  // By what is in each piece, and no extent.
  bool IsChanged(int64_t block) const {
    constexpr int64_t kOfBlock = kDeltaBlock / kPieceBytes;
    for (int64_t at = block * kOfBlock; at < (block + 1) * kOfBlock; ++at) {
      const ModelPiece& was = base_[static_cast<size_t>(at)];
      const ModelPiece& is = target_[static_cast<size_t>(at)];
      if (IsDoubtful(was) || IsDoubtful(is)) return true;
      if (IsZero(was) != IsZero(is)) return true;
      if (!IsZero(is) && was.place != is.place) return true;
    }
    return false;
  }
  int Draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

 private:
  static bool IsDoubtful(const ModelPiece& piece) {
    return (piece.flags & ~uint32_t{FIEMAP_EXTENT_UNWRITTEN}) != 0;
  }
  static bool IsZero(const ModelPiece& piece) { return piece.place == 0 || piece.flags != 0; }

  // Writes, punches a hole, allocates, or writes what is encoded or delayed.
  void Change(std::vector<ModelPiece>& file) {
    // Most filesystems change whole blocks.
    const int unit = Draw(0, 3) == 0 ? 1 : 8;
    const int begin = Draw(0, kPieces / unit - 1) * unit;
    const int end = std::min<int>(kPieces, begin + Draw(1, 10) * unit);
    const int kind = Draw(0, 9);
    ModelPiece next{.place = next_place_, .flags = 0};
    if (kind == 0) next = {};
    if (kind == 1) next.flags = FIEMAP_EXTENT_UNWRITTEN;
    if (kind == 2) next.flags = FIEMAP_EXTENT_ENCODED;
    if (kind == 3) next.flags = FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_UNKNOWN;
    for (int at = begin; at < end; ++at) {
      file[static_cast<size_t>(at)] = next;
      if (next.place != 0) ++next.place;
    }
    next_place_ += kPieces;
  }

  // What is contiguous may be listed in several runs.
  ExtentRuns ListOf(const std::vector<ModelPiece>& file) {
    ExtentRuns runs;
    for (int64_t at = 0; at < kPieces; ++at) {
      const ModelPiece& piece = file[static_cast<size_t>(at)];
      if (piece.place == 0) continue;
      const int64_t logical = at * kPieceBytes;
      const int64_t physical = piece.place * kPieceBytes;
      FileExtentRun* const last = runs.empty() ? nullptr : &runs.back();
      if (last != nullptr && last->logical + last->bytes == logical &&
          last->physical + last->bytes == physical && last->flags == piece.flags &&
          Draw(0, 9) != 0) {
        last->bytes += kPieceBytes;
      } else {
        runs.push_back({logical, physical, kPieceBytes, piece.flags});
      }
    }
    return runs;
  }

  std::mt19937 random_;
  int64_t next_place_ = 1000;
  std::vector<ModelPiece> base_;
  std::vector<ModelPiece> target_;
};

TEST(ExtentDeltaTest, AThousandPatternsAreTheBlocksThatAModelSays) {
  constexpr int64_t kBlocks = kPieces * kPieceBytes / kDeltaBlock;
  int changed = 0;
  int same = 0;
  for (uint32_t seed = 0; seed < 1000 && !HasFailure(); ++seed) {
    ModelOfExtents model(seed);
    const ExtentRuns base = model.base();
    const ExtentRuns target = model.target();
    // In two windows, as two answers have it.
    const int64_t cut = model.Draw(0, kBlocks);
    std::vector<ByteRange> ranges = DeltaOf(base, target, RangeOf(0, cut));
    const std::vector<ByteRange> rest = DeltaOf(base, target, RangeOf(cut, kBlocks - cut));
    ranges.insert(ranges.end(), rest.begin(), rest.end());
    int64_t end = -1;
    std::vector<bool> is_told(kBlocks);
    for (const ByteRange& range : ranges) {
      ASSERT_GT(range.bytes, 0);
      ASSERT_EQ(range.offset % kDeltaBlock, 0);
      ASSERT_EQ(range.bytes % kDeltaBlock, 0);
      ASSERT_TRUE(range.offset > end || range.offset == cut * kDeltaBlock) << "seed " << seed;
      for (int64_t at = range.offset; at < range.end(); at += kDeltaBlock) {
        is_told[static_cast<size_t>(at / kDeltaBlock)] = true;
      }
      end = range.end();
    }
    for (int64_t block = 0; block < kBlocks; ++block) {
      const bool is_changed = model.IsChanged(block);
      EXPECT_EQ(is_told[static_cast<size_t>(block)], is_changed)
          << "block " << block << " of seed " << seed;
      ++(is_changed ? changed : same);
    }
  }
  EXPECT_GT(changed, 1000);
  EXPECT_GT(same, 1000);
}

}  // namespace
}  // namespace volumed
