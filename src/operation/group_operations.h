// The set-up, and the teardown, of several volumes of one pod as one operation: their intents are
// written together, one composite request makes all of them, and their outcomes are written
// together. State, outcome and error stay those of each volume: one that cannot be tried yet, or
// that fails, leaves the others as they are. For volumes that need no device and lie on the agent's
// own filesystem. Used by PodVolumeOperations.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"
#include "os/fault_domain.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"

namespace volumed {

// All outlive the call.
struct GroupOperationParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  const OperationSettings& settings;
  VolumeRecordKeeper& keeper;
};

using OperationFailures = std::vector<std::optional<OperationFailure>>;

// Whether the volume may be made together with others of its pod: it has no device and no storage
// that could be somebody else's, and hangs with nothing but the agent's own filesystem. Of a
// teardown its record says so. Threads: any. Blocks: never.
bool CanBeGrouped(const MountRequest& request, const VolumePlugin& plugin);
bool CanBeGrouped(const UnmountRequest& request, const VolumeRecordKeeper& keeper);

// Something is mounted in the pod's directory that covers the volume, or that lies in it and may
// hang: no other volume is to wait for it. `mounts`: FaultDomains::MountsAround of the pod's
// directory; `volume`: the volume's. Pure.
bool IsCovered(const KubeletPaths& paths, const PodVolumeKey& key, const SafePath& volume,
               const std::vector<FaultDomains::KnownMount>& mounts);

// What is mounted over a directory of the pod on the way to this one: effects would be made in
// somebody's filesystem, and the pod's own things below it be taken for gone.
// Errors: FailedPrecondition, not applied, naming it; those of ListMounts. Blocks: never for long.
Status CheckNotCovered(const VolumeHost& host, const PodUid& pod, const SafePath& directory,
                       const CallOptions& call);

// Both: an answer for each request, in their order; nothing where it was done. A volume whose
// plugin has no effect for it after all is given to `run_alone`, with its number, after the others.
// All are of one pod, and of different volumes. Threads: one at a time per volume. Blocks: until
// the deadlines and the store.
OperationFailures RunMountGroup(
    const GroupOperationParts& parts, const std::vector<const MountRequest*>& requests,
    const std::vector<MountedVolume*>& results, OperationProgress& progress,
    const std::function<std::optional<OperationFailure>(size_t number)>& run_alone);
OperationFailures RunUnmountGroup(
    const GroupOperationParts& parts, const std::vector<const UnmountRequest*>& requests,
    OperationProgress& progress,
    const std::function<std::optional<OperationFailure>(size_t number)>& run_alone);

}  // namespace volumed
