#include "agent/signals.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace volumed {

Result<std::unique_ptr<Signals>> Signals::Create(EventLoop& loop, SignalHandlers handlers) {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  if (const int error = pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
    return Error::FromErrno(error, "block signals", Outcome::kNotApplied);
  }
  ASSIGN_OR_RETURN(
      Descriptor descriptor,
      DescriptorFrom(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "make a signal descriptor"));
  std::unique_ptr<Signals> signals(new Signals(std::move(descriptor), loop, std::move(handlers)));
  RETURN_IF_ERROR(loop.WatchFd(signals->descriptor_.get(), EPOLLIN,
                               [raw = signals.get()](uint32_t) { raw->ReadAll(); }));
  return signals;
}

Signals::Signals(Descriptor descriptor, EventLoop& loop, SignalHandlers handlers)
    : descriptor_(std::move(descriptor)), loop_(loop), handlers_(std::move(handlers)) {}

Signals::~Signals() { loop_.UnwatchFd(descriptor_.get()); }

void Signals::ReadAll() {
  signalfd_siginfo info{};
  while (::read(descriptor_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGHUP) {
      handlers_.reload();
    } else if (!std::exchange(stops_, true)) {
      handlers_.stop();
    }
  }
}

}  // namespace volumed
