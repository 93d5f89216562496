// HttpServer: /metrics, /healthz and /readyz, on loopback by default. It answers from values that
// are kept in memory: a scrape never waits for a filesystem.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/result.h"

namespace httplib {
class Server;
}

namespace volumed {

struct HttpHandlers {
  std::function<std::string()> metrics;    // text exposition format
  std::function<std::string()> unhealthy;  // "" when healthy, else the reason
  std::function<std::string()> not_ready;  // "" when ready, else the reason
};

// Threads: construction and destruction on one thread; the handlers are called on the server's own.
class HttpServer {
 public:
  // Binds at once. Errors, not applied: InvalidArgument (address), Unavailable (port in use).
  static Result<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                   HttpHandlers handlers);
  ~HttpServer();

  int port() const { return port_; }

 private:
  HttpServer(std::unique_ptr<httplib::Server> server, int port);

  std::unique_ptr<httplib::Server> server_;
  const int port_;
  std::thread thread_;
};

}  // namespace volumed
