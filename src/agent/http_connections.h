// HttpConnections: the connections of the HTTP server, each a small state machine on one event
// loop. Whatever clients do, their number, their memory and their time are bounded, and a client
// that asks for something finds a place: a new connection may take the place of the one that has
// been silent longest. Source: RFC 9112 section 9.5 (a server may close a connection at any time).
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/http_message.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "metrics/http_server_stats.h"

namespace volumed {

using HttpText = std::shared_ptr<const std::string>;
// Takes an answer. Threads: any. Blocks: never. The text is not null. Only the first call of each
// reply counts, and one after `patience`, or after the connection or the server has gone, does
// nothing.
using HttpReply = std::function<void(HttpText)>;

// A question that the server asks of the program. Both functions are called on the server's thread,
// and neither may block.
struct HttpQuestion {
  // Arranges that `reply` is called, at once or later, on any thread.
  std::function<void(HttpReply reply)> ask;
  // Makes the answer that is sent if `patience` passes without a reply.
  std::function<HttpText()> late;
  Duration patience = std::chrono::seconds(5);
};

// The questions of /metrics, /healthz and /readyz. Of the last two, "" and a text whose first line
// is "ok" have the status 200; any other text is the reason for a 503.
struct HttpHandlers {
  HttpQuestion metrics;    // text exposition format
  HttpQuestion unhealthy;  // "" if healthy, else the reason
  HttpQuestion not_ready;  // as `unhealthy`; a text whose first line is "ok" means ready too
};

struct HttpLimits {
  size_t connections = 64;
  size_t connections_per_peer = 32;
  // A whole request has to arrive within this time after the connection began, or after its first
  // byte if it is a later request.
  Duration header_timeout = std::chrono::seconds(5);
  // How long a connection may wait for its next request.
  Duration idle_timeout = std::chrono::seconds(5);
  // How long a client may take nothing of its answer, and how long a whole answer may take.
  Duration write_stall = std::chrono::seconds(5);
  Duration write_timeout = std::chrono::seconds(60);
  // A client that has been taking its answer for longer than this may have to make room.
  Duration write_grace = std::chrono::seconds(1);
  // The connection is closed after so many answers.
  int requests_per_connection = 100;
  // The limit for all answers together that clients have not taken yet. A single answer may be
  // longer.
  size_t unsent_bytes = size_t{256} << 20;
};

// The unit by which connections are counted: an IPv4 address (also one that is mapped into IPv6),
// or an IPv6 network of 64 bits, since one machine may have all addresses of such a network.
class HttpPeer {
 public:
  explicit HttpPeer(const sockaddr_storage& address);
  friend auto operator<=>(const HttpPeer&, const HttpPeer&) = default;

 private:
  std::string key_;
};

// Threads: the loop's thread; stats() any. Blocks: never.
class HttpConnections : public std::enable_shared_from_this<HttpConnections> {
 public:
  // `clock` outlives this object. REQUIRES: made by std::make_shared.
  HttpConnections(std::shared_ptr<EventLoop> loop, const Clock& clock, HttpHandlers handlers,
                  HttpLimits limits);
  // Closes all connections. A reply that comes later does nothing. REQUIRES: the loop does not run.
  ~HttpConnections();

  // Takes a new connection, which does not block, and reads from it at once; closes it if no other
  // connection may make room for it. A connection for which the program is being asked never has to
  // make room; one that is silent goes first, then one that has been taking its answer for longer
  // than write_grace.
  void Admit(Descriptor socket, const HttpPeer& peer);
  // Closes the connection that has been silent longest, else one that has been taking its answer
  // for longer than write_grace; false if there is neither.
  bool MakeRoom();
  // Counts since the start, and how many connections are open now.
  HttpServerStats stats() const;

 private:
  enum class Phase { kReading, kAsked, kWriting, kDraining };
  using Why = HttpServerStats::Closed;
  struct Connection {
    Connection(Descriptor its_socket, HttpPeer its_peer)
        : socket(std::move(its_socket)), peer(std::move(its_peer)) {}

    Descriptor socket;
    HttpPeer peer;
    Phase phase = Phase::kReading;
    TimePoint since;    // when its phase began
    TimerId timer = 0;  // of its phase
    std::string input;  // what was read and belongs to later requests, or to one that is incomplete
    HttpRequest request;
    uint64_t question = 0;  // the number of the question that is being asked
    int served = 0;
    std::string head;  // the answer that is being written
    HttpText body;
    size_t sent = 0;
    bool keep_alive = false;
  };
  using Id = uint64_t;
  using Table = std::map<Id, Connection>;

  bool MakeRoomFor(const HttpPeer& peer);
  // The connection that has to make room first, among those of `peer`, or among all if it is null.
  std::optional<Id> Victim(const HttpPeer* peer) const;
  const HttpPeer* BusiestPeer() const;
  void Close(Id id, Why why);

  void Enter(Connection& connection, Phase phase);
  void SetTimer(Id id, Connection& connection, Duration timeout, Why why);
  void Watch(Id id, Connection& connection, uint32_t events);

  void ReadRequest(Id id, Connection& connection);
  void OnReadable(Id id);
  // Goes on with the bytes that were read; true if the connection waits for more of them.
  bool TakeRequest(Id id, Connection& connection);
  void Handle(Id id, Connection& connection);
  void Ask(Id id, Connection& connection, const HttpQuestion& question);
  void Replied(Id id, uint64_t question, const HttpText& text);
  void Answer(Id id, Connection& connection, int status, HttpText body);
  bool FitsUnsent(Id id, size_t bytes);
  void Write(Id id);
  void Written(Id id, Connection& connection);
  void Drain(Id id);

  const std::shared_ptr<EventLoop> loop_;
  const Clock& clock_;
  const HttpHandlers handlers_;
  const HttpLimits limits_;
  Table connections_;
  std::map<HttpPeer, size_t> per_peer_;
  size_t unsent_bytes_ = 0;  // the full sizes of the answers that are being written
  Id next_id_ = 1;
  uint64_t next_question_ = 1;
  std::atomic<size_t> open_{0};
  std::atomic<uint64_t> accepted_{0};
  std::array<std::atomic<uint64_t>, HttpServerStats::kClosedCount> closed_{};
};

}  // namespace volumed
