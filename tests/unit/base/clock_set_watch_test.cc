#include "base/clock_set_watch.h"

#include <gtest/gtest.h>
#include <sys/timex.h>

#include <cerrno>
#include <chrono>

namespace volumed {
namespace {

// A step by nothing: it is told as any other, and changes no clock.
bool SetClockByNothing() {
  timex step = {};
  step.modes = ADJ_SETOFFSET | ADJ_NANO;
  return ::clock_adjtime(CLOCK_REALTIME, &step) >= 0;
}

TEST(ClockSetWatch, TellsEachTimeThatTheClockWasSet) {
  RealClock clock;
  auto loop = EventLoop::Create(clock);
  ASSERT_TRUE(loop.ok());
  int told = 0;
  auto watch = ClockSetWatch::Create(**loop, [&] {
    if (++told == 2) return (*loop)->Stop();
    (*loop)->Post([] { SetClockByNothing(); });
  });
  ASSERT_TRUE(watch.ok()) << watch.error().ToString();
  if (!SetClockByNothing()) GTEST_SKIP() << "skipped: may not set the clock";
  (*loop)->PostAfter(std::chrono::seconds(10), [&] { (*loop)->Stop(); });
  (*loop)->Run();
  EXPECT_EQ(told, 2);
}

TEST(ClockSetWatch, IsQuietWhileNobodySetsIt) {
  RealClock clock;
  auto loop = EventLoop::Create(clock);
  ASSERT_TRUE(loop.ok());
  // Another test, or the machine's NTP, may set it right now.
  int told = 0;
  auto watch = ClockSetWatch::Create(**loop, [&] { ++told; });
  ASSERT_TRUE(watch.ok()) << watch.error().ToString();
  (*loop)->PostAfter(std::chrono::milliseconds(20), [&] { (*loop)->Stop(); });
  (*loop)->Run();
  EXPECT_LE(told, 1);
}

}  // namespace
}  // namespace volumed
