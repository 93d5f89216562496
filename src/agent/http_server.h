// HttpServer: serves /metrics, /healthz and /readyz, on loopback by default, on one thread of its
// own. It answers from values that are kept in memory: a scrape never waits for a filesystem, and a
// client that does nothing, or that is slow, costs no thread.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "agent/http_connections.h"
#include "base/acceptor.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"

namespace volumed {

// The limits for this process. A process that may have few descriptors (RLIMIT_NOFILE) gets fewer
// connections: an eighth of that number, but at least 4 and at most the default, and half of them
// for one peer.
HttpLimits HttpLimitsOfProcess();

// Makes a listening socket at "host:port" or "[host]:port", close-on-exec and non-blocking; port 0
// is any free port. A name may have several addresses: the first at which it can listen is taken.
// Threads: any. Blocks: looks up a host that is a name. Errors, not applied: InvalidArgument
// (another form), Unavailable (the port is taken, this machine does not have the address, or the
// name has none).
Result<Descriptor> MakeHttpSocket(const std::string& address);

// Threads: construction and destruction on one thread; the questions are asked on the server's own.
class HttpServer {
 public:
  // Serves from now on. `socket` listens and does not block. `clock` and `log` outlive the server
  // and every reply. Errors: those of EventLoop::Create and EventLoop::WatchFd, not applied.
  static Result<std::unique_ptr<HttpServer>> Start(Descriptor socket, HttpHandlers handlers,
                                                   HttpLimits limits, const Clock& clock,
                                                   Logger& log);
  // Closes every connection. Blocks: until the server's thread has ended; that thread waits for no
  // client.
  ~HttpServer();

  // The port at which it listens, also if any free one was asked for; 0 if the system does not say.
  int port() const { return port_; }
  // Threads: any, also for accept_attempts(), which counts the calls of accept(2).
  HttpServerStats stats() const { return connections_->stats(); }
  uint64_t accept_attempts() const { return acceptor_->attempts(); }

 private:
  HttpServer() = default;

  std::shared_ptr<EventLoop> loop_;
  std::shared_ptr<HttpConnections> connections_;
  std::unique_ptr<Acceptor> acceptor_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace volumed
