// AttachVerifier: asks plugins whether the volumes that pods want are still attached: at the start,
// before anything that was found is used, and from time to time. A plugin is asked about all its
// volumes in one call, never about a single one.
// Source: kubernetes pkg/controller/volume/attachdetach/reconciler/reconciler.go@v1.36.2
// (syncStates) and pkg/volume/util/operationexecutor/operation_executor.go@v1.36.2
// (VerifyVolumesAreAttached).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/scheduler.h"
#include "operation/attach_requests.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"
#include "volumemanager/devices/verify_attached_period.h"
#include "volumemanager/reconcile_queue.h"

namespace volumed {

// Threads: the control thread. Blocks: never; plugins are asked by an operation. Errors: none; a
// question that failed is asked again with back-off, and FailureOf() tells of it. Only devices that
// pods want are asked about, and none on which an operation runs; an answer that an operation has
// overtaken is ignored.
class AttachVerifier {
 public:
  // All members outlive this object.
  struct Parts {
    Scheduler& scheduler;
    const VolumePluginMgr& plugins;
    const DesiredStateOfWorld& desired;
    ActualStateOfWorld& actual;
    VolumeOperations& operations;
  };
  // Both have to be set.
  struct Hooks {
    // The plugin's answer about this device differs from the last one, or is the first.
    std::function<void(const UniqueVolumeName&)> verified;
    // The question could not be answered: the device may be shown to wait for another reason.
    std::function<void(const UniqueVolumeName&)> failed;
  };

  AttachVerifier(Parts parts, Hooks hooks);
  AttachVerifier(const AttachVerifier&) = delete;
  AttachVerifier& operator=(const AttachVerifier&) = delete;

  // Nothing is asked before this is called.
  void Start() { queue_.Start(); }
  // How often a plugin is asked again. Zero: only about devices that were found and not verified
  // yet.
  void SetPeriod(Duration period);
  // A device of the plugin was attached, or was found and is not verified yet.
  void MarkDirty(const std::string& plugin_name) { queue_.MarkDirty(plugin_name); }

  // Why the plugin's answer is missing; null if the last question did not fail. The pointer is
  // valid until the next change.
  const FailureHistory* FailureOf(const std::string& plugin_name) const;

 private:
  struct Asked {
    TimePoint last_answer;  // or when there was first something to ask about
    std::optional<FailureHistory> failure;
  };

  void Reconcile(const std::string& plugin_name, Wake& wake);
  // When the plugin is to be asked again; nullopt: never.
  std::optional<TimePoint> NextTime(const std::string& plugin_name, TimePoint last) const;
  void Ask(const std::string& plugin_name, VerifyAttachedRequest request, Wake& wake);
  void Answered(const std::string& plugin_name, const std::map<UniqueVolumeName, uint64_t>& asked,
                const OperationOutcome<VerifiedAttachments>& outcome);

  Parts parts_;
  Hooks hooks_;
  Duration period_ = kVerifyAttachedPeriod;
  std::map<std::string, Asked> plugins_;
  ReconcileQueue<std::string> queue_;
  AliveGuard alive_;
};

}  // namespace volumed
