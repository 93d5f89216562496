#include "agent/http_connections.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace volumed {
namespace {

constexpr std::string_view kMetricsFormat = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPlainText = "text/plain";
constexpr size_t kIpv6NetworkBytes = 8;
constexpr size_t kLeastToCompress = 1024;
// How long, and how much, a refused client may still send before it is cut off: if input were left
// unread, the kernel would discard the answer.
constexpr auto kDrainTime = std::chrono::seconds(1);
constexpr size_t kDrainBytes = 64 * 1024;

HttpText Text(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

bool WouldBlock(int sys_errno) { return sys_errno == EAGAIN || sys_errno == EINTR; }

int Seconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(duration).count());
}

}  // namespace

HttpPeer::HttpPeer(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, &address, sizeof(ipv6));
    const auto* bytes = reinterpret_cast<const char*>(ipv6.sin6_addr.s6_addr);
    if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
      key_.assign(bytes + 12, 4);
    } else {
      key_.assign(bytes, kIpv6NetworkBytes);
    }
    return;
  }
  sockaddr_in ipv4{};
  std::memcpy(&ipv4, &address, sizeof(ipv4));
  key_.assign(reinterpret_cast<const char*>(&ipv4.sin_addr), sizeof(ipv4.sin_addr));
}

HttpConnections::HttpConnections(std::shared_ptr<EventLoop> loop, const Clock& clock,
                                 HttpHandlers handlers, HttpLimits limits)
    : loop_(std::move(loop)), clock_(clock), handlers_(std::move(handlers)), limits_(limits) {}

HttpConnections::~HttpConnections() {
  for (auto& [id, connection] : connections_) {
    loop_->Cancel(connection.timer);
    loop_->UnwatchFd(connection.socket.get());
  }
}

HttpServerStats HttpConnections::stats() const {
  HttpServerStats stats;
  stats.open = open_.load();
  stats.accepted = accepted_.load();
  for (size_t i = 0; i < stats.closed.size(); ++i) stats.closed[i] = closed_[i].load();
  return stats;
}

// ---- who has a place ----------------------------------------------------------------------------

void HttpConnections::Admit(Descriptor socket, const HttpPeer& peer) {
  accepted_.fetch_add(1);
  if (!MakeRoomFor(peer)) {
    closed_[static_cast<size_t>(Why::kRefused)].fetch_add(1);
    return;  // the socket closes here
  }
  const Id id = next_id_++;
  Connection& admitted =
      connections_.emplace(id, Connection(std::move(socket), peer)).first->second;
  ++per_peer_[peer];
  open_.store(connections_.size());
  ReadRequest(id, admitted);
}

bool HttpConnections::MakeRoomFor(const HttpPeer& peer) {
  const auto count = per_peer_.find(peer);
  if (count != per_peer_.end() && count->second >= limits_.connections_per_peer) {
    const std::optional<Id> victim = Victim(&peer);
    if (!victim) return false;
    Close(*victim, Why::kMadeRoom);
  }
  if (connections_.size() < limits_.connections) return true;
  // The peer with most places gives one up, if one of its connections is silent.
  std::optional<Id> victim = Victim(BusiestPeer());
  if (!victim) victim = Victim(nullptr);
  if (!victim) return false;
  Close(*victim, Why::kMadeRoom);
  return true;
}

bool HttpConnections::MakeRoom() {
  const std::optional<Id> victim = Victim(nullptr);
  if (victim) Close(*victim, Why::kMadeRoom);
  return victim.has_value();
}

const HttpPeer* HttpConnections::BusiestPeer() const {
  const auto busiest =
      std::max_element(per_peer_.begin(), per_peer_.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return busiest == per_peer_.end() ? nullptr : &busiest->first;
}

// Silent connections go first, the one that was silent longest before the others; then those that
// have been taking an answer for long. A connection that waits for the program's reply never goes.
std::optional<HttpConnections::Id> HttpConnections::Victim(const HttpPeer* peer) const {
  const TimePoint now = clock_.Now();
  std::optional<Id> silent;
  std::optional<Id> slow;
  const auto older = [&](const Connection& connection, const std::optional<Id>& found) {
    return !found || connection.since < connections_.at(*found).since;
  };
  for (const auto& [id, connection] : connections_) {
    if (peer != nullptr && connection.peer != *peer) continue;
    switch (connection.phase) {
      case Phase::kReading:
      case Phase::kDraining:
        if (older(connection, silent)) silent = id;
        break;
      case Phase::kWriting:
        if (now - connection.since >= limits_.write_grace && older(connection, slow)) slow = id;
        break;
      case Phase::kAsked:
        break;
    }
  }
  return silent ? silent : slow;
}

void HttpConnections::Close(Id id, Why why) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  loop_->Cancel(connection.timer);
  loop_->UnwatchFd(connection.socket.get());
  if (connection.body) unsent_bytes_ -= connection.body->size();
  const auto count = per_peer_.find(connection.peer);
  if (--count->second == 0) per_peer_.erase(count);
  // The end is counted first, so that whoever sees the connection end finds it counted.
  closed_[static_cast<size_t>(why)].fetch_add(1);
  open_.store(connections_.size() - 1);
  connections_.erase(found);
}

// ---- what all phases have -----------------------------------------------------------------------

void HttpConnections::Enter(Connection& connection, Phase phase) {
  loop_->UnwatchFd(connection.socket.get());
  loop_->Cancel(connection.timer);
  connection.phase = phase;
  connection.since = clock_.Now();
}

void HttpConnections::SetTimer(Id id, Connection& connection, Duration timeout, Why why) {
  loop_->Cancel(connection.timer);
  connection.timer = loop_->PostAfter(timeout, [weak = weak_from_this(), id, why] {
    if (const auto self = weak.lock()) self->Close(id, why);
  });
}

void HttpConnections::Watch(Id id, Connection& connection, uint32_t events) {
  const Status watched = loop_->WatchFd(connection.socket.get(), events, [this, id](uint32_t) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    switch (found->second.phase) {
      case Phase::kReading:
        return OnReadable(id);
      case Phase::kWriting:
        return Write(id);
      case Phase::kDraining:
        return Drain(id);
      case Phase::kAsked:
        return;
    }
  });
  if (!watched.ok()) Close(id, Why::kRefused);  // there was no memory for another watch
}

// ---- a request ----------------------------------------------------------------------------------

void HttpConnections::ReadRequest(Id id, Connection& connection) {
  const bool is_next = connection.served > 0 && connection.input.empty();
  Enter(connection, Phase::kReading);
  SetTimer(id, connection, is_next ? limits_.idle_timeout : limits_.header_timeout,
           is_next ? Why::kIdle : Why::kHeaderTimeout);
  // Usually the request has come with its connection, or behind the request before it.
  if (!TakeRequest(id, connection)) return;
  Watch(id, connection, EPOLLIN);
  if (connections_.contains(id)) OnReadable(id);
}

void HttpConnections::OnReadable(Id id) {
  Connection& connection = connections_.at(id);
  const size_t before = connection.input.size();
  connection.input.resize(kMaxHttpHeadBytes);
  const ssize_t got = ::recv(connection.socket.get(), connection.input.data() + before,
                             connection.input.size() - before, 0);
  const int sys_errno = errno;
  connection.input.resize(before + (got > 0 ? static_cast<size_t>(got) : 0));
  if (got < 0 && WouldBlock(sys_errno)) return;
  if (got <= 0) return Close(id, Why::kDone);
  if (before == 0 && connection.served > 0) {
    SetTimer(id, connection, limits_.header_timeout, Why::kHeaderTimeout);
  }
  TakeRequest(id, connection);
}

bool HttpConnections::TakeRequest(Id id, Connection& connection) {
  HttpParsed parsed = ParseHttpRequest(connection.input);
  switch (parsed.state) {
    case HttpParsed::State::kIncomplete:
      return true;
    case HttpParsed::State::kRefused:
      connection.request = HttpRequest();
      Answer(id, connection, parsed.refusal, Text("bad request\n"));
      return false;
    case HttpParsed::State::kComplete:
      connection.input.erase(0, parsed.consumed);
      connection.request = std::move(parsed.request);
      Handle(id, connection);
      return false;
  }
  return false;
}

void HttpConnections::Handle(Id id, Connection& connection) {
  const HttpRequest& request = connection.request;
  if (request.method != "GET" && request.method != "HEAD") {
    return Answer(id, connection, 405, Text("only GET and HEAD\n"));
  }
  if (request.path == "/metrics") return Ask(id, connection, handlers_.metrics);
  if (request.path == "/healthz") return Ask(id, connection, handlers_.unhealthy);
  if (request.path == "/readyz") return Ask(id, connection, handlers_.not_ready);
  Answer(id, connection, 404, Text("not found\n"));
}

void HttpConnections::Ask(Id id, Connection& connection, const HttpQuestion& question) {
  // While the program is asked, the connection is not watched, since its client has nothing to say.
  Enter(connection, Phase::kAsked);
  const uint64_t number = next_question_++;
  connection.question = number;
  connection.timer =
      loop_->PostAfter(question.patience, [weak = weak_from_this(), id, number, &question] {
        if (const auto self = weak.lock()) self->Replied(id, number, question.late());
      });
  question.ask([weak = weak_from_this(), loop = loop_, id, number](HttpText text) {
    loop->Post([weak, id, number, text = std::move(text)] {
      if (const auto self = weak.lock()) self->Replied(id, number, text);
    });
  });
}

void HttpConnections::Replied(Id id, uint64_t question, const HttpText& text) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (connection.phase != Phase::kAsked || connection.question != question) return;
  if (connection.request.path == "/metrics") return Answer(id, connection, 200, text);
  if (text->empty()) return Answer(id, connection, 200, Text("ok\n"));
  if (text->starts_with("ok\n")) return Answer(id, connection, 200, text);
  Answer(id, connection, 503, Text(*text + "\n"));
}

// ---- an answer ----------------------------------------------------------------------------------

void HttpConnections::Answer(Id id, Connection& connection, int status, HttpText body) {
  const bool is_metrics = status == 200 && connection.request.path == "/metrics";
  HttpResponseHead head;
  head.gzip = connection.request.accepts_gzip && body->size() >= kLeastToCompress;
  if (head.gzip) {
    std::string compressed = Gzip(*body);
    head.gzip = !compressed.empty();
    if (head.gzip) body = Text(std::move(compressed));
  }
  if (!FitsUnsent(id, body->size())) {
    status = 503;
    head.gzip = false;
    body = Text("too many clients that do not take their answers\n");
  }
  head.status = status;
  head.content_type = is_metrics && status == 200 ? kMetricsFormat : kPlainText;
  head.content_length = body->size();
  ++connection.served;
  head.requests_left = limits_.requests_per_connection - connection.served;
  head.keep_alive = connection.request.keep_alive && head.requests_left > 0;
  head.keep_alive_seconds = Seconds(limits_.idle_timeout);
  connection.keep_alive = head.keep_alive;
  connection.head = FormatHttpHead(head);
  connection.body = connection.request.method == "HEAD" ? Text("") : std::move(body);
  connection.sent = 0;
  unsent_bytes_ += connection.body->size();
  Enter(connection, Phase::kWriting);
  SetTimer(id, connection, limits_.write_stall, Why::kWriteTimeout);
  Watch(id, connection, EPOLLOUT);
  if (connections_.contains(id)) Write(id);
}

bool HttpConnections::FitsUnsent(Id id, size_t bytes) {
  while (unsent_bytes_ > 0 && unsent_bytes_ + bytes > limits_.unsent_bytes) {
    const TimePoint now = clock_.Now();
    const auto slow =
        std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
          const Connection& other = entry.second;
          return entry.first != id && other.phase == Phase::kWriting && !other.body->empty() &&
                 now - other.since >= limits_.write_grace;
        });
    if (slow == connections_.end()) return false;
    Close(slow->first, Why::kMadeRoom);
  }
  return true;
}

void HttpConnections::Write(Id id) {
  Connection& connection = connections_.at(id);
  const size_t total = connection.head.size() + connection.body->size();
  while (connection.sent < total) {
    const size_t of_head = std::min(connection.sent, connection.head.size());
    const size_t of_body = connection.sent - of_head;
    iovec parts[] = {
        {connection.head.data() + of_head, connection.head.size() - of_head},
        {const_cast<char*>(connection.body->data()) + of_body, connection.body->size() - of_body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return Close(id, Why::kDone);
    connection.sent += static_cast<size_t>(sent);
    const Duration left = limits_.write_timeout - (clock_.Now() - connection.since);
    SetTimer(id, connection, std::min(limits_.write_stall, std::max(left, Duration::zero())),
             Why::kWriteTimeout);
  }
  Written(id, connection);
}

void HttpConnections::Written(Id id, Connection& connection) {
  unsent_bytes_ -= connection.body->size();
  connection.body.reset();
  connection.head.clear();
  // The next request gets a task of its own: a client that sends many requests at once must not
  // keep the others waiting, nor use up the stack.
  if (connection.keep_alive) {
    Enter(connection, Phase::kReading);
    loop_->Post([weak = weak_from_this(), id] {
      const auto self = weak.lock();
      if (!self) return;
      const auto found = self->connections_.find(id);
      if (found != self->connections_.end()) self->ReadRequest(id, found->second);
    });
    return;
  }
  ::shutdown(connection.socket.get(), SHUT_WR);
  Enter(connection, Phase::kDraining);
  SetTimer(id, connection, kDrainTime, Why::kDone);
  connection.sent = 0;
  Watch(id, connection, EPOLLIN);
}

void HttpConnections::Drain(Id id) {
  Connection& connection = connections_.at(id);
  char buffer[4096];
  const ssize_t got = ::recv(connection.socket.get(), buffer, sizeof(buffer), 0);
  if (got < 0 && WouldBlock(errno)) return;
  connection.sent += got > 0 ? static_cast<size_t>(got) : 0;
  if (got <= 0 || connection.sent > kDrainBytes) Close(id, Why::kDone);
}

}  // namespace volumed
