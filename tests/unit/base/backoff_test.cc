#include "base/backoff.h"

#include <gtest/gtest.h>

#include <string>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class BackoffTest : public testing::Test {
 protected:
  ManualClock clock_;
  Backoff backoff_{clock_};
};

TEST_F(BackoffTest, DoublesFromHalfASecondToTwoMinutesTwo) {
  EXPECT_EQ(backoff_.RecordFailure("v", "mount", "e"), milliseconds(500));
  for (const int expected : {1, 2, 4, 8, 16, 32, 64, 122, 122, 122}) {
    EXPECT_EQ(backoff_.NextDelay("v", "mount", "e"), seconds(expected));
    EXPECT_EQ(backoff_.RecordFailure("v", "mount", "e"), seconds(expected));
  }
  EXPECT_EQ(backoff_.Failures("v", "mount", "e"), 11);
}

TEST_F(BackoffTest, BlocksUntilTheDelayHasPassed) {
  EXPECT_FALSE(backoff_.BlockedUntil("v", "mount"));
  backoff_.RecordFailure("v", "mount", "e");
  EXPECT_EQ(backoff_.BlockedUntil("v", "mount"), clock_.Now() + milliseconds(500));
  clock_.Advance(milliseconds(499));
  EXPECT_TRUE(backoff_.BlockedUntil("v", "mount"));
  clock_.Advance(milliseconds(1));
  EXPECT_FALSE(backoff_.BlockedUntil("v", "mount"));
  EXPECT_EQ(backoff_.RecordFailure("v", "mount", "e"), seconds(1)) << "the row goes on";
}

TEST_F(BackoffTest, KeysOperationsAndClassesAreApart) {
  for (int i = 0; i < 5; ++i) backoff_.RecordFailure("v", "mount", "NotFound");
  EXPECT_EQ(backoff_.RecordFailure("v", "mount", "Aborted"), milliseconds(500));
  EXPECT_EQ(backoff_.RecordFailure("v", "unmount", "NotFound"), milliseconds(500));
  EXPECT_EQ(backoff_.RecordFailure("w", "mount", "NotFound"), milliseconds(500));
  EXPECT_EQ(backoff_.NextDelay("v", "mount", "NotFound"), seconds(16));
  EXPECT_FALSE(backoff_.BlockedUntil("v", "moun"));
  EXPECT_FALSE(backoff_.BlockedUntil("v", ""));
}

TEST_F(BackoffTest, TheLatestClassDecides) {
  for (int i = 0; i < 4; ++i) backoff_.RecordFailure("v", "mount", "b");
  backoff_.RecordFailure("v", "mount", "a");
  backoff_.RecordFailure("v", "mount", "c");
  EXPECT_EQ(backoff_.BlockedUntil("v", "mount"), clock_.Now() + seconds(4));
}

TEST_F(BackoffTest, ResetForgetsOneKeyOrOneOperation) {
  for (const char* key : {"v", "v2", "w"}) {
    backoff_.RecordFailure(key, "mount", "a");
    backoff_.RecordFailure(key, "mount", "b");
    backoff_.RecordFailure(key, "unmount", "a");
  }
  backoff_.Reset("v");
  EXPECT_FALSE(backoff_.BlockedUntil("v", "mount"));
  EXPECT_FALSE(backoff_.BlockedUntil("v", "unmount"));
  EXPECT_TRUE(backoff_.BlockedUntil("v2", "mount"));
  backoff_.Reset("w", "mount");
  EXPECT_FALSE(backoff_.BlockedUntil("w", "mount"));
  EXPECT_TRUE(backoff_.BlockedUntil("w", "unmount"));
  EXPECT_EQ(backoff_.size(), 4u);
  backoff_.Reset("nothing");
  EXPECT_EQ(backoff_.RecordFailure("v", "mount", "a"), milliseconds(500));
}

TEST_F(BackoffTest, MemoryIsBoundedAndTheOldestFailureGoes) {
  Backoff backoff(clock_, {milliseconds(500), seconds(122), 3});
  for (const char* key : {"a", "b", "c"}) backoff.RecordFailure(key, "op", "e");
  backoff.RecordFailure("a", "op", "e");  // now the youngest
  backoff.RecordFailure("d", "op", "e");
  EXPECT_EQ(backoff.size(), 3u);
  EXPECT_EQ(backoff.Failures("b", "op", "e"), 0);
  EXPECT_EQ(backoff.Failures("a", "op", "e"), 2);
  for (int i = 0; i < 1000; ++i) backoff.RecordFailure(std::to_string(i), "op", "e");
  EXPECT_EQ(backoff.size(), 3u);
}

}  // namespace
}  // namespace volumed
