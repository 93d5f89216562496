// What two snapshots of a volume are said to differ in, on real filesystems, against their bytes.
//
// VOLUMED_CHANGED_PATTERNS says how many random patterns there are for each filesystem.
#include "snapshot/changed_blocks.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/strings.h"
#include "integration/snapshot/snapshot_root_fixture.h"
#include "run_numbers.h"

namespace volumed {
namespace {

constexpr int64_t kPatternVolume = int64_t{8} << 20;
constexpr uint64_t kDefaultPatterns = 50;

int PatternsOfRun() {
  return static_cast<int>(NumberOfRun("VOLUMED_CHANGED_PATTERNS", kDefaultPatterns));
}

// Somebody who uses a volume's device, at random, and in a way that can be repeated.
class PatternWriter {
 public:
  PatternWriter(const std::string& image, uint32_t seed)
      : file_(::open(image.c_str(), O_RDWR | O_CLOEXEC)), random_(seed) {
    EXPECT_TRUE(file_.valid()) << image;
  }

  void WritePattern() {
    for (int64_t i = Draw(1, 40); i > 0; --i) Step();
  }
  int64_t Draw(int64_t from, int64_t to) {
    return std::uniform_int_distribution<int64_t>(from, to)(random_);
  }

 private:
  void Step() {
    const int64_t unit = Draw(0, 3) == 0 ? 512 : kPoolBlockBytes;
    const int64_t offset = Draw(0, kPatternVolume / unit - 1) * unit;
    const int64_t bytes = std::min(Draw(1, 16) * unit, kPatternVolume - offset);
    switch (Draw(0, 9)) {
      case 0:
        return Allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
      case 1:
        return Allocate(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset, bytes);
      case 2:
        return Allocate(0, offset, bytes);
      case 3:
        return WriteAgain(offset, bytes);
      default:
        return WriteNew(offset, bytes);
    }
  }
  void Allocate(int how, int64_t offset, int64_t bytes) {
    EXPECT_EQ(::fallocate(file_.get(), how, offset, bytes), 0) << ::strerror(errno);
  }
  void WriteNew(int64_t offset, int64_t bytes) {
    std::string data(static_cast<size_t>(bytes), '\0');
    for (char& byte : data) byte = static_cast<char>(random_());
    Write(offset, data);
  }
  // What is there is written once more: another block with the same bytes.
  void WriteAgain(int64_t offset, int64_t bytes) {
    std::string data(static_cast<size_t>(bytes), '\0');
    EXPECT_EQ(::pread(file_.get(), data.data(), data.size(), offset), bytes);
    Write(offset, data);
  }
  void Write(int64_t offset, const std::string& data) {
    EXPECT_EQ(::pwrite(file_.get(), data.data(), data.size(), offset),
              static_cast<ssize_t>(data.size()));
    // A part of what is written reaches the disk before the cut, and a part with it.
    if (Draw(0, 7) != 0) return;
    EXPECT_EQ(::fdatasync(file_.get()), 0);
  }

  const Descriptor file_;
  std::mt19937 random_;
};

// By block, whether a range has it.
std::vector<bool> BlocksIn(const std::vector<ByteRange>& ranges) {
  std::vector<bool> blocks(kPatternVolume / kPoolBlockBytes);
  for (const ByteRange& range : ranges) {
    EXPECT_EQ(range.offset % kPoolBlockBytes, 0);
    EXPECT_EQ(range.bytes % kPoolBlockBytes, 0);
    for (int64_t at = range.offset; at < range.end(); at += kPoolBlockBytes) {
      blocks.at(static_cast<size_t>(at / kPoolBlockBytes)) = true;
    }
  }
  return blocks;
}

// How many bytes of changed blocks, and of such that were told and are the same, there were.
struct TellTale {
  int64_t changed = 0;
  int64_t needless = 0;

  // `was` and `is` are the contents of two files.
  void Compare(const std::string& was, const std::string& is, const std::vector<ByteRange>& told) {
    const std::vector<bool> is_told = BlocksIn(told);
    for (size_t block = 0; block < is_told.size(); ++block) {
      const size_t at = block * kPoolBlockBytes;
      const bool is_changed = was.compare(at, kPoolBlockBytes, is, at, kPoolBlockBytes) != 0;
      if (is_changed) changed += kPoolBlockBytes;
      if (!is_changed && is_told[block]) needless += kPoolBlockBytes;
      if (is_changed && !is_told[block]) {
        ADD_FAILURE() << "block " << block << " has changed, and is not told";
      }
    }
  }
};

class ChangedBlocksRootTest : public SnapshotRootTest,
                              public testing::WithParamInterface<const char*> {
 protected:
  std::string pool_type() const override { return GetParam(); }

  std::string ContentOf(const std::string& cut) const {
    std::ifstream file(Path("mnt/cuts/" + cut + "/image"), std::ios::binary);
    EXPECT_TRUE(file.good()) << cut;
    std::string content(kPatternVolume, '\0');
    file.read(content.data(), kPatternVolume);
    EXPECT_EQ(file.gcount(), kPatternVolume) << cut;
    return content;
  }
  std::vector<ByteRange> Told(ChangedBlocksQuery query) {
    std::vector<ByteRange> all;
    for (bool is_last = false; !is_last && !HasFailure();) {
      const ChangedBlocks part = Must(FindChangedBlocks(*engine_, *volumes_, query, {}));
      EXPECT_EQ(part.volume_bytes, kPatternVolume);
      for (const ByteRange& range : part.ranges) {
        EXPECT_TRUE(all.empty() || range.offset >= all.back().end());
        all.push_back(range);
      }
      is_last = part.is_last();
      query.from = part.next;
    }
    return all;
  }
  std::string MadeRaw() {
    PoolVolumeWish wish;
    wish.name = "raw";
    wish.size.required_bytes = kPatternVolume;
    wish.is_block = true;
    return Made(wish);
  }
};

TEST_P(ChangedBlocksRootTest, EveryChangedByteOfARandomPatternIsInTheDelta) {
  const std::string volume = MadeRaw();
  PatternWriter writer(Path("mnt/volumes/" + volume + "/image"), 1);
  std::string base = Must(Create("cut", volume)).id;
  std::string was = ContentOf(base);
  const std::string zeros(kPatternVolume, '\0');
  const int patterns = PatternsOfRun();
  TellTale deltas;
  TellTale allocated;
  for (int i = 0; i < patterns && !HasFailure(); ++i) {
    SCOPED_TRACE("pattern " + std::to_string(i));
    writer.WritePattern();
    const std::string target = Must(Create("cut " + std::to_string(i), volume)).id;
    // What follows the cut is in none of the two.
    writer.WritePattern();
    const std::string is = ContentOf(target);
    const auto most = static_cast<size_t>(writer.Draw(1, 50));
    deltas.Compare(was, is, Told({.base = base, .target = target, .from = 0, .most = most}));
    allocated.Compare(zeros, is, Told({.base = "", .target = target, .from = 0, .most = most}));
    ASSERT_TRUE(Delete(base).ok());
    base = target;
    was = is;
  }
  EXPECT_GT(deltas.changed, 0);
  std::cout << "on " << pool_type() << ", " << patterns << " patterns: " << deltas.changed
            << " bytes in blocks that have changed, " << deltas.needless
            << " bytes told needlessly; of all that is allocated " << allocated.changed << " and "
            << allocated.needless << "\n";
}

TEST_P(ChangedBlocksRootTest, AnAnswerIsGoneOnWithFromEveryOffset) {
  const std::string volume = MadeRaw();
  PatternWriter writer(Path("mnt/volumes/" + volume + "/image"), 2);
  writer.WritePattern();
  const std::string base = Must(Create("a", volume)).id;
  writer.WritePattern();
  const std::string target = Must(Create("b", volume)).id;
  const std::vector<bool> whole =
      BlocksIn(Told({.base = base, .target = target, .from = 0, .most = 4096}));
  for (int64_t from = 0; from < kPatternVolume && !HasFailure(); from += 16 * kPoolBlockBytes) {
    const auto first = static_cast<size_t>(from / kPoolBlockBytes);
    const std::vector<bool> rest =
        BlocksIn(Told({.base = base, .target = target, .from = from + 7, .most = 3}));
    for (size_t block = 0; block < whole.size(); ++block) {
      EXPECT_EQ(rest[block], block >= first && whole[block]) << block << " from " << from;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Filesystems, ChangedBlocksRootTest, testing::Values("xfs", "btrfs"),
                         [](const auto& made) { return std::string(made.param); });

}  // namespace
}  // namespace volumed
