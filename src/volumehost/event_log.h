// EventLog: the Kubernetes events of this node's pods, kept in memory for volumectl.
// Source: kubernetes staging/src/k8s.io/client-go/tools/record/events_cache.go@v1.36.2 (counting of
// equal events).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct PodEvent {
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;
  uint64_t count = 0;
  int64_t first_unix_ms = 0;
  int64_t last_unix_ms = 0;
  friend bool operator==(const PodEvent&, const PodEvent&) = default;
};

std::string_view EventTypeName(EventType type);  // "Normal", "Warning"

// An event of the same type, reason and message as an earlier one only counts it up. Each pod keeps
// its newest ones; with too many pods, the one that was silent longest is forgotten.
// Threads: any. Blocks: never.
class EventLog final : public HostEvents {
 public:
  static constexpr size_t kEventsPerPod = 64;
  static constexpr size_t kPods = 4096;

  explicit EventLog(const Clock& clock, size_t events_per_pod = kEventsPerPod, size_t pods = kPods);

  void RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                      const std::string& message) override EXCLUDES(mu_);

  // Oldest first, by when they were last seen.
  std::vector<PodEvent> Snapshot(const PodUid& pod) const EXCLUDES(mu_);
  void ForgetPod(const PodUid& pod) EXCLUDES(mu_);

 private:
  struct PodEvents {
    std::deque<PodEvent> events;  // the newest last
    uint64_t touched = 0;         // the value of sequence_ at the last event
  };

  void DropMostSilentPod() REQUIRES(mu_);

  const Clock& clock_;
  const size_t events_per_pod_;
  const size_t max_pods_;
  mutable Mutex mu_;
  std::map<PodUid, PodEvents> pods_ GUARDED_BY(mu_);
  uint64_t sequence_ GUARDED_BY(mu_) = 0;
};

}  // namespace volumed
