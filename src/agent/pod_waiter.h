// PodWaiter: one Wait call. It sends the pod's view at once and after each change, and ends when
// the condition is met. A call that waits for a pod to be ready ends with NotFound as soon as it is
// certain that there is no such pod; with the condition "create" it waits for the pod to come.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "base/ids.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: as ControlStream. With the condition "gone" it stays with the first pod that it has
// found, since another pod of that name does not keep this one from being gone; with the others it
// goes on with the next pod of that name. Errors, not applied: InvalidArgument for an unknown
// condition or an empty reference; NotFound.
class PodWaiter final : public ControlStream<v1::WaitResponse> {
 public:
  PodWaiter(ControlBackend& backend, v1::WaitRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  Status Begin() override;
  Result<Next> Fill(v1::WaitResponse* response) override;
  void Unsubscribe() override;

  // The present view of the pod that the call waits for; nullopt if there is no such pod.
  std::optional<PodView> Look();

  const v1::WaitRequest request_;
  std::optional<PodUid> pod_;
  uint64_t observer_ = 0;
};

}  // namespace volumed
