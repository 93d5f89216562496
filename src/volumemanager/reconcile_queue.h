// ReconcileQueue: the pods (or devices) to which something happened. An event marks one dirty, and
// passes look at each dirty one once, in the order in which they were marked; one that waits for a
// moment gets a timer. A pass looks at some of them only, so that the control thread is free for
// other work in between. If some were marked together with many others, each pass leaves half of
// its room to those that were marked alone.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/scheduler.h"
#include "operation/volume_operations.h"

namespace volumed {

// The earliest moment at which something has to be looked at without an event. This is a value.
class Wake {
 public:
  // Wall time may jump, so a timer for a wall time is looked at again after this time at the
  // latest.
  static constexpr Duration kLongestWallWait = std::chrono::hours(1);
  // For an operation that holds the key but announces its end to nobody. That should not happen;
  // the key is then looked at again after this time.
  static constexpr Duration kUnknownPending = std::chrono::seconds(1);

  explicit Wake(const Clock& clock) : clock_(clock) {}

  // The earliest of all moments that were named counts.
  void At(TimePoint when) {
    if (!when_ || when < *when_) when_ = when;
  }
  // The same for a wall time; one that is past means at once.
  void AtWall(int64_t unix_ms) {
    const int64_t left = std::max<int64_t>(unix_ms - clock_.WallUnixMillis(), 0);
    At(clock_.Now() + std::min<Duration>(std::chrono::milliseconds(left), kLongestWallWait));
  }
  // To be called with the result of an attempt to start an operation. An operation that was started
  // needs no moment, since its end is an event.
  void AfterRefusal(StartResult result, const VolumeOperations& operations,
                    const OperationKey& key) {
    switch (result) {
      case StartResult::kStarted:
        return;
      case StartResult::kPending:
        At(clock_.Now() + kUnknownPending);
        return;
      case StartResult::kBackoff:
        At(operations.NextTry(key).value_or(clock_.Now() + kUnknownPending));
        return;
    }
  }
  const Clock& clock() const { return clock_; }
  // nullopt if nothing has to be looked at without an event.
  const std::optional<TimePoint>& when() const { return when_; }

 private:
  const Clock& clock_;
  std::optional<TimePoint> when_;
};

// Threads: the control thread. Blocks: never.
template <typename Key>
class ReconcileQueue {
 public:
  // `reconcile` may mark more keys dirty: they wait for the next pass. The timer of a key is that
  // of the last pass: if `reconcile` names no moment, an earlier one is dropped. The scheduler
  // outlives this object.
  ReconcileQueue(Scheduler& scheduler, std::function<void(const Key&, Wake&)> reconcile)
      : scheduler_(scheduler), reconcile_(std::move(reconcile)) {}
  ~ReconcileQueue() {
    for (const auto& [key, timer] : timers_) scheduler_.Cancel(timer);
  }
  ReconcileQueue(const ReconcileQueue&) = delete;
  ReconcileQueue& operator=(const ReconcileQueue&) = delete;

  // Nothing is reconciled before this is called. To be called once.
  void Start() {
    started_ = true;
    if (!dirty_.empty()) PostPass();
  }

  // Has no effect for a key that is dirty already: it keeps its place. `with_many` says that many
  // others were marked together with it.
  void MarkDirty(const Key& key, bool with_many = false) {
    if (!dirty_.insert(key).second) return;
    (with_many ? many_ : alone_).push_back(key);
    if (started_ && !pass_posted_) PostPass();
  }

 private:
  // The cost of a pod depends on its volumes, so a pass is limited by time as well.
  static constexpr size_t kMostInAPass = 32;
  static constexpr Duration kLongestPass = std::chrono::milliseconds(5);

  void PostPass() {
    pass_posted_ = true;
    scheduler_.Post(alive_.Guarded([this] { RunPass(); }));
  }

  void RunPass() {
    const TimePoint end = scheduler_.clock().Now() + kLongestPass;
    for (size_t count = std::min(dirty_.size(), kMostInAPass); count > 0; --count) {
      const bool takes_many = alone_.empty() || (count % 2 == 0 && !many_.empty());
      std::deque<Key>& order = takes_many ? many_ : alone_;
      const Key key = std::move(order.front());
      order.pop_front();
      dirty_.erase(key);
      Wake wake(scheduler_.clock());
      reconcile_(key, wake);
      Arm(key, wake);
      if (scheduler_.clock().Now() >= end) break;
    }
    pass_posted_ = false;
    if (!dirty_.empty()) PostPass();
  }

  void Arm(const Key& key, const Wake& wake) {
    if (const auto timer = timers_.find(key); timer != timers_.end()) {
      scheduler_.Cancel(timer->second);
      timers_.erase(timer);
    }
    if (!wake.when()) return;
    const Duration delay = std::max(*wake.when() - wake.clock().Now(), Duration::zero());
    timers_[key] = scheduler_.PostAfter(delay, alive_.Guarded([this, key] {
      timers_.erase(key);
      MarkDirty(key);
    }));
  }

  Scheduler& scheduler_;
  const std::function<void(const Key&, Wake&)> reconcile_;
  bool started_ = false;
  bool pass_posted_ = false;
  std::set<Key> dirty_;
  std::deque<Key> alone_, many_;  // the keys in dirty_, in the order of their marks
  std::map<Key, TimerId> timers_;
  AliveGuard alive_;
};

}  // namespace volumed
