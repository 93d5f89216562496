// How many calls a driver has at a time, who waits, and how a wait ends.
#include <gtest/gtest.h>

#include <thread>

#include "unit/csi/channel_fixture.h"

namespace volumed {
namespace {

class CsiChannelQueueTest : public CsiChannelFixture {
 protected:
  CsiChannelQueueTest() { options_.width = 2; }

  void HoldTwo() {
    Serve(ScriptedDriver::Hold());
    Connect();
    for (int i = 0; i < 2; ++i) Begin("held");
    ASSERT_TRUE(driver_->WaitForArrived(2));
  }
  BegunCall& Begin(const std::string& volume, const CsiCallOptions& options = {}) {
    calls_.push_back(std::make_unique<BegunCall>(*channel_, Stage(volume), options));
    return *calls_.back();
  }
  size_t Waiting() const {
    size_t count = 0;
    for (const CsiOpenCall& call : channel_->Open()) count += !call.sent;
    return count;
  }

  std::vector<std::unique_ptr<BegunCall>> calls_;
};

TEST_F(CsiChannelQueueTest, NeverMoreThanTheWidthAreUnderWayAndTheOrderIsKept) {
  options_.width = 3;
  Serve(ScriptedDriver::Hold());
  Connect();
  constexpr int kCalls = 40;
  for (int i = 0; i < kCalls; ++i) Begin(std::to_string(i));
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(driver_->WaitForArrived(std::min(i + 3, kCalls)));
    ASSERT_TRUE(driver_->Release());
  }
  for (const auto& call : calls_) {
    ASSERT_TRUE(call->ended());
    EXPECT_TRUE(call->answer().ok());
  }
  EXPECT_EQ(driver_->most_held(), 3);
  // The driver's own threads may take two calls that are sent together in either order.
  const std::vector<std::string> requests = driver_->requests();
  for (int i = 0; i < kCalls; ++i) {
    int place = -1;
    for (int p = 0; p < kCalls; ++p) {
      if (requests[static_cast<size_t>(p)] == Stage(std::to_string(i)).SerializeAsString())
        place = p;
    }
    EXPECT_LE(std::abs(place - i), 3) << i;
  }
}

TEST_F(CsiChannelQueueTest, WaitingCallsAreTakenInTheOrderInWhichTheyCame) {
  options_.width = 1;
  Serve(ScriptedDriver::Hold());
  Connect();
  constexpr int kCalls = 20;
  for (int i = 0; i < kCalls; ++i) Begin(std::to_string(i));
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(driver_->WaitForArrived(i + 1));
    ASSERT_TRUE(driver_->Release());
  }
  const std::vector<std::string> requests = driver_->requests();
  for (int i = 0; i < kCalls; ++i) {
    EXPECT_EQ(requests[static_cast<size_t>(i)], Stage(std::to_string(i)).SerializeAsString());
  }
}

TEST_F(CsiChannelQueueTest, AWaitThatTakesTooLongEndsWithoutTheDriver) {
  HoldTwo();
  BegunCall& late = Begin("late", In(std::chrono::milliseconds(50)));
  ASSERT_TRUE(late.ended());
  ASSERT_FALSE(late.answer().ok());
  EXPECT_EQ(late.answer().error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(late.answer().error().maybe_applied());
  EXPECT_TRUE(late.answer().error().IsAbout(kCsiNeverSent));
  EXPECT_EQ(driver_->requests().size(), 2u);
  // Its place in the queue is gone too.
  Begin("next");
  ASSERT_TRUE(driver_->Release());
  ASSERT_TRUE(driver_->WaitForArrived(3));
  EXPECT_EQ(driver_->requests().back(), Stage("next").SerializeAsString());
}

TEST_F(CsiChannelQueueTest, ADeadlineThatHasPassedSendsNothing) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  BegunCall& call = Begin("late", {Deadline::At(clock_.Now() - std::chrono::seconds(1))});
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(call.answer().error().maybe_applied());
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelQueueTest, TheDeadlineOfACallUnderWayMayHaveBeenApplied) {
  Serve(ScriptedDriver::Hold());
  Connect();
  ASSERT_TRUE(WaitForState(CsiConnectionState::kReady));
  BegunCall& call = Begin("slow", In(std::chrono::seconds(1)));
  ASSERT_TRUE(driver_->WaitForArrived(1));
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kDeadlineExceeded);
  EXPECT_TRUE(call.answer().error().maybe_applied());
  EXPECT_FALSE(call.answer().error().IsAbout(kCsiNeverSent));
}

TEST_F(CsiChannelQueueTest, AnInfiniteDeadlineIsTheLongestCall) {
  options_.longest_call = std::chrono::milliseconds(300);
  Serve(ScriptedDriver::Hold());
  Connect();
  BegunCall& call = Begin("slow");
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kDeadlineExceeded);
}

TEST_F(CsiChannelQueueTest, ACancelledCallThatWaitsIsNotSent) {
  HoldTwo();
  const auto cancel = std::make_shared<CsiCancel>();
  BegunCall& waiting = Begin("waiting", {.cancel = cancel});
  EXPECT_EQ(Waiting(), 1u);
  cancel->Cancel();
  ASSERT_TRUE(waiting.ended());
  ASSERT_FALSE(waiting.answer().ok());
  EXPECT_EQ(waiting.answer().error().code(), Code::kCancelled);
  EXPECT_FALSE(waiting.answer().error().maybe_applied());
  EXPECT_EQ(Waiting(), 0u);
  ASSERT_TRUE(driver_->Release());
  ASSERT_TRUE(calls_[0]->ended() || calls_[1]->ended());
  EXPECT_EQ(driver_->requests().size(), 2u);
}

TEST_F(CsiChannelQueueTest, ACancelledCallUnderWayMayHaveBeenAppliedAndGivesItsPlaceToTheNext) {
  Serve(ScriptedDriver::Hold());
  Connect();
  const auto cancel = std::make_shared<CsiCancel>();
  BegunCall& first = Begin("first", {.cancel = cancel});
  BegunCall& second = Begin("second", {.cancel = cancel});
  ASSERT_TRUE(driver_->WaitForArrived(2));
  Begin("third");
  cancel->Cancel();
  for (BegunCall* call : {&first, &second}) {
    ASSERT_TRUE(call->ended());
    ASSERT_FALSE(call->answer().ok());
    EXPECT_EQ(call->answer().error().code(), Code::kCancelled);
    EXPECT_TRUE(call->answer().error().maybe_applied());
  }
  EXPECT_TRUE(driver_->WaitForCancelled(2));
  EXPECT_TRUE(driver_->WaitForArrived(3));
}

TEST_F(CsiChannelQueueTest, ATokenThatIsCancelledAlreadySendsNothing) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto cancel = std::make_shared<CsiCancel>();
  cancel->Cancel();
  cancel->Cancel();
  BegunCall& call = Begin("never", {.cancel = cancel});
  ASSERT_TRUE(call.ended());
  ASSERT_FALSE(call.answer().ok());
  EXPECT_EQ(call.answer().error().code(), Code::kCancelled);
  EXPECT_FALSE(call.answer().error().maybe_applied());
  EXPECT_EQ(driver_->requests().size(), 0u);
}

TEST_F(CsiChannelQueueTest, ACancelAfterTheEndDoesNothing) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  const auto cancel = std::make_shared<CsiCancel>();
  BegunCall& call = Begin("done", {.cancel = cancel});
  ASSERT_TRUE(call.ended());
  cancel->Cancel();
  EXPECT_TRUE(call.answer().ok());
  EXPECT_EQ(reports_.all().size(), 1u);
}

TEST_F(CsiChannelQueueTest, OpenCallsAreListedWithWhatTheyAreAbout) {
  HoldTwo();
  Begin("waiting");
  const std::vector<CsiOpenCall> open = channel_->Open();
  ASSERT_EQ(open.size(), 3u);
  EXPECT_EQ(open[0].method->name, "NodeStageVolume");
  EXPECT_TRUE(open[0].sent);
  EXPECT_EQ(open[2].key, "waiting");
  EXPECT_FALSE(open[2].sent);
  EXPECT_LE(open[0].asked, open[2].asked);
}

TEST_F(CsiChannelQueueTest, TheReportOfACallThatWaitedSaysHowLong) {
  HoldTwo();
  BegunCall& waiting = Begin("waiting");
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_TRUE(driver_->Release());
  ASSERT_TRUE(driver_->WaitForArrived(3));
  while (driver_->Release()) {
  }
  ASSERT_TRUE(waiting.ended());
  for (const CsiCallReport& report : reports_.all()) {
    if (report.key == "waiting") {
      EXPECT_GE(report.waited, std::chrono::milliseconds(15));
    }
  }
}

TEST_F(CsiChannelQueueTest, AnAnswerMayBeginTheNextCall) {
  Serve(ScriptedDriver::Always({}));
  Connect();
  Happening happening;
  int answers = 0;
  std::function<void(CsiChannel::AnyAnswer)> next = [&](CsiChannel::AnyAnswer answer) {
    ASSERT_TRUE(answer.ok());
    bool last = false;
    happening.Happened([&] { last = ++answers == 50; });
    if (!last) channel_->Start(Stage(), {}, next);
  };
  channel_->Start(Stage(), {}, next);
  EXPECT_TRUE(happening.WaitFor([&] { return answers == 50; }));
}

TEST_F(CsiChannelQueueTest, DestructionEndsCallsThatHangAndCallsThatWait) {
  HoldTwo();
  Begin("waiting");
  channel_.reset();
  for (size_t i = 0; i < calls_.size(); ++i) {
    // All have ended by now, not later.
    ASSERT_TRUE(calls_[i]->has_ended_now());
    ASSERT_FALSE(calls_[i]->answer().ok());
    EXPECT_EQ(calls_[i]->answer().error().code(), Code::kCancelled);
    EXPECT_EQ(calls_[i]->answer().error().maybe_applied(), i < 2);
  }
  EXPECT_EQ(reports_.all().size(), 3u);
  EXPECT_EQ(driver_->requests().size(), 2u);
}

TEST_F(CsiChannelQueueTest, ManyThreadsCallAndCancelAndEachCallEndsOnce) {
  Serve(
      [](int number) { return number % 7 == 0 ? std::nullopt : std::optional(ScriptedAnswer{}); });
  Connect();
  constexpr int kThreads = 4;
  constexpr int kCalls = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kCalls; ++i) {
        const auto cancel = std::make_shared<CsiCancel>();
        const BegunCall call(*channel_, Stage(),
                             {In(std::chrono::milliseconds(200)).deadline, cancel});
        if (i % 3 == 0) cancel->Cancel();
        EXPECT_TRUE(call.ended());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reports_.all().size(), static_cast<size_t>(kThreads * kCalls));
  EXPECT_TRUE(channel_->Open().empty());
}

}  // namespace
}  // namespace volumed
