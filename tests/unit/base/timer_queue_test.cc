#include "base/timer_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace volumed {
namespace {

using std::chrono::seconds;

constexpr TimePoint kNow{seconds(1000)};

class TimerQueueTest : public testing::Test {
 protected:
  TimerId Add(Duration delay, char name) {
    return queue_.Add(kNow, delay, [this, name] { ran_ += name; });
  }
  void RunDue(TimePoint now) {
    while (auto due = queue_.PopDue(now)) due->task();
  }

  TimerQueue queue_;
  std::string ran_;
};

TEST_F(TimerQueueTest, RunsByTimeThenByOrderOfAdding) {
  Add(seconds(2), 'c');
  Add(seconds(1), 'a');
  Add(seconds(1), 'b');
  EXPECT_EQ(queue_.NextDue(), kNow + seconds(1));
  RunDue(kNow);
  EXPECT_EQ(ran_, "");
  RunDue(kNow + seconds(1));
  EXPECT_EQ(ran_, "ab");
  RunDue(kNow + seconds(2));
  EXPECT_EQ(ran_, "abc");
  EXPECT_EQ(queue_.NextDue(), std::nullopt);
}

TEST_F(TimerQueueTest, RemovedTimersDoNotRun) {
  const TimerId a = Add(seconds(1), 'a');
  Add(seconds(1), 'b');
  EXPECT_TRUE(queue_.Remove(a).has_value());
  EXPECT_FALSE(queue_.Remove(a).has_value());
  EXPECT_FALSE(queue_.Remove(0).has_value());
  RunDue(kNow + seconds(9));
  EXPECT_EQ(ran_, "b");
}

TEST_F(TimerQueueTest, ExtremeDelaysDoNotOverflow) {
  Add(Duration::max(), 'z');
  Add(Duration::min(), 'a');
  RunDue(kNow);
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(queue_.NextDue(), TimePoint::max());
}

TEST_F(TimerQueueTest, RemoveHandsTheTaskOut) {
  const auto held = std::make_shared<int>(1);
  const TimerId timer = queue_.Add(kNow, seconds(1), [held] {});
  {
    const std::optional<Task> task = queue_.Remove(timer);
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace volumed
