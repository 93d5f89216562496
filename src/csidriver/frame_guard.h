// FrameGuard: stands between the connections of the CSI driver and gRPC, and holds back what would
// take memory there without a bound: calls that are reset as soon as they are begun.
//
// gRPC counts the calls of a connection that are open, and one that is reset is open no more, while
// all that was made for it is still to be taken down. Nothing in gRPC 1.51 bounds those. So each
// byte goes through here, and the headers of the frames are looked at: a peer may reset some calls
// at once, and then so many in a second. If he resets more, nothing is read from him until his
// share of time has passed: his own calls wait in the buffer of his socket, nobody else's do, and
// no call is refused for it. gRPC also keeps the answer to each ping for a peer that does not read,
// so nothing more is read from one who has some pings unanswered. Source: CVE-2023-44487,
// CVE-2025-8671 (calls that the peer makes the server reset), CVE-2019-9512 (pings).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"
#include "csidriver/csi_admission.h"
#include "csidriver/frame_scanner.h"

namespace volumed {

struct FrameLimits {
  // Calls of one connection that are open; gRPC is to be told the same number, and refuses one
  // more. A connection that has twice as many does not keep to HTTP/2, and is closed.
  size_t open_calls = 256;
  // Calls of one peer that end by a reset, be it his own or the server's, and settings that he
  // sends: at once, and each second after that.
  double resets_at_once = 1000;
  double resets_per_second = 200;
  // Pings of a connection that have no answer yet; gRPC's clients send one at a time.
  size_t unanswered_pings = 64;
};

// Threads: any. Blocks: never, but for the destructor.
class FrameGuard {
 public:
  // Descriptors that the process has of each connection.
  static constexpr size_t kDescriptors = 3;

  // `many_have_ended` is called on a thread of this object each time that another thousand calls
  // have ended, so that memory may be given back; empty: nobody is told. The logger outlives this
  // object.
  FrameGuard(Logger& log, FrameLimits limits, std::function<void()> many_have_ended);
  // What gRPC has sent is still passed on, for a second at most; then all connections are closed.
  // Blocks: so long.
  ~FrameGuard();
  FrameGuard(const FrameGuard&) = delete;
  FrameGuard& operator=(const FrameGuard&) = delete;

  // The other end, which gRPC is to have in the connection's place. When one of the two is closed,
  // so is the other. Errors (NotApplied): ResourceExhausted without descriptors to spare; the
  // connection is closed then.
  Result<Descriptor> Take(Descriptor connection, const CsiPeer& peer);

 private:
  using Id = uint64_t;
  // A process of root's has its own, as in CsiAdmission.
  using Who = std::pair<uid_t, pid_t>;
  struct Way {
    FrameScanner scanner;
    std::string waits;  // is read, and not taken by the other end yet
  };
  struct Link {
    Descriptor peer;
    Descriptor server;
    Who who;
    Way in{FrameScanner(kPreface), {}};  // from the peer
    Way out{FrameScanner(0), {}};
    std::unordered_set<uint32_t> open;  // streams that nobody has ended
    size_t pings = 0;                   // whose answer the server has not sent
    bool is_held = false;
    uint32_t peer_events = 0;  // that are waited for
    uint32_t server_events = 0;
  };
  struct Allowance {
    double resets = 0;
    TimePoint at;
  };
  enum class Moved { kSome, kNothing, kEnded };

  static constexpr size_t kPreface = 24;  // bytes that a client sends before the first frame

  void Begin(Id id, std::unique_ptr<Link> link);
  // Something is ready at an end of the link.
  void Ready(Id id, uint32_t events);
  // Passes on what can be; false: the link has ended.
  bool Pump(Id id, Link& link);
  Moved Pass(Link& link, bool is_in);
  // Whether bytes of its peer may be read now.
  bool IsRead(const Link& link) const {
    return !link.is_held && link.pings <= limits_.unanswered_pings;
  }
  void SawOfPeer(Link& link, const FrameHeader& frame);
  void SawOfServer(Link& link, const FrameHeader& frame);
  bool Watch(Id id, Link& link);
  bool WatchEnd(Id id, const Descriptor& end, uint32_t wanted, uint32_t& events);
  void Charge(Link& link);
  // Holds the link if its peer has no resets left, until he has.
  void HoldIfDue(Id id, Link& link);
  double ResetsOf(const Who& who);
  void CountEnded(size_t calls);
  void Drop(Id id);

  Logger& log_;
  const FrameLimits limits_;
  const std::function<void()> many_have_ended_;
  const RealClock clock_;
  std::unique_ptr<EventLoop> loop_;  // null: there were no descriptors for it
  // All below: the loop's thread.
  std::map<Id, std::unique_ptr<Link>> links_;
  std::map<Who, Allowance> allowances_;
  Id next_ = 1;
  size_t ended_ = 0;  // calls since `many_have_ended_` was told
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace volumed
