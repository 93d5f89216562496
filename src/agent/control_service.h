// ControlService: the handlers of the control API, for peers of one role. Handlers run on gRPC's
// threads; they ask the control thread for what belongs to the domain, and give blocking work to
// the scheduler.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent.grpc.pb.h"
#include "agent/config.h"
#include "agent/delete_commands.h"
#include "agent/kept_directories.h"
#include "agent/peer_role.h"
#include "agent/pod_list.h"
#include "agent/source_losses.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"
#include "os/worker_pool_stats.h"
#include "volumehost/event_log.h"
#include "volumehost/recovery_gate.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

// Called on the control thread with the steps that were held back and are permitted now.
using RecordsAccepted = std::function<void(const Result<std::vector<HeldStep>>&)>;

// The parts that the handlers work on; all outlive the handlers. The catalog, the manager and the
// functions are used on the control thread only.
struct ControlBackend {
  Scheduler& scheduler;
  Logger& log;
  ObjectCatalog& catalog;
  ObjectDirectory& directory;
  VolumeManager& manager;
  EventLog& events;
  const VolumeOperations& operations;
  Kernel& kernel;
  NodeName node;
  KernelFeatures features;
  RecoveryGate& recovery;
  std::function<void(const std::optional<std::string>& volume, RecordsAccepted done)>
      accept_records;
  std::function<void(const std::string& volume,
                     std::function<void(const Result<AcceptedDirectory>&)> done)>
      accept_volume;
  const SourceLosses& losses;
  // The files of a manifest directory that are not read because of their names.
  std::function<std::set<std::string>(const std::string& source)> unread_files;
  // With `dry_run` these two only say whether the step is allowed.
  std::function<Status(const std::string& source, bool dry_run)> accept_source;
  std::function<Status(const std::string& source, bool dry_run)> forget_source;
  std::function<v1::GetStatusResponse()> status;
  std::function<std::vector<StuckOperation>()> stuck;
  int open_streams = 0;
};

// Threads: any (gRPC's). Each method answers PermissionDenied, naming the role that it needs, to a
// peer with a lower role.
class ControlService final : public v1::VolumeAgent::CallbackService {
 public:
  ControlService(ControlBackend& backend, PeerRole role) : backend_(backend), role_(role) {}

  grpc::ServerUnaryReactor* Apply(grpc::CallbackServerContext* context,
                                  const v1::ApplyRequest* request,
                                  v1::ApplyResponse* response) override;
  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteRequest* request,
                                   v1::DeleteResponse* response) override;
  grpc::ServerUnaryReactor* DeleteObjects(grpc::CallbackServerContext* context,
                                          const v1::DeleteObjectsRequest* request,
                                          v1::DeleteObjectsResponse* response) override;
  grpc::ServerUnaryReactor* GetPods(grpc::CallbackServerContext* context,
                                    const v1::GetPodsRequest* request,
                                    v1::GetPodsResponse* response) override;
  grpc::ServerWriteReactor<v1::WaitResponse>* Wait(grpc::CallbackServerContext* context,
                                                   const v1::WaitRequest* request) override;
  grpc::ServerUnaryReactor* Hold(grpc::CallbackServerContext* context,
                                 const v1::HoldRequest* request,
                                 v1::HoldResponse* response) override;
  grpc::ServerUnaryReactor* ReleaseHold(grpc::CallbackServerContext* context,
                                        const v1::HoldRequest* request,
                                        v1::HoldResponse* response) override;
  grpc::ServerUnaryReactor* Retry(grpc::CallbackServerContext* context,
                                  const v1::RetryRequest* request,
                                  v1::RetryResponse* response) override;
  grpc::ServerUnaryReactor* GetSources(grpc::CallbackServerContext* context,
                                       const v1::GetSourcesRequest* request,
                                       v1::GetSourcesResponse* response) override;
  grpc::ServerUnaryReactor* AcceptSource(grpc::CallbackServerContext* context,
                                         const v1::AcceptSourceRequest* request,
                                         v1::AcceptSourceResponse* response) override;
  grpc::ServerUnaryReactor* ForgetSource(grpc::CallbackServerContext* context,
                                         const v1::ForgetSourceRequest* request,
                                         v1::ForgetSourceResponse* response) override;
  grpc::ServerUnaryReactor* GetContainerMounts(grpc::CallbackServerContext* context,
                                               const v1::GetContainerMountsRequest* request,
                                               v1::GetContainerMountsResponse* response) override;
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest* request,
                                      v1::GetStatusResponse* response) override;
  grpc::ServerUnaryReactor* GetRecords(grpc::CallbackServerContext* context,
                                       const v1::GetRecordsRequest* request,
                                       v1::GetRecordsResponse* response) override;
  grpc::ServerUnaryReactor* AcceptRecords(grpc::CallbackServerContext* context,
                                          const v1::AcceptRecordsRequest* request,
                                          v1::AcceptRecordsResponse* response) override;
  grpc::ServerUnaryReactor* AcceptVolume(grpc::CallbackServerContext* context,
                                         const v1::AcceptVolumeRequest* request,
                                         v1::AcceptVolumeResponse* response) override;
  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* context,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerUnaryReactor* GetStorage(grpc::CallbackServerContext* context,
                                       const v1::GetStorageRequest* request,
                                       v1::GetStorageResponse* response) override;
  grpc::ServerUnaryReactor* ListObjects(grpc::CallbackServerContext* context,
                                        const v1::ListObjectsRequest* request,
                                        v1::ListObjectsResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchOperationsResponse>* WatchOperations(
      grpc::CallbackServerContext* context, const v1::WatchOperationsRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(
      grpc::CallbackServerContext* context, const v1::WatchEventsRequest* request) override;

 private:
  // Runs `work` on the control thread and finishes the call with its status.
  grpc::ServerUnaryReactor* OnControl(grpc::CallbackServerContext* context, PeerRole needed,
                                      std::function<Status()> work);
  // Adds pods to the list until it is complete, and then answers. Threads: the control thread.
  void ContinueList(grpc::ServerUnaryReactor* reactor, const std::shared_ptr<PodList>& list);
  grpc::ServerUnaryReactor* ChangeHold(grpc::CallbackServerContext* context,
                                       const v1::HoldRequest& request,
                                       void (PodCommands::*change)(HoldRequest,
                                                                   std::function<void(Status)>));
  // Writes the admitted objects and answers. Blocks: on disk.
  void Store(grpc::ServerUnaryReactor* reactor, v1::ApplyResponse* response, ApplyCommand* command);
  // Tries again what the request names. Returns the directories of `local` volumes that the answer
  // still has to look at. Threads: the control thread.
  Result<std::vector<KeptDirectory>> RetryPod(const v1::RetryRequest& request,
                                              v1::RetryResponse* response);
  bool Refuse(grpc::ServerUnaryReactor* reactor, PeerRole needed) const;

  ControlBackend& backend_;
  const PeerRole role_;
  DeleteCommands deletes_{backend_};
};

// The code is the same number in gRPC; the outcome goes into the message.
grpc::Status ToGrpcStatus(const Status& status);

}  // namespace volumed
