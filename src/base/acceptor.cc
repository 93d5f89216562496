#include "base/acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace volumed {
namespace {

// The limit for one turn of the loop, so that a storm of connections leaves room for other work on
// it.
constexpr int kAcceptsPerTurn = 64;

// Whether the error of accept(2) concerns only this connection, and not the process or the socket.
// Source: accept(2), "Error handling".
bool IsOfTheConnection(int sys_errno) {
  switch (sys_errno) {
    case EINTR:
    case ECONNABORTED:
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case EPERM:
      return true;
    default:
      return false;
  }
}

}  // namespace

Acceptor::Acceptor(Descriptor socket, EventLoop& loop, AcceptorOptions options,
                   AcceptorHandlers handlers)
    : socket_(std::move(socket)),
      loop_(loop),
      options_(options),
      handlers_(std::move(handlers)),
      pause_(options_.first_pause) {
  FillReserve();
}

Acceptor::~Acceptor() {
  loop_.Cancel(resume_timer_);
  loop_.Cancel(fill_timer_);
  loop_.UnwatchFd(socket_.get());
}

Status Acceptor::Start() { return Watch(); }

Status Acceptor::Watch() {
  return loop_.WatchFd(socket_.get(), EPOLLIN, [this](uint32_t) { AcceptSome(); });
}

void Acceptor::AcceptSome() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    attempts_.fetch_add(1);
    Descriptor connection(::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                                    SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.valid()) {
      if (reserve_.size() == options_.reserved) pause_ = options_.first_pause;
      handlers_.accepted(std::move(connection), peer);
      continue;
    }
    const int sys_errno = errno;
    if (sys_errno == EAGAIN) return;
    if (IsOfTheConnection(sys_errno)) continue;
    if (sys_errno == EMFILE) {
      // accept(2) takes a descriptor before it looks whether a connection waits. If none waits,
      // making room would needlessly close a connection, perhaps the one that was accepted last.
      if (!SomebodyWaits()) return;
      if (SpendReserve() || handlers_.make_room()) continue;
    }
    return Pause(sys_errno);
  }
}

bool Acceptor::SomebodyWaits() const {
  pollfd listening{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&listening, 1, 0) > 0;
}

// With ENFILE the whole system has no descriptor left: one that this process gives back may be
// taken by another process.
bool Acceptor::SpendReserve() {
  if (reserve_.empty()) return false;
  reserve_.pop_back();
  FillReserveLater();
  return true;
}

void Acceptor::FillReserve() {
  while (reserve_.size() < options_.reserved) {
    Descriptor kept(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!kept.valid()) return;
    reserve_.push_back(std::move(kept));
  }
}

void Acceptor::FillReserveLater() {
  if (fill_timer_ != 0) return;
  fill_timer_ = loop_.PostAfter(options_.longest_pause, [this] {
    fill_timer_ = 0;
    FillReserve();
    if (reserve_.size() < options_.reserved) FillReserveLater();
  });
}

void Acceptor::Pause(int sys_errno) {
  loop_.UnwatchFd(socket_.get());
  handlers_.paused(sys_errno);
  resume_timer_ = loop_.PostAfter(pause_, [this] {
    resume_timer_ = 0;
    Resume();
  });
  pause_ = std::min(pause_ * 2, options_.longest_pause);
}

void Acceptor::Resume() {
  // The reserve is filled first, since it is for the connections that matter most.
  FillReserve();
  if (const Status watched = Watch(); !watched.ok()) Pause(watched.error().sys_errno());
}

}  // namespace volumed
