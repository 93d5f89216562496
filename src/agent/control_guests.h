// ControlGuests: the connections of the control socket: how many there may be, and of whom. One
// that has not begun to speak HTTP/2 gets nothing but a descriptor for a few seconds; nobody but
// root can take the places that root needs to see what is wrong.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "agent/peer_role.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"

namespace volumed {

struct ControlLimits {
  size_t connections = 256;           // of all
  size_t connections_of_users = 192;  // of all but root
  size_t connections_per_user = 64;   // of each but root
  // Within which a connection has to begin to speak.
  Duration first_words = std::chrono::seconds(5);
};

// The limits of this process: with few descriptors (RLIMIT_NOFILE), fewer connections.
ControlLimits ControlLimitsOfProcess();

// Threads: the loop's, or before it runs. Blocks: never.
class ControlGuests {
 public:
  // Takes the connection, which has begun to speak, as a peer with this role. It owns the
  // descriptor from then on, and closes it when the connection has ended.
  using Serve = std::function<void(Descriptor connection, PeerRole role)>;

  ControlGuests(EventLoop& loop, ControlLimits limits, Serve serve);
  ~ControlGuests();
  ControlGuests(const ControlGuests&) = delete;
  ControlGuests& operator=(const ControlGuests&) = delete;

  // Takes a connection of a peer that has a role. False, and it is closed, if there is no place for
  // it: one that is silent makes room for it, one that is served does not.
  bool Admit(Descriptor connection, const PeerCredentials& peer, PeerRole role);

  // Closes the connection that has been silent longest, one of root's only if nobody else is
  // silent. False if none is.
  bool MakeRoom();

  size_t silent() const { return silent_.size(); }

 private:
  using Id = uint64_t;
  struct Silent {
    Descriptor connection;
    uid_t uid = 0;
    PeerRole role = PeerRole::kNone;
    TimerId timer = 0;
  };
  // The descriptor is not ours any more; its inode says whether it is still the same connection.
  struct Served {
    int fd = -1;
    ino_t inode = 0;
    uid_t uid = 0;
  };

  bool MakeRoomFor(uid_t uid);
  bool IsFull(uid_t uid) const;
  // The longest silent one that would make room for `uid`.
  std::optional<Id> Victim(uid_t uid) const;
  void ForgetEnded();
  void Listen(Id id);
  void Drop(Id id);
  size_t Count(const std::function<bool(uid_t)>& counts) const;

  EventLoop& loop_;
  const ControlLimits limits_;
  const Serve serve_;
  std::map<Id, Silent> silent_;  // the lowest number has been silent longest
  std::vector<Served> served_;
  Id next_ = 1;
};

}  // namespace volumed
