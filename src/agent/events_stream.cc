#include "agent/events_stream.h"

#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "agent/pod_lookup.h"
#include "agent/view_codec.h"

namespace volumed {
namespace {

// The limit for one answer; if there are more, the oldest are left out.
constexpr size_t kMaxShown = 500;

}  // namespace

Status EventsStream::Begin() {
  const v1::ObjectRef& asked = request_.object();
  if (!asked.kind().empty()) {
    kind_ = ParseObjectKind(asked.kind());
    if (!kind_) {
      return Error::NotApplied(Code::kInvalidArgument, "unknown kind '" + asked.kind() + "'");
    }
  }
  if (!asked.name().empty() || !asked.uid().empty()) {
    ASSIGN_OR_RETURN(subject_, FindSubject());
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

Result<EventSubject> EventsStream::FindSubject() {
  const v1::ObjectRef& asked = request_.object();
  const ObjectKind kind = kind_.value_or(ObjectKind::kPod);
  if (kind == ObjectKind::kPod) {
    ASSIGN_OR_RETURN(PodUid pod, FindPodUid(backend().manager, asked, backend().node));
    return EventSubject(std::move(pod));
  }
  if (kind == ObjectKind::kNode && asked.name() == backend().node.str()) {
    return EventSubject(PodUid());
  }
  ObjectKey key{kind, "", asked.name()};
  if (!IsClusterScoped(kind)) {
    key.name_space = asked.namespace_().empty() ? "default" : asked.namespace_();
  }
  if (!backend().catalog.FindObject(key) && backend().events.Snapshot(key).empty()) {
    return Error::NotApplied(Code::kNotFound, "no " + ToString(key));
  }
  return EventSubject(std::move(key));
}

std::optional<v1::ObjectRef> EventsStream::RefOf(const EventSubject& subject) {
  if (subject_ && *subject_ != subject) return std::nullopt;
  std::optional<v1::ObjectRef> ref = MakeRef(subject);
  if (!ref || subject_) return ref;
  const std::string& name_space = request_.object().namespace_();
  const bool other_place = !name_space.empty() && ref->namespace_() != name_space;
  const bool other_kind = kind_ && ref->kind() != ObjectKindName(*kind_);
  if (other_place || other_kind) return std::nullopt;
  return ref;
}

std::optional<v1::ObjectRef> EventsStream::MakeRef(const EventSubject& subject) {
  if (const ObjectKey* key = std::get_if<ObjectKey>(&subject)) {
    v1::ObjectRef ref = MakeObjectRef(*key);
    if (const ObjectPtr object = backend().catalog.FindObject(*key)) {
      ref.set_uid(MetaOf(*object).uid);
    }
    return ref;
  }
  const PodUid& pod = std::get<PodUid>(subject);
  if (pod.empty()) return MakeObjectRef({ObjectKind::kNode, "", backend().node.str()});
  const std::optional<PodView> view = backend().manager.pods().Find(pod);
  if (!view) return std::nullopt;
  return MakePodRef(*view);
}

Result<EventsStream::Next> EventsStream::Fill(v1::WatchEventsResponse* response) {
  std::vector<v1::ObjectEvent> events;
  std::map<EventSubject, std::optional<v1::ObjectRef>> refs;  // builds a pod's view once
  for (const LoggedEvent& logged : backend().events.Since(sent_)) {
    sent_ = logged.sequence;
    auto [ref, is_new] = refs.try_emplace(logged.subject);
    if (is_new) ref->second = RefOf(logged.subject);
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
