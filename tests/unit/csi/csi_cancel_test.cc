// The token that ends calls.
#include "csi/rpc/csi_cancel.h"

#include <gtest/gtest.h>

namespace volumed {
namespace {

TEST(CsiCancelTest, EveryHookRunsOnceWhenItIsCancelled) {
  CsiCancel cancel;
  int first = 0;
  int second = 0;
  cancel.Add([&first] { ++first; });
  cancel.Add([&second] { ++second; });
  EXPECT_FALSE(cancel.cancelled());
  cancel.Cancel();
  cancel.Cancel();
  EXPECT_TRUE(cancel.cancelled());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(CsiCancelTest, AHookThatComesTooLateRunsAtOnceAndHasNoNumber) {
  CsiCancel cancel;
  cancel.Cancel();
  int runs = 0;
  EXPECT_EQ(cancel.Add([&runs] { ++runs; }), 0u);
  EXPECT_EQ(runs, 1);
}

TEST(CsiCancelTest, AHookThatWasRemovedDoesNotRun) {
  CsiCancel cancel;
  int runs = 0;
  const uint64_t removed = cancel.Add([&runs] { ++runs; });
  cancel.Add([&runs] { runs += 10; });
  cancel.Remove(removed);
  cancel.Remove(0);
  cancel.Cancel();
  EXPECT_EQ(runs, 10);
}

TEST(CsiCancelTest, AHookMayAskTheToken) {
  CsiCancel cancel;
  bool cancelled = false;
  cancel.Add([&] { cancelled = cancel.cancelled(); });
  cancel.Cancel();
  EXPECT_TRUE(cancelled);
}

}  // namespace
}  // namespace volumed
