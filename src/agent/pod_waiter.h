// PodWaiter: one Wait call. Sends the pod's view at once and after each change, and ends when the
// condition is met. A call that waits for a pod to be ready ends with NotFound as soon as it is
// certain that there is no such pod; "create" waits for it to come.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "base/ids.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: as ControlStream.
class PodWaiter final : public ControlStream<v1::WaitResponse> {
 public:
  PodWaiter(ControlBackend& backend, v1::WaitRequest request)
      : ControlStream(backend), request_(std::move(request)) {}

 private:
  Status Begin() override;
  Result<Next> Fill(v1::WaitResponse* response) override;
  void Unsubscribe() override;

  // The pod that is waited for, as it is now; nullopt if there is none.
  std::optional<PodView> Look();

  const v1::WaitRequest request_;
  std::optional<PodUid> pod_;
  uint64_t observer_ = 0;
};

}  // namespace volumed
