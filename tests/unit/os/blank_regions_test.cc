#include "os/blank_regions.h"
#include "places.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace volumed {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kTiB = uint64_t{1} << 40;

bool Covers(uint64_t size, uint64_t offset) {
  for (const BlankRegion& region : BlankRegions(size, false)) {
    if (offset >= region.offset && offset < region.offset + region.length) return true;
  }
  return false;
}

TEST(BlankRegions, AreInOrderAlignedDisjointAndOnTheDevice) {
  for (const uint64_t size :
       {33 * kMiB, 320 * kMiB + 512, kGiB, 100 * kGiB + 1536, 5 * kTiB, 2048 * kTiB}) {
    uint64_t reached = 0;
    for (const BlankRegion& region : BlankRegions(size, false)) {
      EXPECT_GE(region.offset, reached);
      EXPECT_EQ(region.offset % 4096, 0u);
      EXPECT_GT(region.length, 0u);
      EXPECT_FALSE(region.name.empty());
      reached = region.offset + region.length;
    }
    EXPECT_EQ(reached, size);  // the end is always read
  }
}

TEST(BlankRegions, ASmallDeviceIsReadWholeAndAnyDeviceOnRequest) {
  for (const uint64_t size : {uint64_t{512}, kMiB, 32 * kMiB}) {
    ASSERT_EQ(BlankRegions(size, false).size(), 1u);
    EXPECT_EQ(BlankRegions(size, false)[0].length, size);
  }
  ASSERT_EQ(BlankRegions(kTiB, true).size(), 1u);
  EXPECT_EQ(BlankRegions(kTiB, true)[0].length, kTiB);
}

TEST(BlankRegions, CoverWhereverSuperblocksAndTheirCopiesAre) {
  const uint64_t size = 3 * kTiB + 7 * 512;
  EXPECT_TRUE(Covers(size, 1080));            // ext
  EXPECT_TRUE(Covers(size, 65536 + 64));      // btrfs
  EXPECT_TRUE(Covers(size, 64 * kMiB + 64));  // its mirrors
  EXPECT_TRUE(Covers(size, 256 * kGiB + 64));
  EXPECT_TRUE(Covers(size, (8 * kMiB) * 27 + 1024 + 56));   // ext, blocks of 1 KiB, group 27
  EXPECT_TRUE(Covers(size, 128 * kMiB + 56));               // blocks of 4 KiB, group 1
  EXPECT_TRUE(Covers(size, 128 * kMiB * 49 + 56));          // group 49
  EXPECT_TRUE(Covers(size, size / 4 / 4096 * 4096));        // XFS, the second of four groups
  EXPECT_TRUE(Covers(size, kTiB));                          // XFS, groups of 1 TiB
  EXPECT_TRUE(Covers(size, 10 * kGiB));                     // BlueStore
  EXPECT_TRUE(Covers(size, size - 512));                    // GPT's backup
  EXPECT_TRUE(Covers(size, size / 65536 * 65536 - 65536));  // MD 0.90
  EXPECT_TRUE(Covers(size, size - 256 * 1024));             // ZFS, the last label
  EXPECT_FALSE(Covers(size, 20 * kMiB));
}

TEST(BlankRegions, AreFewEnoughToBeReadAtEveryFirstUse) {
  uint64_t bytes = 0;
  for (const BlankRegion& region : BlankRegions(16 * kTiB, false)) bytes += region.length;
  EXPECT_LT(bytes, 64 * kMiB);
}

TEST(BlankRegions, TheDocumentNamesEveryRow) {
  std::ifstream file(SourcePath("docs/FORMATTING.md"));
  std::ostringstream text;
  text << file.rdbuf();
  for (const BlankRegionRule& rule : BlankRegionRules()) {
    EXPECT_NE(text.str().find("| " + std::string(rule.name) + " | "), std::string::npos)
        << rule.name;
    EXPECT_FALSE(rule.reason.empty());
  }
}

}  // namespace
}  // namespace volumed
