#include "volumehost/event_log.h"

#include <algorithm>
#include <utility>

namespace volumed {

std::string_view EventTypeName(EventType type) {
  switch (type) {
    case EventType::kNormal:
      return "Normal";
    case EventType::kWarning:
      return "Warning";
  }
  return "Unknown";
}

EventLog::EventLog(const Clock& clock, size_t events_per_subject, size_t subjects)
    : clock_(clock), events_per_subject_(events_per_subject), max_subjects_(subjects) {}

void EventLog::RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                              const std::string& message) {
  Record(pod, type, reason, message);
}

void EventLog::RecordObjectEvent(const ObjectKey& object, EventType type, const std::string& reason,
                                 const std::string& message) {
  Record(object, type, reason, message);
}

void EventLog::RecordNodeEvent(EventType type, const std::string& reason,
                               const std::string& message) {
  Record(PodUid(), type, reason, message);
}

bool EventLog::Combines(SubjectEvents& kept, const KeptEvent& event) {
  Similar& similar = kept.similar[{event.type, event.reason}];
  if (event.last_unix_ms - similar.last_unix_ms > kSimilarWithinMs) similar.messages.clear();
  similar.last_unix_ms = event.last_unix_ms;
  if (similar.messages.size() < kSimilarEvents) similar.messages.insert(event.message);
  return similar.messages.size() >= kSimilarEvents;
}

void EventLog::Record(EventSubject subject, EventType type, const std::string& reason,
                      const std::string& message) {
  const int64_t now = clock_.WallUnixMillis();
  KeptEvent event{type, reason, message, 0, now, now};
  std::map<uint64_t, std::function<void()>> listeners;
  {
    MutexLock lock(mu_);
    SubjectEvents& kept = subjects_[std::move(subject)];
    kept.touched = ++sequence_;
    std::deque<Entry>& events = kept.events;
    const bool combined = Combines(kept, event);
    const auto same = std::find_if(events.begin(), events.end(), [&](const Entry& entry) {
      return entry.combined == combined && entry.event.type == event.type &&
             entry.event.reason == event.reason &&
             (combined || entry.event.message == event.message);
    });
    if (combined) event.message = "(combined from similar events): " + event.message;
    if (same != events.end()) {
      event.first_unix_ms = same->event.first_unix_ms;
      event.count = same->event.count;
      events.erase(same);
    }
    ++event.count;
    events.push_back({std::move(event), sequence_, combined});
    while (events.size() > events_per_subject_) events.pop_front();
    if (subjects_.size() > max_subjects_) DropMostSilent();
    listeners = listeners_;
  }
  for (const auto& [id, listener] : listeners) listener();
}

void EventLog::DropMostSilent() {
  const EventSubject node = PodUid();
  auto silent = subjects_.end();
  for (auto at = subjects_.begin(); at != subjects_.end(); ++at) {
    if (at->first == node) continue;
    if (silent == subjects_.end() || at->second.touched < silent->second.touched) silent = at;
  }
  if (silent != subjects_.end()) subjects_.erase(silent);
}

std::vector<KeptEvent> EventLog::Snapshot(const EventSubject& subject) const {
  MutexLock lock(mu_);
  std::vector<KeptEvent> events;
  const auto found = subjects_.find(subject);
  if (found == subjects_.end()) return events;
  for (const Entry& entry : found->second.events) events.push_back(entry.event);
  return events;
}

std::vector<LoggedEvent> EventLog::Since(uint64_t sequence) const {
  std::vector<LoggedEvent> all;
  {
    MutexLock lock(mu_);
    for (const auto& [subject, kept] : subjects_) {
      if (kept.touched <= sequence) continue;
      for (const Entry& entry : kept.events) {
        if (entry.sequence > sequence) all.push_back({subject, entry.event, entry.sequence});
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const LoggedEvent& a, const LoggedEvent& b) { return a.sequence < b.sequence; });
  return all;
}

uint64_t EventLog::AddListener(std::function<void()> listener) {
  MutexLock lock(mu_);
  listeners_[next_listener_] = std::move(listener);
  return next_listener_++;
}

void EventLog::RemoveListener(uint64_t id) {
  MutexLock lock(mu_);
  listeners_.erase(id);
}

void EventLog::Forget(const EventSubject& subject) {
  MutexLock lock(mu_);
  subjects_.erase(subject);
}

}  // namespace volumed
