// Acceptor: takes connections from a listening socket, and copes when there is no descriptor left.
// If the process has none (EMFILE), it first spends the few that it keeps in reserve, and then asks
// its owner to close a silent connection. If that gives none, or if the whole system has none
// (ENFILE), it stops watching the socket, which would stay readable, and tries again by a timer.
// With ENFILE the reserve is not spent: another process might take what this one gives back.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/result.h"

namespace volumed {

struct AcceptorOptions {
  // The acceptor keeps so many descriptors open for connections that come when the process has no
  // other descriptor left. One that was spent is opened again after longest_pause.
  size_t reserved = 0;
  // A pause is twice as long as the one before it, up to longest_pause. The next one is first_pause
  // again once a connection was taken while the reserve was whole.
  Duration first_pause = std::chrono::milliseconds(50);
  Duration longest_pause = std::chrono::seconds(1);
};

// All of them are called while the acceptor takes connections, and must not destroy it.
struct AcceptorHandlers {
  // Takes over a new connection, which is close-on-exec and non-blocking. `peer` is the address of
  // its other end.
  std::function<void(Descriptor connection, const sockaddr_storage& peer)> accepted;
  // Called if a connection waits, the process has no descriptor left, and the reserve is used up.
  // It closes a connection that can be done without, or returns false if there is none.
  std::function<bool()> make_room;
  // Called if no connection could be taken because of this errno, before the acceptor pauses.
  std::function<void(int sys_errno)> paused;
};

// Threads: the loop's thread; another thread only while the loop does not run. attempts(): any.
// Blocks: never by itself, and else as the handlers do.
class Acceptor {
 public:
  // `socket` listens and does not block. `loop` outlives the acceptor.
  Acceptor(Descriptor socket, EventLoop& loop, AcceptorOptions options, AcceptorHandlers handlers);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Accepts from now on, 64 connections at most in one turn of the loop. Errors: those of
  // EventLoop::WatchFd, not applied.
  Status Start();
  // Takes the connections that wait now, but 64 at most. It is for an acceptor that is about to be
  // destroyed; what waits beyond that is lost with its socket.
  void AcceptWaiting() { AcceptSome(); }
  // How often accept(2) was called since the start, with a connection as its result or without.
  uint64_t attempts() const { return attempts_.load(); }

 private:
  void AcceptSome();
  bool SomebodyWaits() const;
  // Gives one descriptor of the reserve back to the process; false if the reserve is empty.
  bool SpendReserve();
  void FillReserve();
  void Pause(int sys_errno);
  void Resume();
  void FillReserveLater();
  Status Watch();

  const Descriptor socket_;
  EventLoop& loop_;
  const AcceptorOptions options_;
  const AcceptorHandlers handlers_;
  std::vector<Descriptor> reserve_;
  Duration pause_;
  TimerId resume_timer_ = 0;
  TimerId fill_timer_ = 0;
  std::atomic<uint64_t> attempts_{0};
};

}  // namespace volumed
