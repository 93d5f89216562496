#include "base/event_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/manual_clock.h"

namespace volumed {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<EventLoop>> created = EventLoop::Create(clock_);
    ASSERT_TRUE(created.ok()) << created.error().ToString();
    loop_ = std::move(created).value();
  }

  struct Pipe {
    Descriptor read_end;
    Descriptor write_end;
  };
  static Pipe MakePipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  }
  static void WriteByte(const Pipe& pipe) { ASSERT_EQ(::write(pipe.write_end.get(), "x", 1), 1); }
  static void ReadByte(const Pipe& pipe) {
    char byte = 0;
    EXPECT_EQ(::read(pipe.read_end.get(), &byte, 1), 1);
  }

  RealClock clock_;
  std::unique_ptr<EventLoop> loop_;
};

TEST_F(EventLoopTest, RunsPostedTasksInOrderUntilStopped) {
  std::string order;
  loop_->Post([&] {
    order += 'a';
    loop_->Post([&] {
      order += 'c';
      loop_->Stop();
    });
    loop_->Post([&] { order += 'x'; });
  });
  loop_->Post([&] { order += 'b'; });
  loop_->Run();
  EXPECT_EQ(order, "abc");
  EXPECT_FALSE(loop_->OnLoopThread());
}

TEST_F(EventLoopTest, CanRunAgainAfterStop) {
  int runs = 0;
  for (int i = 0; i < 2; ++i) {
    loop_->Post([&] {
      EXPECT_TRUE(loop_->OnLoopThread());
      ++runs;
      loop_->Stop();
    });
    loop_->Run();
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(EventLoopTest, StopBeforeRunIsNotLost) {
  bool ran = false;
  loop_->Post([&] { ran = true; });
  loop_->Stop();
  loop_->Run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, TimersRunByTimeNotByOrderOfPosting) {
  std::string order;
  const TimePoint start = clock_.Now();
  loop_->PostAfter(milliseconds(20), [&] {
    order += 'c';
    loop_->Stop();
  });
  loop_->PostAfter(milliseconds(2), [&] { order += 'a'; });
  const TimerId cancelled = loop_->PostAfter(milliseconds(5), [&] { order += 'x'; });
  loop_->PostAfter(milliseconds(10), [&] { order += 'b'; });
  EXPECT_TRUE(loop_->Cancel(cancelled));
  EXPECT_FALSE(loop_->Cancel(cancelled));
  loop_->Run();
  EXPECT_EQ(order, "abc");
  EXPECT_GE(clock_.Now() - start, milliseconds(20));
}

TEST_F(EventLoopTest, TasksAndTimersFromOtherThreadsWakeTheLoop) {
  int left = 4000;
  std::vector<std::thread> threads;
  const Task count_down = [&] {
    if (--left == 0) loop_->Stop();
  };
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        loop_->Post(count_down);
        loop_->PostAfter(std::chrono::microseconds(i), count_down);
        loop_->Cancel(loop_->PostAfter(seconds(60), count_down));
      }
    });
  }
  loop_->Run();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(left, 0);
}

TEST_F(EventLoopTest, ATaskThatPostsItselfStarvesNeitherTimersNorDescriptors) {
  const Pipe pipe = MakePipe();
  WriteByte(pipe);
  bool timer_ran = false;
  Task forever = [&] { loop_->Post(forever); };
  loop_->Post(forever);
  loop_->PostAfter(Duration::zero(), [&] { timer_ran = true; });
  ASSERT_TRUE(loop_->WatchFd(pipe.read_end.get(), EPOLLIN, [&](uint32_t) { loop_->Stop(); }).ok());
  loop_->Run();
  EXPECT_TRUE(timer_ran);
}

TEST_F(EventLoopTest, CallbacksSeeReadinessAndHangUp) {
  Pipe pipe = MakePipe();
  std::vector<uint32_t> seen;
  ASSERT_TRUE(loop_
                  ->WatchFd(pipe.read_end.get(), EPOLLIN,
                            [&](uint32_t ready) {
                              seen.push_back(ready);
                              if ((ready & EPOLLHUP) != 0) {
                                loop_->UnwatchFd(pipe.read_end.get());
                                loop_->Stop();
                                return;
                              }
                              ReadByte(pipe);
                              pipe.write_end.Reset();
                            })
                  .ok());
  loop_->Post([&] { WriteByte(pipe); });
  loop_->Run();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0], uint32_t{EPOLLIN});
  EXPECT_EQ(seen[1] & EPOLLHUP, uint32_t{EPOLLHUP});
}

TEST_F(EventLoopTest, AnEventFetchedBeforeItsWatchWentReachesNobody) {
  Pipe first = MakePipe();
  Pipe second = MakePipe();
  WriteByte(first);
  WriteByte(second);
  int calls = 0;
  int wrong_calls = 0;
  // Whichever comes first closes the other and watches a new, silent pipe under its number.
  Pipe silent;
  const auto replace = [&](Pipe& other) {
    ++calls;
    const int number = other.read_end.get();
    loop_->UnwatchFd(number);
    silent = MakePipe();
    ASSERT_EQ(::dup3(silent.read_end.get(), number, O_CLOEXEC), number);
    ASSERT_TRUE(loop_->WatchFd(number, EPOLLIN, [&](uint32_t) { ++wrong_calls; }).ok());
    loop_->PostAfter(milliseconds(1), [&] { loop_->Stop(); });
  };
  ASSERT_TRUE(loop_
                  ->WatchFd(first.read_end.get(), EPOLLIN,
                            [&](uint32_t) {
                              ReadByte(first);
                              replace(second);
                            })
                  .ok());
  ASSERT_TRUE(loop_
                  ->WatchFd(second.read_end.get(), EPOLLIN,
                            [&](uint32_t) {
                              ReadByte(second);
                              replace(first);
                            })
                  .ok());
  loop_->Run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(wrong_calls, 0);
}

TEST_F(EventLoopTest, RefusesWhatItCannotWatch) {
  const Pipe pipe = MakePipe();
  ASSERT_TRUE(loop_->WatchFd(pipe.read_end.get(), EPOLLIN, [](uint32_t) {}).ok());
  EXPECT_EQ(loop_->WatchFd(pipe.read_end.get(), EPOLLIN, [](uint32_t) {}).error().code(),
            Code::kAlreadyExists);
  EXPECT_EQ(loop_->WatchFd(-1, EPOLLIN, [](uint32_t) {}).error().sys_errno(), EBADF);
  const Descriptor file(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(loop_->WatchFd(file.get(), EPOLLIN, [](uint32_t) {}).error().sys_errno(), EPERM);
  loop_->UnwatchFd(12345);  // no such watch: nothing happens
}

// Posts when it goes, as a completion that reports being dropped does.
struct PostsWhenDestroyed {
  EventLoop& loop;
  ~PostsWhenDestroyed() {
    loop.Post([] { FAIL(); });
    loop.PostAfter(seconds(1), [] { FAIL(); });
  }
};

TEST_F(EventLoopTest, QueuedTasksAreDestroyedUnrunAndMayPost) {
  const auto held = std::make_shared<int>(1);
  std::shared_ptr<PostsWhenDestroyed> poster(new PostsWhenDestroyed{*loop_});
  loop_->Post([held, poster] { FAIL(); });
  loop_->PostAfter(seconds(1), [held, poster] { FAIL(); });
  poster.reset();
  EXPECT_EQ(held.use_count(), 3);
  loop_.reset();
  EXPECT_EQ(held.use_count(), 1);
}

TEST_F(EventLoopTest, ACancelledTaskMayPostWhenItGoes) {
  std::shared_ptr<PostsWhenDestroyed> poster(new PostsWhenDestroyed{*loop_});
  const TimerId timer = loop_->PostAfter(seconds(1), [poster] {});
  poster.reset();
  EXPECT_TRUE(loop_->Cancel(timer)) << "and does not deadlock";
}

TEST_F(EventLoopTest, AnExceptionLeavesRun) {
  loop_->Post([] { throw std::runtime_error("boom"); });
  EXPECT_THROW(loop_->Run(), std::runtime_error);
  EXPECT_FALSE(loop_->OnLoopThread());
  EXPECT_EQ(loop_->TakeHealth().current_task, Duration::zero());
}

TEST(EventLoopHealthTest, ShowsTheLongestAndTheCurrentTask) {
  // Time that stands still but for what the tasks say.
  class SteppedClock final : public Clock {
   public:
    TimePoint Now() const override { return TimePoint(Duration(now_.load())); }
    int64_t WallUnixMillis() const override { return 0; }
    void Advance(Duration step) { now_.fetch_add(step.count()); }

   private:
    std::atomic<int64_t> now_{1};
  };
  SteppedClock clock;
  const std::unique_ptr<EventLoop> loop = std::move(EventLoop::Create(clock)).value();
  LoopHealth inside;
  loop->Post([&] { clock.Advance(seconds(3)); });
  loop->Post([&] { clock.Advance(seconds(2)); });
  loop->Post([&] {
    clock.Advance(seconds(1));
    inside = loop->TakeHealth();
    loop->Stop();
  });
  loop->Run();
  EXPECT_EQ(inside.longest_task, seconds(3));
  EXPECT_EQ(inside.current_task, seconds(1));
  EXPECT_EQ(inside.tasks_run, 2u);
  const LoopHealth after = loop->TakeHealth();
  EXPECT_EQ(after.longest_task, seconds(1)) << "taking starts anew";
  EXPECT_EQ(after.current_task, Duration::zero());
  EXPECT_EQ(after.tasks_run, 3u);
}

class SlowTaskOwner {
 public:
  static void PostSlow(EventLoop& loop, const std::function<void()>& advance) {
    loop.Post([advance] { advance(); });
  }
};

TEST(EventLoopSlowTaskTest, ATaskIsToldWithTheFunctionThatMadeItOnceItTookTheThreshold) {
  ManualClock clock;
  const std::unique_ptr<EventLoop> loop = std::move(EventLoop::Create(clock)).value();
  std::vector<std::pair<std::string, Duration>> told;
  loop->SetSlowTaskListener(
      seconds(2), [&](const std::string& task, Duration took) { told.emplace_back(task, took); });
  SlowTaskOwner::PostSlow(*loop, [&] { clock.Advance(seconds(1)); });
  SlowTaskOwner::PostSlow(*loop, [&] { clock.Advance(seconds(2)); });
  loop->Post([&] { loop->Stop(); });
  loop->Run();
  ASSERT_EQ(told.size(), 1u) << "a shorter one is not told";
  EXPECT_EQ(told[0].first, "SlowTaskOwner::PostSlow");
  EXPECT_EQ(told[0].second, seconds(2));
}

}  // namespace
}  // namespace volumed
