// StreamGuests: limits the connections of a unix socket at which HTTP/2 is spoken, in all and for
// each user. A connection that has not begun to speak it gets nothing but a descriptor, and that
// for a few seconds; one that says something else is closed. No user but root can take the places
// that root needs to see what is wrong, and those who share few places cannot take those of the
// others. Source: RFC 9113 section 3.4 (the first bytes of a client).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/event_loop.h"
#include "base/peer_credentials.h"

namespace volumed {

// What the owner of the socket takes a peer for.
struct GuestClass {
  int rank = 0;             // for the owner alone, who gets it back with the connection
  bool shares_few = false;  // he and all others of whom this is true have few places together
};

struct GuestLimits {
  size_t connections = 256;           // of all users together
  size_t connections_of_users = 192;  // of all users but root together
  size_t connections_of_few = 128;    // of all together who share few
  size_t connections_per_user = 64;   // of each user but root
  // A connection that has not begun to speak HTTP/2 within this time is closed.
  Duration first_words = std::chrono::seconds(5);
};

// The limits for one socket of this process. A process that may have few descriptors
// (RLIMIT_NOFILE) gets fewer connections: a quarter of that number, but at least 16 and at most the
// default. `descriptors` is how many each connection takes. Threads: any. Blocks: never.
GuestLimits GuestLimitsOfProcess(size_t descriptors = 1);

// Threads: the loop's thread, or any thread before the loop runs. Blocks: never by itself, and else
// as `serve` does.
class StreamGuests {
 public:
  // Takes over a connection that has begun to speak, with the class of its peer; no byte of it was
  // taken. Serve owns the descriptor from then on, and closes it when the connection has ended. It
  // may be called by Admit().
  using Serve = std::function<void(Descriptor connection, const GuestClass& peer_class)>;

  // `loop` outlives this object.
  StreamGuests(EventLoop& loop, GuestLimits limits, Serve serve);
  // Closes the silent connections. Those that are served go on.
  ~StreamGuests();
  StreamGuests(const StreamGuests&) = delete;
  StreamGuests& operator=(const StreamGuests&) = delete;

  // Takes a connection of a peer that may have one. If the limits are reached, a silent connection
  // is closed to make room; a connection that is served is not. Without room the new connection is
  // closed and this returns false. It is also closed if the loop cannot watch it. A connection that
  // has ended keeps its place until the limits are reached, when such places are looked for.
  bool Admit(Descriptor connection, const PeerCredentials& peer, const GuestClass& peer_class);

  // Closes the connection that has been silent longest; one of root's only if no other is silent.
  // False if no connection is silent.
  bool MakeRoom();

  // How many connections have not begun to speak; those that are served are not in it.
  size_t silent() const { return silent_.size(); }

 private:
  using Id = uint64_t;
  struct Guest {
    uid_t uid = 0;
    GuestClass peer_class;
    bool is_root() const { return uid == 0; }
    bool shares_few() const { return peer_class.shares_few; }
  };
  struct Silent {
    Descriptor connection;
    Guest guest;
    TimerId timer = 0;
  };
  // Serve owns the descriptor `fd` now; the inode tells whether it is still the same connection.
  struct Served {
    int fd = -1;
    ino_t inode = 0;
    Guest guest;
  };

  bool MakeRoomFor(const Guest& guest);
  bool IsFull(const Guest& guest) const;
  // The connection that has been silent longest among those that may make room for this one.
  std::optional<Id> Victim(const Guest& guest) const;
  // Whether all places of this user, and of all who share few, are taken.
  bool HasAllOfHisOwn(const Guest& guest) const;
  bool AreTheFewTaken() const;
  void ForgetEnded();
  void Listen(Id id);
  void Drop(Id id);
  size_t Count(const std::function<bool(const Guest&)>& counts) const;

  EventLoop& loop_;
  const GuestLimits limits_;
  const Serve serve_;
  std::map<Id, Silent> silent_;  // by number: the lowest has been silent longest
  std::vector<Served> served_;
  Id next_ = 1;
};

}  // namespace volumed
