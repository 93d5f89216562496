// EventLog: the Kubernetes events of this node, its pods, volumes and claims, kept in memory for
// volumectl.
// Source: kubernetes staging/src/k8s.io/client-go/tools/record/events_cache.go@v1.36.2 (counting of
// equal events, combining of similar ones; its spam filter spares an API server, and here is none).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "volumehost/volume_host.h"

namespace volumed {

// One event, or several that count as one: then the text is the newest, and the times are those of
// the first and the last.
struct KeptEvent {
  EventType type = EventType::kNormal;
  std::string reason;
  std::string message;
  uint64_t count = 0;
  int64_t first_unix_ms = 0;
  int64_t last_unix_ms = 0;
  friend bool operator==(const KeptEvent&, const KeptEvent&) = default;
};

// The object of an event: a pod, or an object of another kind. An empty uid stands for the node.
using EventSubject = std::variant<PodUid, ObjectKey>;

struct LoggedEvent {
  EventSubject subject;
  KeptEvent event;
  // Grows with each event; an event that is counted up gets a new number.
  uint64_t sequence = 0;
};

std::string_view EventTypeName(EventType type);  // "Normal", "Warning"

// An event of the same type, reason and message as an earlier one only counts it up. If ten
// different messages of one type and reason have come, never with ten minutes between two, all that
// follow count up one event "(combined from similar events): <the newest message>". Each subject
// keeps its newest events; if there are too many subjects, the one that was silent longest is
// forgotten. Threads: any. Blocks: never.
class EventLog final : public HostEvents {
 public:
  static constexpr size_t kEventsPerSubject = 64;
  static constexpr size_t kSubjects = 4096;
  // Source: events_cache.go@v1.36.2 (defaultAggregateMaxEvents, defaultAggregateIntervalInSeconds).
  static constexpr size_t kSimilarEvents = 10;
  static constexpr int64_t kSimilarWithinMs = 600'000;

  // `clock` outlives this object; its wall time is what events are dated by.
  explicit EventLog(const Clock& clock, size_t events_per_subject = kEventsPerSubject,
                    size_t subjects = kSubjects);

  void RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                      const std::string& message) override EXCLUDES(mu_);
  void RecordObjectEvent(const ObjectKey& object, EventType type, const std::string& reason,
                         const std::string& message) override EXCLUDES(mu_);

  // Records an event of the node itself, which is never forgotten.
  void RecordNodeEvent(EventType type, const std::string& reason, const std::string& message)
      EXCLUDES(mu_);

  // Sorted by when they were last seen, the oldest first.
  std::vector<KeptEvent> Snapshot(const EventSubject& subject) const EXCLUDES(mu_);
  std::vector<KeptEvent> NodeSnapshot() const { return Snapshot(PodUid()); }
  // All events that came, or were counted up, after this sequence number; the oldest first. Zero
  // gives all that are kept; what was pushed out since is not among them.
  std::vector<LoggedEvent> Since(uint64_t sequence) const EXCLUDES(mu_);
  // Forgets the subject with all its events, as if none had come; its listeners are not told.
  void Forget(const EventSubject& subject) EXCLUDES(mu_);

  // `listener` is called after each event, on the thread that recorded it, without a lock held. It
  // must not block, and may be called once more after it was removed. The number is for
  // RemoveListener().
  uint64_t AddListener(std::function<void()> listener) EXCLUDES(mu_);
  void RemoveListener(uint64_t id) EXCLUDES(mu_);

 private:
  struct Entry {
    KeptEvent event;
    uint64_t sequence = 0;
    bool combined = false;
  };
  // Events of one type and reason.
  struct Similar {
    std::set<std::string> messages;  // at most kSimilarEvents
    int64_t last_unix_ms = 0;
  };
  struct SubjectEvents {
    std::deque<Entry> events;  // the newest is the last
    std::map<std::pair<EventType, std::string>, Similar> similar;
    uint64_t touched = 0;  // sequence_ at the last event
  };

  static bool Combines(SubjectEvents& kept, const KeptEvent& event);
  void Record(EventSubject subject, EventType type, const std::string& reason,
              const std::string& message) EXCLUDES(mu_);
  void DropMostSilent() REQUIRES(mu_);

  const Clock& clock_;
  const size_t events_per_subject_;
  const size_t max_subjects_;
  mutable Mutex mu_;
  std::map<EventSubject, SubjectEvents> subjects_ GUARDED_BY(mu_);
  uint64_t sequence_ GUARDED_BY(mu_) = 0;
  std::map<uint64_t, std::function<void()>> listeners_ GUARDED_BY(mu_);
  uint64_t next_listener_ GUARDED_BY(mu_) = 1;
};

}  // namespace volumed
