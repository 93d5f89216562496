// PodWaiter: one Wait call. Sends the pod's view at once and after each change, and ends when the
// condition is met.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <optional>

#include "agent.pb.h"
#include "base/ids.h"
#include "base/scheduler.h"
#include "volumehost/event_log.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Threads: gRPC's callbacks only post; everything else happens on the control thread. Owns itself
// until gRPC says that the call is done.
class PodWaiter final : public grpc::ServerWriteReactor<v1::WaitResponse>,
                        public std::enable_shared_from_this<PodWaiter> {
 public:
  static grpc::ServerWriteReactor<v1::WaitResponse>* Start(Scheduler& scheduler,
                                                           VolumeManager& manager,
                                                           const EventLog& events,
                                                           v1::WaitRequest request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  PodWaiter(Scheduler& scheduler, VolumeManager& manager, const EventLog& events,
            v1::WaitRequest request)
      : scheduler_(scheduler), manager_(manager), events_(events), request_(std::move(request)) {}

  void Begin();
  void Changed(const PodUid& pod);
  void Send();
  void End(grpc::Status status);

  Scheduler& scheduler_;
  VolumeManager& manager_;
  const EventLog& events_;
  const v1::WaitRequest request_;

  std::shared_ptr<PodWaiter> self_;  // while gRPC may call
  std::optional<PodUid> pod_;
  uint64_t observer_ = 0;
  v1::WaitResponse response_;  // untouched while a write is in flight
  bool writing_ = false;
  bool dirty_ = false;
  bool ended_ = false;
};

}  // namespace volumed
