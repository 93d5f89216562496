#include "volumemanager/record_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/simulated_scheduler.h"
#include "fakes/memory_record_store.h"

namespace volumed {
namespace {

constexpr int kRows = 1000;
constexpr size_t kFewThreads = 64;

// Counts the blocking tasks that it was given and that have not ended: each has a thread.
class CountingScheduler final : public Scheduler {
 public:
  explicit CountingScheduler(Scheduler& real) : real_(real) {}
  const Clock& clock() const override { return real_.clock(); }
  void Post(Task task) override { real_.Post(std::move(task)); }
  TimerId PostAfter(Duration delay, Task task) override {
    return real_.PostAfter(delay, std::move(task));
  }
  bool Cancel(TimerId timer) override { return real_.Cancel(timer); }
  void RunBlocking(Task task) override {
    ++tasks;
    most = std::max(most, ++threads_);
    real_.RunBlocking([this, task = std::move(task)] {
      task();
      --threads_;
    });
  }
  bool OnControlThread() const override { return real_.OnControlThread(); }

  size_t most = 0;
  size_t tasks = 0;

 private:
  Scheduler& real_;
  size_t threads_ = 0;
};

class RecordWriterTest : public ::testing::Test {
 protected:
  static Record Row(int number, const std::string& bytes) {
    return {.kind = "row", .key = std::to_string(number), .version = 1, .bytes = bytes};
  }
  void Put(int number, const std::string& bytes) {
    writer_.Put(Row(number, bytes), Durability::kPowerLoss, [this](const Status& written) {
      EXPECT_TRUE(written.ok());
      ++written_;
    });
  }

  SimulatedScheduler scheduler_{1};
  CountingScheduler counting_{scheduler_};
  MemoryRecordStore store_;
  RecordWriter writer_{counting_, store_};
  int written_ = 0;
};

// Hundreds of pods that came at once had a thread each, until their rows were synced.
TEST_F(RecordWriterTest, TheRowsOfAThousandPodsThatComeAtOnceShareAFewThreads) {
  for (int i = 0; i < kRows; ++i) Put(i, "a");
  EXPECT_TRUE(writer_.Busy("row", std::to_string(kRows - 1)));
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(written_, kRows);
  EXPECT_LE(counting_.most, kFewThreads);
  EXPECT_GT(counting_.most, 1u) << "they share one sync";
  EXPECT_FALSE(writer_.Busy("row", std::to_string(kRows - 1)));
}

TEST_F(RecordWriterTest, TheRowsOfAThousandPodsAreWrittenByAFewCallsOfTheStore) {
  for (int i = 0; i < kRows; ++i) Put(i, "a");
  for (int i = 0; i < kRows; ++i) {
    writer_.Remove("row", std::to_string(i), Durability::kPowerLoss,
                   [this](const Status&) { ++written_; });
  }
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(written_, 2 * kRows);
  EXPECT_FALSE(store_.Find("row", "7").has_value());
  EXPECT_LE(counting_.tasks, 16u);
}

TEST_F(RecordWriterTest, TheWritesOfOneRowKeepTheirOrderAmongThoseOfOthers) {
  for (const char* payload : {"first", "second", "third"}) {
    for (int i = 0; i < kRows; ++i) Put(i, payload);
  }
  scheduler_.RunFor(Duration::zero());
  EXPECT_EQ(written_, 3 * kRows);
  for (int i = 0; i < kRows; ++i) {
    ASSERT_EQ(store_.Find("row", std::to_string(i))->bytes, "third") << i;
  }
}

}  // namespace
}  // namespace volumed
