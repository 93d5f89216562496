// Which signals become which calls.
#include "agent/signals.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <memory>

#include "base/clock.h"

namespace volumed {
namespace {

// What this test changes of its process is as before when it ends.
class SignalsTest : public testing::Test {
 protected:
  SignalsTest() {
    pthread_sigmask(SIG_BLOCK, nullptr, &mask_);
    pipe_ = std::signal(SIGPIPE, SIG_IGN);
    loop_ = std::move(EventLoop::Create(clock_)).value();
  }
  ~SignalsTest() override {
    std::signal(SIGPIPE, pipe_);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

  RealClock clock_;
  std::unique_ptr<EventLoop> loop_;

 private:
  sigset_t mask_{};
  void (*pipe_)(int) = SIG_DFL;
};

// "volumed stops; mounts stay" was logged twice.
TEST_F(SignalsTest, AnAgentThatWasAskedTwiceToStopSaidSoTwice) {
  int stops = 0;
  int reloads = 0;
  const auto signals = Signals::Create(*loop_, {[&] { ++stops; },
                                                [&] {
                                                  ++reloads;
                                                  loop_->Stop();
                                                }});
  ASSERT_TRUE(signals.ok()) << signals.error().ToString();
  // They are pending, and read in the order of their numbers, all by one look.
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) ASSERT_EQ(std::raise(number), 0);
  loop_->Run();
  EXPECT_EQ(reloads, 1);
  EXPECT_EQ(stops, 1);
}

}  // namespace
}  // namespace volumed
