// How often what is copied is put on the disk.
#include "os/file_copier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace volumed {
namespace {

constexpr int64_t kPiece = 1 << 20;  // a MiB

// A disk on which a sync takes so many seconds whatever there is to be written, and writes so many
// MiB in a second.
struct Disk {
  double each = 0;
  double speed = 0;
  double SecondsOf(int64_t bytes) const {
    return each + static_cast<double>(bytes) / (speed * kPiece);
  }
};

// Syncs what the pace says, so many times. Answers how long the longest of the last half took.
double LongestSync(SyncPace& pace, const Disk& disk, int count) {
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    const double needed = disk.SecondsOf(pace.bytes());
    if (2 * i >= count) longest = std::max(longest, needed);
    pace.Note(pace.bytes(), std::chrono::duration_cast<SyncPace::Duration>(
                                std::chrono::duration<double>(needed)));
  }
  return longest;
}

// 64 MiB went to the cache at once, and then one sync took a minute, in which nobody learned how
// far the copy was and no cancel was heard.
TEST(SyncPaceTest, ASyncOfADiskThatIsSlowToWriteTookAMinute) {
  for (const double speed : {0.5, 1.0, 2.0, 5.0, 20.0}) {
    SyncPace pace;
    EXPECT_LT(LongestSync(pace, {0, speed}, 100), 8) << speed << " MiB in a second";
  }
}

TEST(SyncPaceTest, AFastDiskIsSyncedSeldom) {
  SyncPace pace;
  LongestSync(pace, {0.005, 1000}, 3);
  EXPECT_EQ(pace.bytes(), 64 * kPiece);
  LongestSync(pace, {0.005, 1000}, 20);
  EXPECT_EQ(pace.bytes(), 64 * kPiece);
}

// Each sync took seconds, as others wrote to the disk, and so it stayed at a MiB for each.
TEST(SyncPaceTest, ACopyBesideSomebodyWhoWritesInBulkWasSyncedForEachMiB) {
  SyncPace pace;
  LongestSync(pace, {3, 20}, 20);
  EXPECT_GE(pace.bytes(), 12 * kPiece);
  SyncPace of_fast_disk;
  LongestSync(of_fast_disk, {0.005, 1000}, 10);
  LongestSync(of_fast_disk, {3, 20}, 30);
  EXPECT_GE(of_fast_disk.bytes(), 12 * kPiece) << "whoever writes in bulk came later";
}

TEST(SyncPaceTest, ADiskThatBecomesSlowIsSyncedOftenerAtOnce) {
  SyncPace pace;
  LongestSync(pace, {0.005, 1000}, 10);
  pace.Note(64 * kPiece, std::chrono::seconds(64));
  EXPECT_LE(pace.bytes(), 2 * kPiece);
}

}  // namespace
}  // namespace volumed
