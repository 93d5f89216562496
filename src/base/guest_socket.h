// GuestSocket: the way into a server that speaks HTTP/2 over a unix socket, and whose library
// neither tells a peer's credentials nor adopts a listening socket. It takes the connections, asks
// who is at the other end, turns away whoever may not connect, holds the rest to the limits, and
// gives each on once it has begun to speak.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/acceptor.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/peer_credentials.h"
#include "base/result.h"
#include "base/stream_guests.h"

namespace volumed {

struct GuestSocketHooks {
  // What the peer is taken for; nullopt: it may not connect. It may block.
  std::function<std::optional<GuestClass>(const PeerCredentials&)> classify;
  // As StreamGuests says.
  StreamGuests::Serve serve;
};

// Threads: the loop's thread, or any thread before the loop runs. A connection is closed without an
// answer, and that is logged, if its peer may not connect, or if the limits are reached and no
// silent connection can make room.
class GuestSocket {
 public:
  // `what` names a connection in the log: "control connection". The acceptor keeps `reserved`
  // descriptors for when the process has no other. `loop` and `log` outlive this object. No
  // connection is taken before ListenAt().
  GuestSocket(EventLoop& loop, Logger& log, std::string what, size_t reserved, GuestLimits limits,
              GuestSocketHooks hooks);
  // Closes the silent connections. Those that were given on are not its business.
  ~GuestSocket() = default;
  GuestSocket(const GuestSocket&) = delete;
  GuestSocket& operator=(const GuestSocket&) = delete;

  // Accepts connections from now on at this socket, which listens and does not block, and no longer
  // at the one before it; up to 64 connections that wait at the old socket are still taken. Blocks:
  // for each connection as `classify`. Errors: those of EventLoop::WatchFd, not applied; the old
  // socket stays then.
  Status ListenAt(Descriptor socket);
  // Takes no connection from now on.
  void Close() { acceptor_.reset(); }

 private:
  void Admit(Descriptor connection);

  EventLoop& loop_;
  Logger& log_;
  const std::string what_;
  const size_t reserved_;
  const GuestSocketHooks hooks_;
  StreamGuests guests_;
  std::unique_ptr<Acceptor> acceptor_;
};

}  // namespace volumed
