#include "base/clock_set_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace volumed {

Result<std::unique_ptr<ClockSetWatch>> ClockSetWatch::Create(EventLoop& loop,
                                                             std::function<void()> was_set) {
  ASSIGN_OR_RETURN(
      Descriptor timer,
      DescriptorFrom(::timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK), "make a timer"));
  std::unique_ptr<ClockSetWatch> watch(
      new ClockSetWatch(std::move(timer), loop, std::move(was_set)));
  RETURN_IF_ERROR(watch->Arm());
  RETURN_IF_ERROR(
      loop.WatchFd(watch->timer_.get(), EPOLLIN, [raw = watch.get()](uint32_t) { raw->Ready(); }));
  return watch;
}

ClockSetWatch::ClockSetWatch(Descriptor timer, EventLoop& loop, std::function<void()> was_set)
    : timer_(std::move(timer)), loop_(loop), was_set_(std::move(was_set)) {}

ClockSetWatch::~ClockSetWatch() { loop_.UnwatchFd(timer_.get()); }

Status ClockSetWatch::Arm() {
  // The timer itself is never to expire: the year 2255.
  constexpr time_t kNever = 9'000'000'000;
  itimerspec when = {};
  when.it_value.tv_sec = kNever;
  if (::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when,
                        nullptr) == 0) {
    return OkStatus();
  }
  return Error::FromErrno(errno, "watch the wall clock", Outcome::kNotApplied);
}

void ClockSetWatch::Ready() {
  uint64_t expired = 0;
  const ssize_t got = ::read(timer_.get(), &expired, sizeof(expired));
  if (got < 0 && errno == EAGAIN) return;
  // ECANCELED: the clock was set. A timer that is armed stays so, and is told of the next time.
  was_set_();
}

}  // namespace volumed
