#include "operation/operation_lanes.h"

#include <chrono>
#include <utility>

#include "base/log.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

constexpr char kTakesAway[] = " teardown";

std::string SinceText(const Clock& clock, TimePoint since) {
  const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - since);
  return " since " + WallTimeText(clock.WallUnixMillis() - ago.count());
}

}  // namespace

OperationLanes::OperationLanes(Scheduler& scheduler, FaultDomains* domains, LaneLimits limits)
    : scheduler_(scheduler), domains_(domains), lanes_(limits) {}

OperationLanes::PlaceId OperationLanes::Enter(const FaultDomain& domain, Kind kind, Task begin) {
  const PlaceId id = next_id_++;
  Place place;
  place.kind = kind;
  place.begin = std::move(begin);
  places_.emplace(id, std::move(place));
  if (domains_ == nullptr || !domain.lane.starts_with('/')) {
    const std::string driver = DriverDomainName(domain.lane);
    const std::string& in_words = driver.empty() ? domain.lane : driver;
    Queue(id, {domain.lane, domain.name.empty() ? in_words : domain.name});
    return id;
  }
  to_look_up_.push_back({id, domain.lane});
  if (!looking_up_) LookUp();
  return id;
}

// Which filesystem a path lies on is asked of the mount table, which may have to be read. What
// comes meanwhile is looked up by the same thread next.
void OperationLanes::LookUp() {
  looking_up_ = !to_look_up_.empty();
  if (!looking_up_) return;
  scheduler_.RunBlocking([this, lookups = std::exchange(to_look_up_, {}), &domains = *domains_,
                          &scheduler = scheduler_, watch = alive_.watch()] {
    std::vector<std::pair<PlaceId, FaultDomain>> found;
    found.reserve(lookups.size());
    for (const Lookup& lookup : lookups) found.emplace_back(lookup.id, domains.Locate(lookup.path));
    scheduler.Post([this, found = std::move(found), watch] {
      if (!watch.alive()) return;
      for (const auto& [id, domain] : found) Queue(id, domain);
      LookUp();
    });
  });
}

void OperationLanes::Queue(PlaceId id, const FaultDomain& domain) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;  // it gave up meanwhile
  Place& place = found->second;
  place.name = domain.name;
  place.lane = domain.lane;
  if (place.lane.empty()) {
    place.name = "the agent's own filesystem";
    place.lane = OwnLane(place.kind.with_many);
  } else if (place.lane == kUnboundLane) {
    place.name = "what waits for a device or a program";
  } else if (place.kind.takes_away) {
    place.lane += kTakesAway;
  }
  Known& known = known_[place.lane];
  known = {domain.lane, place.kind.takes_away, known.places + 1};
  place.located = true;
  place.ticket = lanes_.Wait(place.lane, place.kind.finishes);
  waiting_[place.ticket] = id;
  Admit();
}

// Who comes within this time of the one before belongs to the same burst. Bursts have a lane each,
// and of these the one with the fewest at work goes first: one more pod does not wait for a burst.
std::string OperationLanes::OwnLane(bool with_many) {
  constexpr auto kSameBurst = std::chrono::milliseconds(100);
  Burst& burst = with_many ? many_ : alone_;
  const TimePoint now = scheduler_.clock().Now();
  if (!burst.last || now - *burst.last > kSameBurst) ++burst.number;
  burst.last = now;
  return (with_many ? "=many " : "=") + std::to_string(burst.number);
}

bool OperationLanes::GiveUp(PlaceId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return false;
  const Place& place = found->second;
  if (place.located && place.ticket == 0) return false;
  if (place.ticket != 0) {
    lanes_.GiveUp(place.lane, place.ticket);
    waiting_.erase(place.ticket);
    Forget(place.lane);
  }
  places_.erase(found);
  return true;
}

void OperationLanes::Leave(PlaceId id) {
  const auto found = places_.find(id);
  lanes_.Leave(found->second.lane);
  Forget(found->second.lane);
  places_.erase(found);
  Admit();
}

// Nobody tells of a lane without places how it is: what it was known to have lost would be counted
// against all other lanes for ever.
void OperationLanes::Forget(const std::string& lane) {
  const auto known = known_.find(lane);
  if (--known->second.places > 0) return;
  known_.erase(known);
  lanes_.SetHealth(lane, LaneHealth());
}

void OperationLanes::SetLimits(LaneLimits limits) {
  lanes_.SetLimits(limits);
  Admit();
}

// The lane beside is of the same filesystem, but the workers that this has lost do not count: a
// call that finds no room for a worker is refused at once, and takes no thread for long. Nor does
// its silence, unless it has a width, as a driver has: there nothing can be taken away by force.
LaneHealth OperationLanes::HealthOf(const Known& known) const {
  if (domains_ == nullptr) return {.lost = 0, .silent_since = std::nullopt, .has_answered = true};
  LaneHealth health = domains_->HealthOf(known.lane);
  if (!known.takes_away) return health;
  health.lost = 0;
  if (health.width == 0) health.silent_since.reset();
  health.closed = health.closed_to_teardown;
  return health;
}

void OperationLanes::Admit() {
  for (const std::string& lane : lanes_.WaitedFor()) {
    if (!IsOwnLane(lane) && lane != kUnboundLane) lanes_.SetHealth(lane, HealthOf(known_.at(lane)));
  }
  for (const Lanes::Ticket ticket : lanes_.Admit()) {
    const auto waiting = waiting_.find(ticket);
    Place& place = places_.at(waiting->second);
    waiting_.erase(waiting);
    place.ticket = 0;
    std::exchange(place.begin, nullptr)();
  }
}

bool OperationLanes::WaitsForClosedLane(PlaceId id) const {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second.ticket == 0) return false;
  const std::string& lane = found->second.lane;
  return !IsOwnLane(lane) && lane != kUnboundLane && HealthOf(known_.at(lane)).closed;
}

std::map<std::string, int> OperationLanes::WaitingForDrivers() const {
  std::map<std::string, int> waiting;
  for (const auto& [ticket, id] : waiting_) {
    const std::string& lane = known_.at(places_.at(id).lane).lane;
    if (IsDriverDomain(lane)) ++waiting[lane];
  }
  return waiting;
}

std::optional<LaneWait> OperationLanes::WaitOf(PlaceId id) const {
  const auto found = places_.find(id);
  if (found == places_.end() || (found->second.located && found->second.ticket == 0)) {
    return std::nullopt;
  }
  const Place& place = found->second;
  if (!place.located) return LaneWait{"which filesystem its path lies on is looked for"};
  const Known& known = known_.at(place.lane);
  LaneWait wait = Explain(place, known);
  if (IsDriverDomain(known.lane)) wait.step = kWaitForDriver;
  return wait;
}

LaneWait OperationLanes::Explain(const Place& place, const Known& known) const {
  const std::string& name = place.name;
  const LaneHealth health = IsOwnLane(place.lane) ? LaneHealth() : HealthOf(known);
  const std::string since =
      health.silent_since ? SinceText(scheduler_.clock(), *health.silent_since) : "";
  if (health.closed) {
    const std::string why = domains_->WhyClosed(known.lane);
    return {why.empty() ? name + " is away" : why, true};
  }
  if (health.lost > 0) {
    const std::string workers =
        health.lost == 1 ? " worker that does not answer" : " workers that do not answer";
    return {name + " has " + std::to_string(health.lost) + workers + since, true};
  }
  if (health.silent_since) {
    return {name + " does not answer" + since + "; one operation at a time tries it", true};
  }
  const std::string busy = std::to_string(lanes_.busy(place.lane));
  if (lanes_.IsFull(place.lane)) {
    const std::string operations = busy == "1" ? " operation" : " operations";
    return {name + " has " + busy + operations + " under way, as many as " +
            (health.width > 0 ? "it may have now" : "one filesystem, server or driver may have")};
  }
  const std::string all = health.width > 0 ? "drivers" : "filesystems, servers and drivers";
  return {"as many operations are under way as all " + all +
          " together may have; this one is for " + name};
}

}  // namespace volumed
