// ControlBackend: the parts of the agent that the handlers of the control API work on.
#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "agent/look_limit.h"
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
using RecordsAccepted = std::function<void(const Result<std::vector<PendingStep>>&)>;

// All parts outlive the handlers. The catalog, the manager and the functions are used on the
// control thread only.
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
  std::atomic<Duration> look_patience{std::chrono::seconds(5)};  // setting deadline-look

  LookLimit look_limit() const { return {scheduler.clock(), look_patience}; }
};

// The code is the same number in gRPC; the outcome goes into the message.
grpc::Status ToGrpcStatus(const Status& status);

}  // namespace volumed
