// The operations on a volume that its claim has left: its storage is deleted, or scrubbed for the
// next claim. The record of the binding is their intent: it says "released" until they are done,
// and both may be repeated. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (recycleVolumeOperation,
// deleteVolumeOperation).
#pragma once

#include <optional>

#include "base/log.h"
#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"

namespace volumed {

// All outlive the call.
struct ReclaimParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  const OperationSettings& settings;
  Logger& logger;
  StorageGuard& storage;
};

// "volume_delete", "volume_recycle". REQUIRES: an action.
const char* ReclaimOperationName(ReclaimAction action);

// Threads: one at a time per volume. Blocks: until the volume is reclaimed.
// Errors: FailedPrecondition, not applied, of the StorageGuard: somebody else's data may be there;
// when no plugin can do it, not applied, in the words of the controller's event; those of
// the plugin. Events go to the PersistentVolume: RecyclerPod, VolumeRecycled, VolumeFailedRecycle,
// VolumeFailedDelete, and VolumeDelete while it is in use.
std::optional<OperationFailure> RunReclaim(const ReclaimParts& parts, const ReclaimRequest& request,
                                           const VolumeSpec& spec, OperationProgress& progress);

}  // namespace volumed
