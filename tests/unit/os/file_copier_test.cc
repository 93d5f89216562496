// How often what is copied is put on the disk.
#include "os/file_copier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>

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

SyncPace::Duration DurationOf(double time) {
  return std::chrono::duration_cast<SyncPace::Duration>(std::chrono::duration<double>(time));
}

// Syncs what the pace says, so many times. Answers how long the longest of the last half took.
double LongestSync(SyncPace& pace, const Disk& disk, int count) {
  double longest = 0;
  for (int i = 0; i < count; ++i) {
    const double needed = disk.SecondsOf(pace.bytes());
    if (2 * i >= count) longest = std::max(longest, needed);
    pace.Note(DurationOf(needed));
  }
  return longest;
}

// The mean of what is synced at once while each sync waits for others by so many seconds.
int64_t MeanBeside(const std::function<double()>& wait, int count) {
  SyncPace pace;
  int64_t bytes = 0;
  for (int i = 0; i < count; ++i) {
    bytes += pace.bytes();
    pace.Note(DurationOf(Disk{wait(), 20}.SecondsOf(pace.bytes())));
  }
  return bytes / count;
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

// Each sync took seconds, as others wrote to the disk, and so it stayed at a MiB for each. How long
// it took was taken for what its bytes had cost when it was only luck.
TEST(SyncPaceTest, ACopyBesideSomebodyWhoWritesInBulkWasSyncedForEachMiB) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto between = [&random](double least, double most) {
      return std::uniform_real_distribution<double>(least, most)(random);
    };
    EXPECT_GE(MeanBeside([] { return 3; }, 30), 32 * kPiece);
    EXPECT_GE(MeanBeside([&] { return between(0, 10); }, 30), 24 * kPiece) << seed;
    EXPECT_GE(MeanBeside([&] { return between(5, 15); }, 30), 32 * kPiece) << seed;
    // As a journal has it that writes out what others have given it: mostly all of that, or none.
    const auto all_or_none = [&] { return between(0, 1) < 0.7 ? 15.0 : between(0, 3); };
    EXPECT_GE(MeanBeside(all_or_none, 30), 32 * kPiece) << seed;
  }
  SyncPace of_fast_disk;
  LongestSync(of_fast_disk, {0.005, 1000}, 10);
  int64_t bytes = 0;
  for (int i = 0; i < 30; ++i) {
    bytes += of_fast_disk.bytes();
    LongestSync(of_fast_disk, {3, 20}, 1);
  }
  EXPECT_GE(bytes / 30, 24 * kPiece) << "whoever writes in bulk came later";
}

TEST(SyncPaceTest, ADiskThatBecomesSlowIsSyncedOftener) {
  SyncPace pace;
  LongestSync(pace, {0.005, 1000}, 10);
  pace.Note(std::chrono::seconds(64));
  EXPECT_EQ(pace.bytes(), 32 * kPiece);
  EXPECT_LT(LongestSync(pace, {0, 1}, 20), 8);
}

}  // namespace
}  // namespace volumed
