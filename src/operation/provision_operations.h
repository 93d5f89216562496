// The operations on a volume that this node makes for a claim. The record that the volume manager
// has written before is their intent: it names the volume and its place, so that both may be
// repeated, and make or take away that one alone. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (provisionClaimOperation).
#pragma once

#include <optional>

#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"

namespace volumed {

// All outlive the call.
struct ProvisionParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  const OperationSettings& settings;
  StorageGuard& storage;
};

inline constexpr const char* kProvisionOperation = "volume_provision";
inline constexpr const char* kUndoProvisionOperation = "volume_undo_provision";

// Both: Threads: one at a time per volume. Blocks: until the volume is made, or is no more.
// Errors: those of the plugin; FailedPrecondition, not applied, for a plan that the plugin would
// not make any more (its directory was configured anew).
Result<PersistentVolume> RunProvision(const ProvisionParts& parts, const ProvisionRequest& request,
                                      OperationProgress& progress);
Status RunUndoProvision(const ProvisionParts& parts, const ProvisionRequest& request,
                        OperationProgress& progress);

}  // namespace volumed
