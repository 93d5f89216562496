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
  MutexLock lock(mu_);
  PodEvents& of_pod = pods_[pod];
  of_pod.touched = ++sequence_;
  std::deque<PodEvent>& events = of_pod.events;
  const auto same = std::find_if(events.begin(), events.end(), [&](const PodEvent& event) {
    return event.type == type && event.reason == reason && event.message == message;
  });
  PodEvent event{type, reason, message, 0, now, now};
  if (same != events.end()) {
    event = std::move(*same);
    events.erase(same);
  }
  ++event.count;
  event.last_unix_ms = now;
  events.push_back(std::move(event));
  while (events.size() > events_per_pod_) events.pop_front();
  if (pods_.size() > max_pods_) DropMostSilentPod();
}

void EventLog::DropMostSilentPod() {
  const auto silent = std::min_element(
      pods_.begin(), pods_.end(),
      [](const auto& a, const auto& b) { return a.second.touched < b.second.touched; });
  pods_.erase(silent);
}

std::vector<PodEvent> EventLog::Snapshot(const PodUid& pod) const {
  MutexLock lock(mu_);
  const auto found = pods_.find(pod);
  if (found == pods_.end()) return {};
  return {found->second.events.begin(), found->second.events.end()};
}

void EventLog::ForgetPod(const PodUid& pod) {
  MutexLock lock(mu_);
  pods_.erase(pod);
}

}  // namespace volumed
