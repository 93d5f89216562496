// Who is looked at when.
#include "volumemanager/reconcile_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/simulated_scheduler.h"

namespace volumed {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;

class ReconcileQueueTest : public ::testing::Test {
 protected:
  void RunAll() { scheduler_.RunFor(Duration::zero()); }
  size_t PlaceOf(int key) const {
    return static_cast<size_t>(std::find(seen_.begin(), seen_.end(), key) - seen_.begin());
  }

  SimulatedScheduler scheduler_{1};
  std::vector<int> seen_;
  ReconcileQueue<int> queue_{scheduler_, [this](const int& key, Wake&) { seen_.push_back(key); }};
};

TEST_F(ReconcileQueueTest, EachIsLookedAtOnceInTheOrderInWhichItWasMarked) {
  for (const int key : {3, 1, 3, 2, 1}) queue_.MarkDirty(key);
  RunAll();
  EXPECT_THAT(seen_, ElementsAre()) << "it has not been started";
  queue_.Start();
  RunAll();
  EXPECT_THAT(seen_, ElementsAre(3, 1, 2));
  queue_.MarkDirty(1);
  RunAll();
  EXPECT_THAT(seen_, ElementsAre(3, 1, 2, 1));
}

// One that came just after a thousand was looked at after the last of them.
TEST_F(ReconcileQueueTest, OneThatIsMarkedAloneDoesNotWaitForMany) {
  queue_.Start();
  for (int key = 0; key < 1000; ++key) queue_.MarkDirty(key, /*with_many=*/true);
  for (int key = 2000; key < 2005; ++key) queue_.MarkDirty(key);
  RunAll();
  ASSERT_EQ(seen_.size(), 1005U);
  EXPECT_LT(PlaceOf(2004), 12U);
  EXPECT_LT(PlaceOf(0), 2U) << "the many go on meanwhile";
}

TEST_F(ReconcileQueueTest, ManyDoNotWaitForThoseThatAreMarkedAloneWithoutEnd) {
  queue_.Start();
  for (int key = 0; key < 100; ++key) queue_.MarkDirty(key);
  for (int key = 1000; key < 1100; ++key) queue_.MarkDirty(key, /*with_many=*/true);
  RunAll();
  EXPECT_LT(PlaceOf(1099), 200U);
  EXPECT_LT(PlaceOf(1049), 101U) << "half of the room is theirs";
}

TEST_F(ReconcileQueueTest, WhoIsMarkedInBothWaysIsLookedAtOnce) {
  queue_.Start();
  queue_.MarkDirty(1, /*with_many=*/true);
  queue_.MarkDirty(1);
  queue_.MarkDirty(2);
  queue_.MarkDirty(2, /*with_many=*/true);
  RunAll();
  EXPECT_EQ(seen_.size(), 2U);
  EXPECT_THAT(seen_, IsSupersetOf({1, 2}));
}

}  // namespace
}  // namespace volumed
