#include "agent/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

// A storm of connections must not fill the queue in which a scraper's connection waits too.
constexpr int kBacklog = 1024;
// The share (one in so many) of the process's descriptors that the server may take.
constexpr rlim_t kShareOfDescriptors = 8;
constexpr size_t kLeastConnections = 4;

struct HostAndPort {
  std::string host;
  std::string port;
};

Result<HostAndPort> ParseAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  const char* const end = address.data() + address.size();
  if (colon == std::string::npos || colon == 0 ||
      std::from_chars(address.data() + colon + 1, end, port).ptr != end || port < 0 ||
      port > 65535) {
    return Error::NotApplied(Code::kInvalidArgument, "not host:port: '" + address + "'");
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostAndPort{std::move(host), std::to_string(port)};
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

// If the descriptor is not valid, errno is that of the failed call.
Descriptor ListenAt(const addrinfo& at) {
  Descriptor socket(
      ::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at.ai_protocol));
  if (!socket.valid()) return socket;
  const int yes = 1;
  const int no = 0;
  // SO_REUSEPORT is not used: two agents could then share a port unnoticed.
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  // [::] accepts IPv4 too.
  if (at.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  if (::bind(socket.get(), at.ai_addr, at.ai_addrlen) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return {};
  }
  return socket;
}

int PortOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // The port is at the same place in both families.
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, &address, sizeof(ipv4));
  return ntohs(ipv4.sin_port);
}

}  // namespace

HttpLimits HttpLimitsOfProcess() {
  HttpLimits limits;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    const size_t share = static_cast<size_t>(files.rlim_cur / kShareOfDescriptors);
    limits.connections = std::clamp(share, kLeastConnections, limits.connections);
    limits.connections_per_peer = std::max<size_t>(limits.connections / 2, 1);
  }
  return limits;
}

Result<Descriptor> MakeHttpSocket(const std::string& address) {
  ASSIGN_OR_RETURN(const HostAndPort where, ParseAddress(address));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int looked_up = ::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  std::string why = looked_up == 0 ? "no address" : ::gai_strerror(looked_up);
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    Descriptor socket = ListenAt(*at);
    if (socket.valid()) return socket;
    why = std::strerror(errno);
  }
  return Error::NotApplied(Code::kUnavailable, "cannot listen on " + address + ": " + why);
}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(Descriptor socket, HttpHandlers handlers,
                                                      HttpLimits limits, const Clock& clock,
                                                      Logger& log) {
  std::unique_ptr<HttpServer> server(new HttpServer());
  ASSIGN_OR_RETURN(server->loop_, EventLoop::Create(clock));
  server->port_ = PortOf(socket.get());
  server->connections_ =
      std::make_shared<HttpConnections>(server->loop_, clock, std::move(handlers), limits);
  HttpConnections& connections = *server->connections_;
  server->acceptor_ = std::make_unique<Acceptor>(
      std::move(socket), *server->loop_, AcceptorOptions{},
      AcceptorHandlers{[&connections](Descriptor connection, const sockaddr_storage& peer) {
                         connections.Admit(std::move(connection), HttpPeer(peer));
                       },
                       // If silent clients have the descriptors, the next client gets theirs.
                       [&connections] { return connections.MakeRoom(); },
                       [&log](int sys_errno) {
                         log.LogLimited("http-accept", LogLevel::kWarning,
                                        "cannot accept an HTTP connection",
                                        {{"error", ErrnoName(sys_errno)}});
                       }});
  RETURN_IF_ERROR(server->acceptor_->Start());
  server->thread_ = std::thread([loop = server->loop_] { loop->Run(); });
  return server;
}

HttpServer::~HttpServer() {
  if (!thread_.joinable()) return;
  loop_->Stop();
  thread_.join();
}

}  // namespace volumed
