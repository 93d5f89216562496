#include "agent/http_server.h"

#include <httplib.h>

#include <charconv>
#include <chrono>
#include <utility>

namespace volumed {
namespace {

// Scrapers and probes are few; more would be somebody's mistake, and memory.
constexpr size_t kHttpThreads = 4;
constexpr const char* kTextFormat = "text/plain; version=0.0.4; charset=utf-8";

void AnswerProbe(const std::string& reason, httplib::Response& response) {
  response.status = reason.empty() ? 200 : 503;
  response.set_content(reason.empty() ? "ok\n" : reason + "\n", "text/plain");
}

}  // namespace

HttpServer::HttpServer(std::unique_ptr<httplib::Server> server, int port)
    : server_(std::move(server)), port_(port) {
  thread_ = std::thread([raw = server_.get()] { raw->listen_after_bind(); });
  // stop() is without effect before the thread listens, and the library tells of that by no event.
  while (!server_->is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

HttpServer::~HttpServer() {
  server_->stop();
  thread_.join();
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                      HttpHandlers handlers) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos ||
      std::from_chars(address.data() + colon + 1, address.data() + address.size(), port).ec !=
          std::errc() ||
      port < 0 || port > 65535) {
    return Error::NotApplied(Code::kInvalidArgument, "not host:port: '" + address + "'");
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  auto server = std::make_unique<httplib::Server>();
  server->new_task_queue = [] { return new httplib::ThreadPool(kHttpThreads); };
  // The library's default is SO_REUSEPORT, with which two agents would share a port in silence.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server->set_keep_alive_max_count(100);
  server->set_read_timeout(std::chrono::seconds(5));
  server->set_payload_max_length(0);
  server->Get("/metrics", [metrics = std::move(handlers.metrics)](const httplib::Request&,
                                                                  httplib::Response& response) {
    response.set_content(metrics(), kTextFormat);
  });
  server->Get("/healthz", [unhealthy = std::move(handlers.unhealthy)](const httplib::Request&,
                                                                      httplib::Response& response) {
    AnswerProbe(unhealthy(), response);
  });
  server->Get("/readyz", [not_ready = std::move(handlers.not_ready)](const httplib::Request&,
                                                                     httplib::Response& response) {
    AnswerProbe(not_ready(), response);
  });
  if (port == 0) {
    port = server->bind_to_any_port(host);
  } else if (!server->bind_to_port(host, port)) {
    port = -1;
  }
  if (port < 0) {
    return Error::NotApplied(Code::kUnavailable, "cannot listen on " + address);
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(server), port));
}

}  // namespace volumed
