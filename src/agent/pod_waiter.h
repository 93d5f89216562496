// PodWaiter: one Wait call. Sends the pod's view at once and after each change, and ends when the
// condition is met.
#pragma once

#include <optional>

#include "agent.pb.h"
#include "agent/control_stream.h"
#include "base/ids.h"

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

  const v1::WaitRequest request_;
  std::optional<PodUid> pod_;
  uint64_t observer_ = 0;
};

}  // namespace volumed
