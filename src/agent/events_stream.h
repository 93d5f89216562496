// EventsStream: one WatchEvents call.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "kube/objects.h"
#include "volumehost/event_log.h"

namespace volumed {

// Threads: as ControlStream. An event that is counted up is sent again, with its new count.
class EventsStream final : public ControlStream<v1::WatchEventsResponse> {
 public:
  EventsStream(ControlBackend& backend, v1::WatchEventsRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  Status Begin() override;
  Result<Next> Fill(v1::WatchEventsResponse* response) override;
  void Unsubscribe() override;

  // The one that is named. Errors, not applied: NotFound when it is neither there nor told of.
  Result<EventSubject> FindSubject();
  // Whom the event is about; nothing when it was not asked for.
  std::optional<v1::ObjectRef> RefOf(const EventSubject& subject);
  std::optional<v1::ObjectRef> MakeRef(const EventSubject& subject);

  const v1::WatchEventsRequest request_;
  std::optional<ObjectKind> kind_;       // the only one that is asked for
  std::optional<EventSubject> subject_;  // the only one that is asked for
  uint64_t listener_ = 0;
  uint64_t sent_ = 0;  // the sequence number up to which all were looked at
};

}  // namespace volumed
