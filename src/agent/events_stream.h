// EventsStream: one WatchEvents call.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "base/ids.h"

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

  // Whom the event is about; nothing when it was not asked for.
  std::optional<v1::ObjectRef> RefOf(const PodUid& pod);

  const v1::WatchEventsRequest request_;
  std::optional<PodUid> pod_;  // the only one that is asked for
  uint64_t listener_ = 0;
  uint64_t sent_ = 0;  // the sequence number up to which all were looked at
};

}  // namespace volumed
