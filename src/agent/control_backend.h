// ControlBackend: the parts of the agent that the handlers of the control API work on.
#pragma once

#include <grpcpp/support/status.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "agent/csi_client.h"
#include "agent/forget_driver.h"
#include "agent/look_limit.h"
#include "agent/source_losses.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "csi/csi_debts.h"
#include "kube/object_catalog.h"
#include "kube/object_directory.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "os/kernel.h"
#include "os/worker_pool_stats.h"
#include "volumehost/event_log.h"
#include "volumehost/kubelet_paths.h"
#include "volumehost/recovery_gate.h"
#include "volumemanager/volume_manager.h"

namespace volumed {

class DepartedPods;
struct SnapshotBackend;

// The steps that were held back and are permitted now.
struct AcceptedSteps {
  std::vector<PendingStep> tried;
  std::vector<PendingStep> gone;  // nobody wants them any more, as when their claim was deleted
};
// Called on the control thread. Errors: those of RecoveryGate::Accept.
using RecordsAccepted = std::function<void(const Result<AcceptedSteps>&)>;

// All parts outlive the handlers. The catalog, the manager, the event log's listeners, the losses
// and the functions are used on the control thread only, but for `accept_records`. What waits on
// disk or for the kernel (Apply and DeletePods of the directory, calls of the kernel) is used on
// executor threads.
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
  // Accepts the records of one volume, or of all if it is nullopt, as RecoveryGate::Accept, whose
  // errors `done` gets. The volume is named as in PendingStep. Threads: any. Blocks: never.
  std::function<void(const std::optional<std::string>& volume, RecordsAccepted done)>
      accept_records;
  // From now on the directory at the path of this PersistentVolume, which exists now, is the
  // volume's. `done` is called on the control thread, at once if the command is refused. Errors:
  // FailedPrecondition, not applied, if the content of the directory would be deleted
  // (CheckAcceptVolume); Unavailable, not applied, if an operation looks at the volume's storage
  // right now; those of AcceptDirectory (operation/storage_operations.h).
  std::function<void(const std::string& volume,
                     std::function<void(const Result<AcceptedDirectory>&)> done)>
      accept_volume;
  const SourceLosses& losses;
  // The files of a manifest directory that are not read because of their names; empty for a source
  // of another kind, or one that is not configured.
  std::function<std::set<std::string>(const std::string& source)> unread_files;
  // With `dry_run` these two only say whether the step is allowed. Errors, not applied: NotFound if
  // there is no such source; FailedPrecondition if it is not configured (accept), or is configured
  // or is that of the volumes that were made here (forget).
  std::function<Status(const std::string& source, bool dry_run)> accept_source;
  std::function<Status(const std::string& source, bool dry_run)> forget_source;
  std::function<v1::GetStatusResponse()> status;
  // The calls whose workers could not be ended.
  std::function<std::vector<StuckOperation>()> stuck;
  // The CSI drivers. Null: there are none, as in tests of other things.
  CsiClient* csi = nullptr;
  // How many operations wait for drivers, by lane. Threads: the control thread.
  std::function<std::map<std::string, int>()> waiting_for_drivers = {};
  // How many volumes of drivers are here, by lane. Threads: the control thread.
  std::function<std::map<std::string, int>()> volumes_of_drivers = {};
  // By which calls that change something are made. Null: as of `csi`.
  VolumeOperations* driver_operations = nullptr;
  // What drivers are owed. Null: nothing.
  CsiDebts* csi_debts = nullptr;
  // What is here of a driver. Threads: the control thread. Set if `csi_debts` is.
  std::function<DriverTraces(const std::string& driver)> driver_traces = {};
  // Why a CSI driver cannot be asked now; "" if it can. Threads: the control thread. Empty: all
  // can.
  std::function<std::string(const std::string& driver)> why_driver_away = {};
  // The labels of this node. Empty: it has none but those of its object. Threads: any.
  std::function<std::map<std::string, std::string>()> node_labels = {};
  // Who has given them, by label: "node-labels", "CSI driver x"; none of those that each node has.
  // Empty: nobody knows. Threads: any.
  std::function<std::map<std::string, std::string>()> label_givers = {};
  // Setting csi-only: pods are not applied.
  bool csi_only = false;
  // The pools of this node and their snapshots. Null: there are none, as in tests of other things.
  SnapshotBackend* snapshots = nullptr;
  // Which pods have left. Null: nobody knows, as in tests of other things.
  const DepartedPods* departed = nullptr;
  // Where volumes lie. Null: no place counts as a volume's.
  const KubeletPaths* paths = nullptr;
  // How many calls of peers drivers have now. Threads: the control thread.
  int open_driver_calls = 0;
  // The longest that such a call may take: setting deadline-csi-call.
  std::atomic<Duration> driver_call_patience{std::chrono::minutes(2)};
  // How many streams are open, of all peers together. Threads: the control thread.
  int open_streams = 0;
  std::atomic<Duration> look_patience{std::chrono::seconds(5)};  // setting deadline-look

  // Threads: any.
  LookLimit look_limit() const { return {scheduler.clock(), look_patience}; }
};

// The code is the same number in gRPC. The message of an error that is maybe applied says so at its
// end. The details are an ErrorDetail with the outcome: by it a client tells an answer of the agent
// from what gRPC itself says if nobody answers. Threads: any.
grpc::Status ToGrpcStatus(const Status& status);

}  // namespace volumed
