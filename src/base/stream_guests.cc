#include "base/stream_guests.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace volumed {
namespace {

// The first bytes of every client. Source: RFC 9113 section 3.4.
constexpr std::string_view kFirstWords = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// The share (one in so many) of the process's descriptors that connections of one socket may take.
constexpr rlim_t kShareOfDescriptors = 4;
constexpr size_t kLeastConnections = 16;

// nullopt if the descriptor is closed, or is not a socket.
std::optional<ino_t> InodeOf(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

}  // namespace

GuestLimits GuestLimitsOfProcess(size_t descriptors) {
  GuestLimits limits;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return limits;
  const size_t share = static_cast<size_t>(files.rlim_cur / kShareOfDescriptors) / descriptors;
  limits.connections = std::clamp(share, kLeastConnections, limits.connections);
  limits.connections_of_users = limits.connections / 4 * 3;
  limits.connections_of_few = limits.connections / 2;
  limits.connections_per_user = limits.connections / 4;
  return limits;
}

StreamGuests::StreamGuests(EventLoop& loop, GuestLimits limits, Serve serve)
    : loop_(loop), limits_(limits), serve_(std::move(serve)) {}

StreamGuests::~StreamGuests() {
  while (!silent_.empty()) Drop(silent_.begin()->first);
}

bool StreamGuests::Admit(Descriptor connection, const PeerCredentials& peer,
                         const GuestClass& peer_class) {
  const Guest guest{peer.uid, peer_class};
  if (!MakeRoomFor(guest)) return false;
  const Id id = next_++;
  const int fd = connection.get();
  Silent& waiting = silent_[id];
  waiting.connection = std::move(connection);
  waiting.guest = guest;
  waiting.timer = loop_.PostAfter(limits_.first_words, [this, id] { Drop(id); });
  // Edge-triggered, since the bytes are only looked at and stay readable.
  if (!loop_.WatchFd(fd, EPOLLIN | EPOLLRDHUP | EPOLLET, [this, id](uint32_t) { Listen(id); })
           .ok()) {
    Drop(id);
    return false;
  }
  // A connection that has waited has usually sent its first bytes: it must not count as silent
  // meanwhile.
  Listen(id);
  return true;
}

// It is not known whose the next connection is before it is accepted. Root's connections go last,
// so that no other user can displace them.
bool StreamGuests::MakeRoom() {
  if (silent_.empty()) return false;
  const auto users = std::find_if(silent_.begin(), silent_.end(),
                                  [](const auto& entry) { return !entry.second.guest.is_root(); });
  Drop(users == silent_.end() ? silent_.begin()->first : users->first);
  return true;
}

bool StreamGuests::MakeRoomFor(const Guest& guest) {
  if (!IsFull(guest)) return true;
  ForgetEnded();
  while (IsFull(guest)) {
    const std::optional<Id> victim = Victim(guest);
    if (!victim) return false;
    Drop(*victim);
  }
  return true;
}

bool StreamGuests::IsFull(const Guest& guest) const {
  if (silent_.size() + served_.size() >= limits_.connections) return true;
  if (guest.is_root()) return false;
  return Count([](const Guest& other) { return !other.is_root(); }) >=
             limits_.connections_of_users ||
         HasAllOfHisOwn(guest) || (guest.shares_few() && AreTheFewTaken());
}

bool StreamGuests::HasAllOfHisOwn(const Guest& guest) const {
  return Count([&guest](const Guest& other) { return other.uid == guest.uid; }) >=
         limits_.connections_per_user;
}

bool StreamGuests::AreTheFewTaken() const {
  return Count([](const Guest& other) { return other.shares_few(); }) >= limits_.connections_of_few;
}

size_t StreamGuests::Count(const std::function<bool(const Guest&)>& counts) const {
  return static_cast<size_t>(
      std::count_if(silent_.begin(), silent_.end(),
                    [&](const auto& entry) { return counts(entry.second.guest); }) +
      std::count_if(served_.begin(), served_.end(),
                    [&](const Served& served) { return counts(served.guest); }));
}

// A user who has all of his places gives up one of his own, and those who have all of the few that
// they share one of these; only root takes one of root's.
std::optional<StreamGuests::Id> StreamGuests::Victim(const Guest& guest) const {
  const bool of_his_own = !guest.is_root() && HasAllOfHisOwn(guest);
  const bool of_few = guest.shares_few() && AreTheFewTaken();
  for (const auto& [id, waiting] : silent_) {
    const Guest& other = waiting.guest;
    const bool may_go = guest.is_root() || !other.is_root();
    const bool is_his = !of_his_own || other.uid == guest.uid;
    const bool is_of_few = !of_few || other.shares_few();
    if (may_go && is_his && is_of_few) return id;
  }
  return std::nullopt;
}

void StreamGuests::ForgetEnded() {
  std::erase_if(served_, [](const Served& served) { return InodeOf(served.fd) != served.inode; });
}

void StreamGuests::Listen(Id id) {
  const auto found = silent_.find(id);
  if (found == silent_.end()) return;
  Silent& waiting = found->second;
  std::array<char, kFirstWords.size()> words{};
  const ssize_t got = ::recv(waiting.connection.get(), words.data(), words.size(), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Drop(id);
  const std::string_view said(words.data(), static_cast<size_t>(got));
  if (!kFirstWords.starts_with(said)) return Drop(id);
  if (said.size() < kFirstWords.size()) return;
  const int fd = waiting.connection.get();
  loop_.Cancel(waiting.timer);
  loop_.UnwatchFd(fd);
  served_.push_back({fd, InodeOf(fd).value_or(0), waiting.guest});
  Descriptor connection = std::move(waiting.connection);
  const GuestClass peer_class = waiting.guest.peer_class;
  silent_.erase(found);
  serve_(std::move(connection), peer_class);
}

void StreamGuests::Drop(Id id) {
  const auto found = silent_.find(id);
  if (found == silent_.end()) return;
  loop_.Cancel(found->second.timer);
  loop_.UnwatchFd(found->second.connection.get());
  silent_.erase(found);
}

}  // namespace volumed
