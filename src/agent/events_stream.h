// EventsStream: one WatchEvents call.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "kube/objects.h"
#include "volumehost/event_log.h"

namespace volumed {

// Threads: as ControlStream. An event whose count has grown is sent again, with the new count. An
// answer has the newest 500 events at most, and says how many it left out. Without `follow` there
// is one answer. Errors, not applied: InvalidArgument for an unknown kind; those of FindSubject().
class EventsStream final : public ControlStream<v1::WatchEventsResponse> {
 public:
  EventsStream(ControlBackend& backend, v1::WatchEventsRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  Status Begin() override;
  Result<Next> Fill(v1::WatchEventsResponse* response) override;
  void Unsubscribe() override;

  // The subject that the request names. Errors, not applied: NotFound if the object does not exist
  // and no event is about it.
  Result<EventSubject> FindSubject();
  // The object that the event is about; nullopt if the request did not ask for it.
  std::optional<v1::ObjectRef> RefOf(const EventSubject& subject);
  std::optional<v1::ObjectRef> MakeRef(const EventSubject& subject);

  const v1::WatchEventsRequest request_;
  std::optional<ObjectKind> kind_;       // the only kind that the request asks for
  std::optional<EventSubject> subject_;  // the only subject that the request asks for
  uint64_t listener_ = 0;
  uint64_t sent_ = 0;  // events up to this sequence number have been looked at
};

}  // namespace volumed
