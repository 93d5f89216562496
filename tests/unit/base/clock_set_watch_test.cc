#include "base/clock_set_watch.h"

#include <gtest/gtest.h>
#include <sys/timex.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace volumed {
namespace {

// A step that nobody else notices: of a nanosecond, forth or back.
bool StepClock(bool forth) {
  timex step = {};
  step.modes = ADJ_SETOFFSET | ADJ_NANO;
  step.time.tv_sec = forth ? 0 : -1;
  step.time.tv_usec = forth ? 1 : 999'999'999;
  return ::clock_adjtime(CLOCK_REALTIME, &step) >= 0;
}

// Whether this process has a timer that is armed for a moment and cancelled by whoever sets the
// clock. Source: proc(5), /proc/pid/fdinfo: TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET in octal.
bool HasTimerThatASetClockCancels() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find("settime flags: 03\n") != std::string::npos) return true;
  }
  return false;
}

// Also for who may not set the clock.
TEST(ClockSetWatch, HasATimerThatASetClockCancels) {
  RealClock clock;
  auto loop = EventLoop::Create(clock);
  ASSERT_TRUE(loop.ok());
  EXPECT_FALSE(HasTimerThatASetClockCancels());
  const auto watch = ClockSetWatch::Create(**loop, [] {});
  ASSERT_TRUE(watch.ok()) << watch.error().ToString();
  EXPECT_TRUE(HasTimerThatASetClockCancels());
}

TEST(ClockSetWatch, TellsEachTimeThatTheClockWasSet) {
  RealClock clock;
  auto loop = EventLoop::Create(clock);
  ASSERT_TRUE(loop.ok());
  int told = 0;
  auto watch = ClockSetWatch::Create(**loop, [&] {
    if (++told == 2) return (*loop)->Stop();
    (*loop)->Post([] { StepClock(false); });
  });
  ASSERT_TRUE(watch.ok()) << watch.error().ToString();
  if (!StepClock(true)) GTEST_SKIP() << "skipped: may not set the clock";
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
