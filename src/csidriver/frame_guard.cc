#include "csidriver/frame_guard.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace volumed {
namespace {

// Read at once: what a peer sends beyond his share is so much at most.
constexpr size_t kReadBytes = 8192;
// Reads of one link in its turn, so that the others have theirs.
constexpr int kReadsInATurn = 16;
// The last that gRPC has said before it closed, which fits into the buffer of its socket.
constexpr int kLastReads = 64;
constexpr size_t kKnownAllowances = 64;
// Calls after which it is worth while to give memory back.
constexpr size_t kBurst = 1000;
constexpr uint32_t kReadable = EPOLLIN;
constexpr std::chrono::seconds kLastBytes{1};
constexpr std::chrono::milliseconds kShortestHold{20};

double SecondsOf(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

FrameGuard::FrameGuard(Logger& log, FrameLimits limits, std::function<void()> many_have_ended)
    : log_(log), limits_(limits), many_have_ended_(std::move(many_have_ended)) {
  Result<std::unique_ptr<EventLoop>> loop = EventLoop::Create(clock_);
  if (!loop.ok()) {
    log_.Error("CSI connections cannot be taken", {{"error", loop.error()}});
    return;
  }
  loop_ = std::move(*loop);
  thread_ = std::thread([this] { loop_->Run(); });
}

FrameGuard::~FrameGuard() {
  if (!loop_) return;
  loop_->Post([this] {
    is_ending_ = true;
    if (links_.empty()) return loop_->Stop();
    loop_->PostAfter(kLastBytes, [this] { loop_->Stop(); });
  });
  thread_.join();
}

Result<Descriptor> FrameGuard::Take(Descriptor connection, const CsiPeer& peer) {
  if (!loop_) return Error::NotApplied(Code::kResourceExhausted, "there is no event loop");
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0) {
    return Error::FromErrno(errno, "make a pair of sockets", Outcome::kNotApplied);
  }
  auto link = std::make_shared<std::unique_ptr<Link>>(std::make_unique<Link>());
  (*link)->peer = std::move(connection);
  (*link)->server = Descriptor(pair[0]);
  (*link)->who = {peer.uid, peer.uid == 0 ? peer.pid : 0};
  loop_->Post([this, link] { Begin(next_++, std::move(*link)); });
  return Descriptor(pair[1]);
}

void FrameGuard::Begin(Id id, std::unique_ptr<Link> link) {
  Link& begun = *links_.emplace(id, std::move(link)).first->second;
  if (!Watch(id, begun)) Drop(id);
}

void FrameGuard::Ready(Id id, uint32_t events) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  Link& link = *found->second;
  if (!Pump(id, link)) return Drop(id);
  // An end that has gone is told again and again, though nothing is to be read from it now. Whoever
  // would read the answers is not there any more, or gRPC will send no more of them.
  const bool is_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  const bool is_read = IsRead(link) && link.in.waits.empty() && link.out.waits.empty();
  if ((is_gone && !is_read) || !Watch(id, link)) Drop(id);
}

bool FrameGuard::Pump(Id id, Link& link) {
  Moved moved = Moved::kSome;
  for (int i = 0; i < kReadsInATurn && moved == Moved::kSome; ++i) moved = Pass(link, false);
  const bool is_answered = moved != Moved::kEnded;
  moved = Moved::kSome;
  for (int i = 0; i < kReadsInATurn && moved == Moved::kSome && is_answered; ++i) {
    HoldIfDue(id, link);
    moved = Pass(link, true);
  }
  HoldIfDue(id, link);
  const bool is_too_much = link.open.size() > 2 * limits_.open_calls;
  if (is_too_much) {
    log_.LogLimited("too many calls open", LogLevel::kWarning,
                    "CSI connection closed: it has more calls open than it was told it may",
                    {{"uid", link.who.first}, {"open", link.open.size()}});
  }
  if (is_answered && moved != Moved::kEnded && !is_too_much) return true;
  moved = Moved::kSome;
  for (int i = 0; i < kLastReads && moved == Moved::kSome; ++i) moved = Pass(link, false);
  return false;
}

FrameGuard::Moved FrameGuard::Pass(Link& link, bool is_in) {
  Way& way = is_in ? link.in : link.out;
  const int from = (is_in ? link.peer : link.server).get();
  const int to = (is_in ? link.server : link.peer).get();
  if (way.waits.empty()) {
    if (is_in && !IsRead(link)) return Moved::kNothing;
    std::array<char, kReadBytes> bytes;
    const ssize_t got = ::recv(from, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Moved::kNothing;
    if (got <= 0) return Moved::kEnded;
    way.waits.assign(bytes.data(), static_cast<size_t>(got));
    way.scanner.Scan(way.waits, [&](const FrameHeader& frame) {
      is_in ? SawOfPeer(link, frame) : SawOfServer(link, frame);
    });
  }
  const ssize_t sent = ::send(to, way.waits.data(), way.waits.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return Moved::kNothing;
  if (sent < 0) return Moved::kEnded;
  way.waits.erase(0, static_cast<size_t>(sent));
  return Moved::kSome;
}

void FrameGuard::SawOfPeer(Link& link, const FrameHeader& frame) {
  if (frame.type == FrameHeader::kHeaders) link.open.insert(frame.stream);
  if (frame.type == FrameHeader::kReset && link.open.erase(frame.stream) > 0) {
    CountEnded(1);
    Charge(link);
  }
  if (frame.acknowledges()) return;
  if (frame.type == FrameHeader::kSettings) Charge(link);
  if (frame.type == FrameHeader::kPing) ++link.pings;
}

void FrameGuard::SawOfServer(Link& link, const FrameHeader& frame) {
  const bool answers_ping = frame.type == FrameHeader::kPing && frame.acknowledges();
  if (answers_ping && link.pings > 0) --link.pings;
  const bool is_reset = frame.type == FrameHeader::kReset;
  if (!is_reset && !frame.ends_stream()) return;
  if (link.open.erase(frame.stream) == 0) return;
  CountEnded(1);
  if (is_reset) Charge(link);
}

void FrameGuard::CountEnded(size_t calls) {
  ended_ += calls;
  if (ended_ < kBurst) return;
  ended_ = 0;
  if (many_have_ended_) many_have_ended_();
}

// ---- What a peer may reset ----------------------------------------------------------------------

double FrameGuard::ResetsOf(const Who& who) {
  const TimePoint now = clock_.Now();
  if (allowances_.size() >= kKnownAllowances && !allowances_.contains(who)) {
    const double full = limits_.resets_at_once / limits_.resets_per_second;
    std::erase_if(allowances_, [&](const auto& entry) {
      return entry.second.resets >= 0 && SecondsOf(now - entry.second.at) >= full;
    });
  }
  Allowance& has =
      allowances_.try_emplace(who, Allowance{limits_.resets_at_once, now}).first->second;
  has.resets = std::min(limits_.resets_at_once,
                        has.resets + SecondsOf(now - has.at) * limits_.resets_per_second);
  has.at = now;
  return has.resets;
}

void FrameGuard::Charge(Link& link) {
  ResetsOf(link.who);
  allowances_[link.who].resets -= 1;
}

void FrameGuard::HoldIfDue(Id id, Link& link) {
  if (link.is_held) return;
  const double left = ResetsOf(link.who);
  if (left >= 0) return;
  link.is_held = true;
  log_.LogLimited("resets of " + std::to_string(link.who.first), LogLevel::kWarning,
                  "CSI connection held back: its peer resets more calls than may be",
                  {{"uid", link.who.first}, {"pid", link.who.second}});
  const auto until = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(-left / limits_.resets_per_second));
  loop_->PostAfter(std::max<Duration>(until, kShortestHold), [this, id] {
    const auto found = links_.find(id);
    if (found == links_.end()) return;
    found->second->is_held = false;
    Ready(id, 0);
  });
}

// ---- Links --------------------------------------------------------------------------------------

bool FrameGuard::Watch(Id id, Link& link) {
  uint32_t of_peer = !IsRead(link) || !link.in.waits.empty() ? 0 : kReadable;
  uint32_t of_server = link.out.waits.empty() ? kReadable : 0;
  if (!link.out.waits.empty()) of_peer |= EPOLLOUT;
  if (!link.in.waits.empty()) of_server |= EPOLLOUT;
  return WatchEnd(id, link.peer, of_peer, link.peer_events) &&
         WatchEnd(id, link.server, of_server, link.server_events);
}

bool FrameGuard::WatchEnd(Id id, const Descriptor& end, uint32_t wanted, uint32_t& events) {
  // Also with nothing to wait for: that an end has gone is told in any case.
  const uint32_t with_errors = wanted | EPOLLERR | EPOLLHUP;
  if (events == with_errors) return true;
  loop_->UnwatchFd(end.get());
  events = with_errors;
  return loop_->WatchFd(end.get(), with_errors, [this, id](uint32_t ready) { Ready(id, ready); })
      .ok();
}

void FrameGuard::Drop(Id id) {
  const auto found = links_.find(id);
  loop_->UnwatchFd(found->second->peer.get());
  loop_->UnwatchFd(found->second->server.get());
  CountEnded(found->second->open.size());
  links_.erase(found);
  if (is_ending_ && links_.empty()) loop_->Stop();
}

}  // namespace volumed
