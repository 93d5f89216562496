// How often what is copied is put on the disk.
#include "os/file_copier.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>

namespace volumed {
namespace {

using std::chrono::milliseconds;
constexpr int64_t kPiece = 1 << 20;  // a MiB

// Takes syncs of whatever is asked for on a disk of this speed, and says what is asked for then.
int64_t AfterSyncs(int count, double mib_per_second) {
  int64_t bytes = kPiece;
  for (int i = 0; i < count; ++i) {
    const double needed = static_cast<double>(bytes) / (mib_per_second * kPiece);
    bytes = NextSyncBytes(bytes, milliseconds(static_cast<int64_t>(needed * 1000)), bytes);
  }
  return bytes;
}

// 64 MiB went to the cache at once, and then one sync took a minute, in which nobody learned how
// far the copy was and no cancel was heard.
TEST(FileCopierTest, ASyncOfADiskThatIsSlowToWriteTookAMinute) {
  EXPECT_EQ(AfterSyncs(1, 1.0), kPiece);
  EXPECT_EQ(AfterSyncs(20, 1.0), kPiece);
  EXPECT_EQ(AfterSyncs(20, 0.1), kPiece);
}

TEST(FileCopierTest, AFastDiskIsSyncedSeldom) {
  EXPECT_EQ(AfterSyncs(1, 1000), 4 * kPiece);
  EXPECT_EQ(AfterSyncs(3, 1000), 64 * kPiece);
  EXPECT_EQ(AfterSyncs(20, 1000), 64 * kPiece);
  EXPECT_EQ(NextSyncBytes(kPiece, milliseconds(0), kPiece), 4 * kPiece);
}

TEST(FileCopierTest, ADiskThatBecomesSlowIsSyncedOftenerAtOnce) {
  EXPECT_EQ(NextSyncBytes(64 * kPiece, std::chrono::seconds(64), 64 * kPiece), kPiece);
  EXPECT_EQ(NextSyncBytes(64 * kPiece, std::chrono::seconds(8), 64 * kPiece), 8 * kPiece);
}

// One that was slow to be read was synced by time, with few bytes.
TEST(FileCopierTest, FewBytesAreNoSignOfASlowDisk) {
  EXPECT_EQ(NextSyncBytes(4096, milliseconds(5), 64 * kPiece), kPiece);
}

}  // namespace
}  // namespace volumed
