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

EventLog::EventLog(const Clock& clock, size_t events_per_pod, size_t pods)
    : clock_(clock), events_per_pod_(events_per_pod), max_pods_(pods) {}

void EventLog::RecordPodEvent(const PodUid& pod, EventType type, const std::string& reason,
                              const std::string& message) {
  const int64_t now = clock_.WallUnixMillis();
  Record(pod, {type, reason, message, 0, now, now});
}

void EventLog::RecordNodeEvent(EventType type, const std::string& reason,
                               const std::string& message) {
  RecordPodEvent(PodUid(), type, reason, message);
}

bool EventLog::Combines(PodEvents& of_pod, const PodEvent& event) {
  Similar& similar = of_pod.similar[{event.type, event.reason}];
  if (event.last_unix_ms - similar.last_unix_ms > kSimilarWithinMs) similar.messages.clear();
  similar.last_unix_ms = event.last_unix_ms;
  if (similar.messages.size() < kSimilarEvents) similar.messages.insert(event.message);
  return similar.messages.size() >= kSimilarEvents;
}

void EventLog::Record(const PodUid& pod, PodEvent event) {
  std::map<uint64_t, std::function<void()>> listeners;
  {
    MutexLock lock(mu_);
    PodEvents& of_pod = pods_[pod];
    of_pod.touched = ++sequence_;
    std::deque<Entry>& events = of_pod.events;
    const bool combined = Combines(of_pod, event);
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
    while (events.size() > events_per_pod_) events.pop_front();
    if (pods_.size() > max_pods_) DropMostSilentPod();
    listeners = listeners_;
  }
  for (const auto& [id, listener] : listeners) listener();
}

void EventLog::DropMostSilentPod() {
  auto silent = pods_.end();
  for (auto at = pods_.begin(); at != pods_.end(); ++at) {
    if (at->first.empty()) continue;  // the node
    if (silent == pods_.end() || at->second.touched < silent->second.touched) silent = at;
  }
  if (silent != pods_.end()) pods_.erase(silent);
}

std::vector<PodEvent> EventLog::Snapshot(const PodUid& pod) const {
  MutexLock lock(mu_);
  std::vector<PodEvent> events;
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return events;
  for (const Entry& entry : found->second.events) events.push_back(entry.event);
  return events;
}

std::vector<LoggedEvent> EventLog::Since(uint64_t sequence) const {
  std::vector<LoggedEvent> all;
  {
    MutexLock lock(mu_);
    for (const auto& [pod, of_pod] : pods_) {
      if (of_pod.touched <= sequence) continue;
      for (const Entry& entry : of_pod.events) {
        if (entry.sequence > sequence) all.push_back({pod, entry.event, entry.sequence});
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

void EventLog::ForgetPod(const PodUid& pod) {
  MutexLock lock(mu_);
  pods_.erase(pod);
}

}  // namespace volumed
