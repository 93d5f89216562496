#include "base/executor.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

namespace volumed {
namespace {

// More than any address space holds, so that no thread can be made.
constexpr size_t kImpossibleStack = size_t{1} << 56;

TEST(ExecutorTest, WithoutAThreadTheTaskStaysQueuedAndTheErrorSaysSo) {
  ExecutorOptions options;
  options.stack_bytes = kImpossibleStack;
  Executor executor(options);
  const Status submitted = executor.Submit([] { FAIL() << "there is no thread"; });
  ASSERT_FALSE(submitted.ok());
  EXPECT_EQ(submitted.error().code(), Code::kResourceExhausted);
  EXPECT_TRUE(submitted.error().maybe_applied());
  EXPECT_FALSE(executor.StartThreads().ok());
  EXPECT_EQ(executor.load().threads, 0u);
  EXPECT_EQ(executor.load().queued, 1u);
}

TEST(ExecutorTest, NothingQueuedNeedsNoThread) {
  ExecutorOptions options;
  options.stack_bytes = kImpossibleStack;
  Executor executor(options);
  EXPECT_TRUE(executor.StartThreads().ok());
}

TEST(ExecutorTest, ATaskIsDestroyedInItsThreadWhenItHasRun) {
  Executor executor({});
  // Shared, because the thread may still be inside set_value() when the test has seen it.
  const auto gone = std::make_shared<std::promise<void>>();
  struct SaysGone {
    std::shared_ptr<std::promise<void>> gone;
    ~SaysGone() { gone->set_value(); }
  };
  std::shared_ptr<SaysGone> held(new SaysGone{gone});
  ASSERT_TRUE(executor.Submit([moved = std::move(held)] {}).ok());
  EXPECT_EQ(gone->get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(ExecutorTest, StackSizesBelowTheSmallestAreRaised) {
  ExecutorOptions options;
  options.stack_bytes = 1;
  Executor executor(options);
  const auto ran = std::make_shared<std::promise<void>>();
  ASSERT_TRUE(executor.Submit([ran] { ran->set_value(); }).ok());
  EXPECT_EQ(ran->get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

// In turn, all threads of 64 drivers that hung stayed for as long as each was asked now and then.
TEST(ExecutorTest, ThreadsThatAreNotNeededEndThoughThereIsWorkNowAndThen) {
  using std::chrono::milliseconds;
  constexpr size_t kMany = 16;
  ExecutorOptions options;
  options.idle_timeout = milliseconds(500);
  Executor executor(options);
  const auto go = std::make_shared<std::promise<void>>();
  const std::shared_future<void> gone = go->get_future().share();
  for (size_t i = 0; i < kMany; ++i) ASSERT_TRUE(executor.Submit([gone] { gone.wait(); }).ok());
  EXPECT_EQ(executor.load().threads, kMany);
  go->set_value();
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (executor.load().threads > kMany / 4 && std::chrono::steady_clock::now() < limit) {
    ASSERT_TRUE(executor.Submit([] {}).ok());
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_LE(executor.load().threads, kMany / 4);
}

}  // namespace
}  // namespace volumed
