// Lanes: which of those who wait may begin, so that what hangs cannot use up the threads or the
// workers that healthy work needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace volumed {

struct LaneLimits {
  int places = 64;    // of all lanes together, but for the own one
  int per_lane = 4;   // of one lane that has no width of its own
  int own_lane = 64;  // of the own lanes together: see IsOwnLane
  int unbound = 256;  // of the lane kUnboundLane
  // Of all lanes together that have a width of their own: they take none of `places`.
  int driver_places = 384;
};

// The lane of those who hang with nothing that others wait for too: a device that is to appear, a
// driver's program. They are counted for themselves, as those of the own lane are.
inline constexpr const char* kUnboundLane = "~";

// The agent's own filesystem has the lane without a name. It may be more than one, so that those
// who came later need not wait for all who came before: then each name begins with '='.
inline bool IsOwnLane(const std::string& lane) { return lane.empty() || lane[0] == '='; }

// How a lane is, as far as its owner was told.
struct LaneHealth {
  int lost = 0;  // places of those who were given up, and have not ended
  // Since when its calls were not answered in time. Nothing: the last one was answered, or none was
  // made.
  std::optional<TimePoint> silent_since = {};
  bool has_answered = false;  // ever
  // How many may have a place of it at a time; it may change at any moment. 0: it has no width of
  // its own, and so the one of all others (LaneLimits::per_lane).
  int width = 0;
  // Nobody is admitted: there is nothing to try. Whoever waits goes on when it is open again. The
  // second one is of those who take something away, for an owner that tells them apart.
  bool closed = false;
  bool closed_to_teardown = false;
};

// A lane is what hangs together: a filesystem, a server, a device, a driver. Who works in a lane
// has a place of it. Who was given up because it cannot be ended keeps its place, as lost, until it
// is found to be gone. Those who wait for one lane are admitted in the order in which they came,
// but that those who finish what was begun go before all others; between lanes, the one with the
// fewest at work goes first.
//
// Of the places of all lanes, a quarter is a reserve, so that lanes which hang leave room for
// others, however many of them there are:
//  - a silent lane gets one place at a time, to learn whether it answers again, and none of the
//    reserve;
//  - a lane that has not answered yet gets one place at a time of the reserve's first half;
//  - the rest of the reserve is for lanes that have answered last time.
// So each new lane that hangs gets a try for as long as lost places leave room for it, and lanes
// that answer always have some.
//
// A lane with a width of its own, as a driver has that takes many calls at a time, is counted with
// others of this kind, by the same rules. What it has beyond the places of a usual lane it takes of
// what no reserve is kept from, so that a few wide lanes that stop to answer together leave room
// too.
//
// What was begun is finished first: the more wait for lanes that answer, the fewer places the own
// lanes have, down to as many as one lane may have. Else a burst of pods would be set up on the
// agent's own filesystem long before the volumes that each of them has elsewhere.
//
// Threads: external lock. Blocks: never. Costs: per lane in which somebody waits.
class Lanes {
 public:
  using Ticket = uint64_t;

  explicit Lanes(LaneLimits limits) : limits_(limits) {}

  // Lower limits end nothing; after higher ones, Admit() may find somebody.
  void SetLimits(LaneLimits limits) { limits_ = limits; }

  // Whoever asks waits from now on, behind the others of the lane, until Admit() names the ticket.
  // Who `finishes` waits only behind the others who do: else nothing of a thousand things with two
  // steps each would be ready before the first step of all of them is done. Tickets are never zero
  // and never repeat.
  Ticket Wait(const std::string& lane, bool finishes = false);
  // The ticket does not wait any longer. REQUIRES: it waits in this lane.
  void GiveUp(const std::string& lane, Ticket ticket);
  // Returns those who may begin now, in the order in which they are to begin; each has its place
  // until Leave(). Nobody begins by anything else, so the owner asks again after each call that
  // changes something.
  std::vector<Ticket> Admit();
  // REQUIRES: somebody has a place of this lane. Who was lost leaves it too: the place then counts
  // as lost alone.
  void Leave(const std::string& lane);

  // A call of the lane was answered, however late: the lane is not silent.
  void Answered(const std::string& lane);
  // A call that began then was not answered in time. A lane that is silent already stays silent
  // since the moment that it was first told.
  void NotAnswered(const std::string& lane, TimePoint since);
  // One place more is lost, until Found().
  void Lose(const std::string& lane);
  void Found(const std::string& lane);  // one that was lost has ended
  // Takes the place of the four above for an owner who is told by another one how the lane is.
  void SetHealth(const std::string& lane, const LaneHealth& health);

  // Nothing is known of a lane that nobody has named. Beyond 1024 lanes, what is known of one in
  // which nobody works, waits or is lost is forgotten.
  LaneHealth Health(const std::string& lane) const;
  // How many have a place of this lane, without those that are lost.
  int busy(const std::string& lane) const;
  int waiting() const { return waiting_; }
  // The lanes in which somebody waits, by name.
  std::vector<std::string> WaitedFor() const;
  const LaneLimits& limits() const { return limits_; }
  // Whether the lane has as many at work and lost as it may have. For an own lane it says whether
  // all own lanes together have as many at work as they may have now.
  bool IsFull(const std::string& lane) const;

 private:
  struct Lane {
    int busy = 0;
    LaneHealth health;
    std::deque<Ticket> finishing;  // go before those of `beginning`
    std::deque<Ticket> beginning;
    std::deque<Ticket>& first() { return finishing.empty() ? beginning : finishing; }
    Ticket next() const { return finishing.empty() ? beginning.front() : finishing.front(); }
    int waiting() const { return static_cast<int>(finishing.size() + beginning.size()); }
    bool silent() const { return health.silent_since.has_value(); }
    bool answers() const {
      return health.has_answered && !silent() && health.lost == 0 && !health.closed;
    }
    int used() const { return busy + health.lost; }
    bool idle() const { return busy == 0 && health.lost == 0 && waiting() == 0; }
  };

  // Places that several lanes have together.
  struct Pool {
    int used = 0;         // taken or lost
    int silent_used = 0;  // of these, in lanes that are silent
  };

  bool HasRoom(const std::string& name, const Lane& lane) const;
  bool PoolHasRoom(const Pool& pool, int places, const Lane& lane) const;
  // How many one lane may have, at work and lost.
  int WidthOf(const std::string& name, const LaneHealth& health) const;
  int OwnPlaces() const;
  const Lane* Find(const std::string& lane) const;
  // Changes the lane, and keeps what is counted over all lanes right.
  template <typename Change>
  void Update(const std::string& lane, const Change& change);

  LaneLimits limits_;
  std::map<std::string, Lane> lanes_;
  std::set<std::string> waited_for_;
  Ticket next_ticket_ = 1;
  int waiting_ = 0;
  Pool usual_;        // of all lanes but the own ones, the unbound one, and those of drivers_
  Pool drivers_;      // of the lanes with a width of their own
  int own_used_ = 0;  // places of the own lanes
  int waiting_elsewhere_ = 0;  // for lanes that answer, the own and the unbound one left out
};

}  // namespace volumed
