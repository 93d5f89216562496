#include "base/lanes.h"

#include <algorithm>
#include <utility>

namespace volumed {
namespace {

// Lanes without anybody in them are remembered up to this number: whether they answered last time.
constexpr size_t kRemembered = 1024;

// Whether its places are of those that all lanes together may have.
bool IsCounted(const std::string& lane) { return !IsOwnLane(lane) && lane != kUnboundLane; }

}  // namespace

template <typename Change>
void Lanes::Update(const std::string& name, const Change& change) {
  const auto found = lanes_.try_emplace(name).first;
  Lane& lane = found->second;
  const auto count = [&](int sign) {
    if (IsOwnLane(name)) own_used_ += sign * lane.busy;
    if (!IsCounted(name)) return;
    Pool& pool = lane.health.width > 0 ? drivers_ : usual_;
    pool.used += sign * lane.used();
    if (lane.silent()) pool.silent_used += sign * lane.used();
    if (lane.answers()) waiting_elsewhere_ += sign * lane.waiting();
  };
  count(-1);
  change(lane);
  count(+1);
  if (lane.waiting() == 0) {
    waited_for_.erase(name);
  } else {
    waited_for_.insert(name);
  }
  if (lane.idle() && lanes_.size() > kRemembered) lanes_.erase(found);
}

const Lanes::Lane* Lanes::Find(const std::string& lane) const {
  const auto found = lanes_.find(lane);
  return found == lanes_.end() ? nullptr : &found->second;
}

Lanes::Ticket Lanes::Wait(const std::string& lane, bool finishes) {
  const Ticket ticket = next_ticket_++;
  Update(lane, [&](Lane& l) { (finishes ? l.finishing : l.beginning).push_back(ticket); });
  ++waiting_;
  return ticket;
}

void Lanes::GiveUp(const std::string& lane, Ticket ticket) {
  Update(lane, [&](Lane& l) {
    waiting_ -= static_cast<int>(std::erase(l.finishing, ticket) + std::erase(l.beginning, ticket));
  });
}

int Lanes::OwnPlaces() const {
  const int given_way = std::min(waiting_elsewhere_, limits_.own_lane - limits_.per_lane);
  return limits_.own_lane - std::max(0, given_way);
}

int Lanes::WidthOf(const std::string& name, const LaneHealth& health) const {
  if (name == kUnboundLane) return limits_.unbound;
  return health.width > 0 ? health.width : limits_.per_lane;
}

bool Lanes::HasRoom(const std::string& name, const Lane& lane) const {
  // A lost place of the own lane holds up nobody: nothing would go on at all.
  if (IsOwnLane(name)) return own_used_ < OwnPlaces();
  if (name == kUnboundLane) return lane.busy < limits_.unbound;
  if (lane.health.closed || lane.used() >= WidthOf(name, lane.health)) return false;
  const bool is_driver = lane.health.width > 0;
  return PoolHasRoom(is_driver ? drivers_ : usual_,
                     is_driver ? limits_.driver_places : limits_.places, lane);
}

bool Lanes::PoolHasRoom(const Pool& pool, int places, const Lane& lane) const {
  const int reserve = places / 4;
  const int unreserved = places - reserve;
  if (pool.used >= places) return false;
  if (lane.silent()) {
    return lane.busy == 0 && pool.silent_used < unreserved && pool.used < unreserved;
  }
  if (pool.used < unreserved) return true;
  if (lane.health.has_answered) return lane.used() < limits_.per_lane;
  return lane.busy == 0 && pool.used < places - reserve / 2;
}

std::vector<Lanes::Ticket> Lanes::Admit() {
  std::vector<Ticket> admitted;
  while (true) {
    const std::string* next = nullptr;
    const Lane* best = nullptr;
    for (const std::string& name : waited_for_) {
      const Lane& lane = lanes_.at(name);
      if (!HasRoom(name, lane)) continue;
      const auto rank = [](const Lane& l) { return std::pair(l.busy, l.next()); };
      if (best != nullptr && rank(*best) <= rank(lane)) continue;
      next = &name;
      best = &lane;
    }
    if (next == nullptr) return admitted;
    Update(std::string(*next), [&](Lane& lane) {
      admitted.push_back(lane.next());
      lane.first().pop_front();
      ++lane.busy;
    });
    --waiting_;
  }
}

void Lanes::Leave(const std::string& lane) {
  Update(lane, [](Lane& l) { --l.busy; });
}

void Lanes::Answered(const std::string& lane) {
  Update(lane, [](Lane& l) {
    l.health.has_answered = true;
    l.health.silent_since.reset();
  });
}

void Lanes::NotAnswered(const std::string& lane, TimePoint since) {
  Update(lane, [&](Lane& l) {
    if (!l.health.silent_since) l.health.silent_since = since;
  });
}

void Lanes::Lose(const std::string& lane) {
  Update(lane, [](Lane& l) { ++l.health.lost; });
}

void Lanes::Found(const std::string& lane) {
  Update(lane, [](Lane& l) { --l.health.lost; });
}

void Lanes::SetHealth(const std::string& lane, const LaneHealth& health) {
  Update(lane, [&](Lane& l) { l.health = health; });
}

LaneHealth Lanes::Health(const std::string& lane) const {
  const Lane* found = Find(lane);
  return found == nullptr ? LaneHealth() : found->health;
}

int Lanes::busy(const std::string& lane) const {
  const Lane* found = Find(lane);
  return found == nullptr ? 0 : found->busy;
}

std::vector<std::string> Lanes::WaitedFor() const {
  return {waited_for_.begin(), waited_for_.end()};
}

bool Lanes::IsFull(const std::string& lane) const {
  if (IsOwnLane(lane)) return own_used_ >= OwnPlaces();
  const LaneHealth health = Health(lane);
  return busy(lane) + health.lost >= WidthOf(lane, health);
}

}  // namespace volumed
