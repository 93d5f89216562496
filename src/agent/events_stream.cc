#include "agent/events_stream.h"

#include <map>
#include <vector>

#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {
namespace {

// In one answer; of more, the oldest are left out.
constexpr size_t kMaxShown = 500;

}  // namespace

Status EventsStream::Begin() {
  if (!request_.pod().name().empty() || !request_.pod().uid().empty()) {
    ASSIGN_OR_RETURN(pod_, FindPodUid(backend().manager, request_.pod()));
  }
  if (!request_.follow()) return OkStatus();
  listener_ =
      backend().events.AddListener([weak = weak_from_this(), &scheduler = backend().scheduler] {
        scheduler.Post([weak] {
          if (const auto self = weak.lock()) static_cast<EventsStream&>(*self).Send();
        });
      });
  return OkStatus();
}

void EventsStream::Unsubscribe() {
  if (listener_ != 0) backend().events.RemoveListener(listener_);
}

std::optional<v1::ObjectRef> EventsStream::RefOf(const PodUid& pod) {
  if (pod_ && *pod_ != pod) return std::nullopt;
  const std::string& name_space = request_.pod().namespace_();
  v1::ObjectRef ref;
  if (pod.empty()) {
    if (!name_space.empty()) return std::nullopt;
    ref.set_kind("Node");
    ref.set_name(backend().node.str());
    return ref;
  }
  const std::optional<PodView> view = backend().manager.FindPod(pod);
  if (!view || (!pod_ && !name_space.empty() && view->ns != name_space)) return std::nullopt;
  return MakePodRef(*view);
}

Result<EventsStream::Next> EventsStream::Fill(v1::WatchEventsResponse* response) {
  std::vector<v1::ObjectEvent> events;
  std::map<PodUid, std::optional<v1::ObjectRef>> refs;  // to build each pod's view once
  for (const LoggedEvent& logged : backend().events.Since(sent_)) {
    sent_ = logged.sequence;
    auto [ref, is_new] = refs.try_emplace(logged.pod);
    if (is_new) ref->second = RefOf(logged.pod);
    if (!ref->second) continue;
    v1::ObjectEvent& event = events.emplace_back();
    *event.mutable_object() = *ref->second;
    EncodeEvent(logged.event, event.mutable_event());
  }
  const size_t skip = events.size() > kMaxShown ? events.size() - kMaxShown : 0;
  response->set_not_shown(static_cast<int64_t>(skip));
  for (size_t i = skip; i < events.size(); ++i) *response->add_events() = std::move(events[i]);
  if (!request_.follow()) return Next::kLast;
  return events.empty() ? Next::kNothing : Next::kMore;
}

}  // namespace volumed
