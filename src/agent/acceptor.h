// Acceptor: takes connections from a listening socket, and copes when the process or the system has
// no descriptor left. It first spends the few descriptors that it keeps in reserve, and then asks
// its owner to close a silent connection. If that gives none, it stops watching the socket, which
// would stay readable, and tries again by a timer.
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
  // Descriptors that are kept for connections which come when no other descriptor is left.
  size_t reserved = 0;
  Duration first_pause = std::chrono::milliseconds(50);
  Duration longest_pause = std::chrono::seconds(1);
};

struct AcceptorHandlers {
  // A new connection, close-on-exec and non-blocking, and the address of its other end.
  std::function<void(Descriptor connection, const sockaddr_storage& peer)> accepted;
  // Called if no descriptor is left and the reserve is used up. Closes a connection that can be
  // done without; returns false if there is no such connection.
  std::function<bool()> make_room;
  // No connection could be taken, because of this errno; the acceptor pauses.
  std::function<void(int sys_errno)> paused;
};

// Threads: the loop's thread; another thread only while the loop does not run. attempts(): any.
class Acceptor {
 public:
  // `socket` listens and does not block. `loop` outlives the acceptor.
  Acceptor(Descriptor socket, EventLoop& loop, AcceptorOptions options, AcceptorHandlers handlers);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Accepts from now on. Errors: those of EventLoop::WatchFd.
  Status Start();
  // Takes the connections that wait now. It is for an acceptor that is about to be destroyed.
  void AcceptWaiting() { AcceptSome(); }
  // How often accept(2) was called since the start.
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
