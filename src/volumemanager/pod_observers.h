// PodObservers: those who want to hear when the view of a pod may have changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/ids.h"

namespace volumed {

// Threads: the control thread. Blocks: never.
class PodObservers {
 public:
  using Observer = std::function<void(const PodUid&)>;

  // Calls `observer` after every change of a view, and with an empty uid when the manager has
  // become ready; wait and watch use this. Returns the number by which it is removed. Observers are
  // called in the order in which they were added. `observer` may add and remove observers; one that
  // is removed by another one during Tell() may be called once more.
  uint64_t Add(Observer observer) {
    observers_[next_] = std::move(observer);
    return next_++;
  }
  void Remove(uint64_t id) { observers_.erase(id); }

  // Calls all observers now.
  void Tell(const PodUid& pod) const {
    const auto observers = observers_;  // an observer may remove itself
    for (const auto& [id, observer] : observers) observer(pod);
  }

 private:
  uint64_t next_ = 1;
  std::map<uint64_t, Observer> observers_;
};

}  // namespace volumed
