#include "base/real_scheduler.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_nice.h"
#include "fakes/must.h"
#include "unit/base/run_scheduler.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<RealScheduler> Make(ExecutorOptions options = {}) {
  return Must(RealScheduler::Create(options));
}

TEST(RealSchedulerTest, BlockingTasksRunElsewhereAndPostBack) {
  const auto scheduler = Make();
  bool blocking_on_control = true;
  bool result_on_control = false;
  scheduler->RunBlocking([&] {
    blocking_on_control = scheduler->OnControlThread();
    scheduler->Post([&] {
      result_on_control = scheduler->OnControlThread();
      scheduler->Stop();
    });
  });
  scheduler->Run();
  EXPECT_FALSE(blocking_on_control);
  EXPECT_TRUE(result_on_control);
  EXPECT_FALSE(scheduler->OnControlThread());
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return scheduler->load().busy == 0; }));
}

TEST(RealSchedulerTest, WhatTheControlThreadStartsHasNoMoreOfTheProcessorThanOthers) {
  const int usual = ThreadNice();
  const auto scheduler = Make();
  int of_control = usual;
  int of_blocking = usual + 1;
  scheduler->Post([&] {
    of_control = ThreadNice();
    scheduler->RunBlocking([&] {
      of_blocking = ThreadNice();
      scheduler->Post([&] { scheduler->Stop(); });
    });
  });
  scheduler->Run();
  EXPECT_LE(of_control, usual);
  EXPECT_EQ(of_blocking, usual);
  EXPECT_EQ(ThreadNice(), usual);
}

TEST(RealSchedulerTest, ThereAreAsManyThreadsAsBlockedTasks) {
  const auto scheduler = Make();
  constexpr int kTasks = 50;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> inside{0};
  for (int i = 0; i < kTasks; ++i) {
    scheduler->RunBlocking([&inside, released] {
      ++inside;
      released.wait();
    });
  }
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return inside == kTasks; })) << "none waits for another";
  EXPECT_EQ(scheduler->load().busy, size_t{kTasks});
  EXPECT_EQ(scheduler->load().queued, 0u);
  release.set_value();
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return scheduler->load().busy == 0; }));
}

TEST(RealSchedulerTest, BeyondTheLimitTasksQueueAndThenRun) {
  ExecutorOptions options;
  options.max_threads = 2;
  const auto scheduler = Make(options);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> finished{0};
  for (int i = 0; i < 10; ++i) {
    scheduler->RunBlocking([&finished, released] {
      released.wait();
      ++finished;
    });
  }
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return scheduler->load().busy == 2; }));
  EXPECT_EQ(scheduler->load().threads, 2u);
  EXPECT_EQ(scheduler->load().queued, 8u);
  release.set_value();
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return finished == 10 && scheduler->load().busy == 0; }));
}

TEST(RealSchedulerTest, IdleThreadsAreUsedAgain) {
  const auto scheduler = Make();
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> ran{false};
    scheduler->RunBlocking([&ran] { ran = true; });
    ASSERT_TRUE(RunUntil(*scheduler, [&] { return ran && scheduler->load().busy == 0; }));
  }
  // A thread that has just left its task may not be idle yet when the next one comes.
  EXPECT_LE(scheduler->load().threads, 3u);
}

TEST(RealSchedulerTest, IdleThreadsEnd) {
  ExecutorOptions options;
  options.idle_timeout = milliseconds(5);
  const auto scheduler = Make(options);
  std::atomic<int> ran{0};
  for (int i = 0; i < 8; ++i) scheduler->RunBlocking([&ran] { ++ran; });
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return ran == 8 && scheduler->load().threads == 0; }));
  scheduler->RunBlocking([&ran] { ++ran; });
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return ran == 9 && scheduler->load().threads == 0; }));
}

TEST(RealSchedulerTest, ExecutorThreadsHaveTheStackAskedFor) {
  ExecutorOptions options;
  options.stack_bytes = 512 * 1024;
  const auto scheduler = Make(options);
  size_t stack_bytes = 0;
  scheduler->RunBlocking([&] {
    pthread_attr_t attributes;
    if (::pthread_getattr_np(::pthread_self(), &attributes) == 0) {
      ::pthread_attr_getstacksize(&attributes, &stack_bytes);
      ::pthread_attr_destroy(&attributes);
    }
    scheduler->Post([&] { scheduler->Stop(); });
  });
  scheduler->Run();
  EXPECT_GE(stack_bytes, 512u * 1024);
  EXPECT_LT(stack_bytes, 2048u * 1024);
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return scheduler->load().busy == 0; }));
}

TEST(RealSchedulerTest, DestructionDoesNotWaitForABlockedTask) {
  std::promise<void> release;
  const auto finished = std::make_shared<std::promise<void>>();
  const auto entered = std::make_shared<std::atomic<bool>>(false);
  const auto unrun = std::make_shared<int>(0);
  ExecutorOptions options;
  options.max_threads = 1;
  auto scheduler = Make(options);
  scheduler->RunBlocking([entered, finished, released = release.get_future().share()] {
    *entered = true;
    released.wait();
    finished->set_value();
  });
  scheduler->RunBlocking([unrun] { FAIL() << "queued behind the blocked one"; });
  ASSERT_TRUE(RunUntil(*scheduler, [&] { return entered->load(); }));
  scheduler.reset();
  EXPECT_EQ(unrun.use_count(), 1) << "destroyed unrun";
  release.set_value();
  // The thread that was left behind goes on, and ends.
  EXPECT_EQ(finished->get_future().wait_for(seconds(10)), std::future_status::ready);
}

TEST(RealSchedulerTest, PostKeepsTheOrderOfEachThread) {
  const auto scheduler = Make();
  constexpr int kThreads = 8;
  constexpr int kPosts = 200;
  std::vector<int> next(kThreads, 0);
  int left = kThreads * kPosts;
  bool in_order = true;
  for (int t = 0; t < kThreads; ++t) {
    scheduler->RunBlocking([&, t] {
      for (int i = 0; i < kPosts; ++i) {
        scheduler->Post([&, t, i] {
          const auto thread = static_cast<size_t>(t);
          in_order = in_order && next[thread] == i;
          ++next[thread];
          if (--left == 0) scheduler->Stop();
        });
      }
    });
  }
  scheduler->Run();
  EXPECT_TRUE(in_order);
  EXPECT_TRUE(RunUntil(*scheduler, [&] { return scheduler->load().busy == 0; }));
}

TEST(RealSchedulerTest, MaxTaskDurationSeesASlowControlTask) {
  const auto scheduler = Make();
  scheduler->Post([&] {
    const TimePoint until = scheduler->clock().Now() + milliseconds(5);
    while (scheduler->clock().Now() < until) {
    }
    scheduler->Stop();
  });
  scheduler->Run();
  EXPECT_GE(scheduler->MaxTaskDuration(), milliseconds(5));
  EXPECT_EQ(scheduler->MaxTaskDuration(), Duration::zero());
}

TEST(RealSchedulerTest, TheLoopTakesDescriptorWatches) {
  const auto scheduler = Make();
  EXPECT_EQ(scheduler->loop().WatchFd(-1, 0, [](uint32_t) {}).error().code(),
            Code::kFailedPrecondition);
}

}  // namespace
}  // namespace volumed
