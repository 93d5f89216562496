#include "agent/control_guests.h"

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
// The share (one in so many) of the process's descriptors that connections of the control socket
// may take.
constexpr rlim_t kShareOfDescriptors = 4;
constexpr size_t kLeastConnections = 16;

// nullopt if the descriptor is closed, or is not a socket.
std::optional<ino_t> InodeOf(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISSOCK(info.st_mode)) return std::nullopt;
  return info.st_ino;
}

}  // namespace

ControlLimits ControlLimitsOfProcess() {
  ControlLimits limits;
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY) return limits;
  const size_t share = static_cast<size_t>(files.rlim_cur / kShareOfDescriptors);
  limits.connections = std::clamp(share, kLeastConnections, limits.connections);
  limits.connections_of_users = limits.connections / 4 * 3;
  limits.connections_per_user = limits.connections / 4;
  return limits;
}

ControlGuests::ControlGuests(EventLoop& loop, ControlLimits limits, Serve serve)
    : loop_(loop), limits_(limits), serve_(std::move(serve)) {}

ControlGuests::~ControlGuests() {
  while (!silent_.empty()) Drop(silent_.begin()->first);
}

bool ControlGuests::Admit(Descriptor connection, const PeerCredentials& peer, PeerRole role) {
  if (!MakeRoomFor(peer.uid)) return false;
  const Id id = next_++;
  const int fd = connection.get();
  Silent& guest = silent_[id];
  guest.connection = std::move(connection);
  guest.uid = peer.uid;
  guest.role = role;
  guest.timer = loop_.PostAfter(limits_.first_words, [this, id] { Drop(id); });
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
bool ControlGuests::MakeRoom() {
  if (silent_.empty()) return false;
  const auto users = std::find_if(silent_.begin(), silent_.end(),
                                  [](const auto& entry) { return entry.second.uid != 0; });
  Drop(users == silent_.end() ? silent_.begin()->first : users->first);
  return true;
}

bool ControlGuests::MakeRoomFor(uid_t uid) {
  if (!IsFull(uid)) return true;
  ForgetEnded();
  while (IsFull(uid)) {
    const std::optional<Id> victim = Victim(uid);
    if (!victim) return false;
    Drop(*victim);
  }
  return true;
}

bool ControlGuests::IsFull(uid_t uid) const {
  if (silent_.size() + served_.size() >= limits_.connections) return true;
  if (uid == 0) return false;
  return Count([](uid_t other) { return other != 0; }) >= limits_.connections_of_users ||
         Count([&](uid_t other) { return other == uid; }) >= limits_.connections_per_user;
}

size_t ControlGuests::Count(const std::function<bool(uid_t)>& counts) const {
  return static_cast<size_t>(
      std::count_if(silent_.begin(), silent_.end(),
                    [&](const auto& entry) { return counts(entry.second.uid); }) +
      std::count_if(served_.begin(), served_.end(),
                    [&](const Served& served) { return counts(served.uid); }));
}

// A user who has all of his places gives up one of his own; only root takes one of root's.
std::optional<ControlGuests::Id> ControlGuests::Victim(uid_t uid) const {
  const bool of_his_own =
      uid != 0 && Count([&](uid_t other) { return other == uid; }) >= limits_.connections_per_user;
  for (const auto& [id, guest] : silent_) {
    if (of_his_own ? guest.uid == uid : (uid == 0 || guest.uid != 0)) return id;
  }
  return std::nullopt;
}

void ControlGuests::ForgetEnded() {
  std::erase_if(served_, [](const Served& served) { return InodeOf(served.fd) != served.inode; });
}

void ControlGuests::Listen(Id id) {
  const auto found = silent_.find(id);
  if (found == silent_.end()) return;
  Silent& guest = found->second;
  std::array<char, kFirstWords.size()> words{};
  const ssize_t got = ::recv(guest.connection.get(), words.data(), words.size(), MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Drop(id);
  const std::string_view said(words.data(), static_cast<size_t>(got));
  if (!kFirstWords.starts_with(said)) return Drop(id);
  if (said.size() < kFirstWords.size()) return;
  const int fd = guest.connection.get();
  loop_.Cancel(guest.timer);
  loop_.UnwatchFd(fd);
  served_.push_back({fd, InodeOf(fd).value_or(0), guest.uid});
  Descriptor connection = std::move(guest.connection);
  const PeerRole role = guest.role;
  silent_.erase(found);
  serve_(std::move(connection), role);
}

void ControlGuests::Drop(Id id) {
  const auto found = silent_.find(id);
  if (found == silent_.end()) return;
  loop_.Cancel(found->second.timer);
  loop_.UnwatchFd(found->second.connection.get());
  silent_.erase(found);
}

}  // namespace volumed
