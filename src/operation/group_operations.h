// The set-up, and the teardown, of several volumes of one pod as one operation: their intents are
// written together, one composite request makes all of them, and their outcomes are written
// together. State, outcome and error stay those of each volume: one that cannot be tried yet, or
// that fails, leaves the others as they are. For volumes that need no device and lie on the agent's
// own filesystem. Used by MountVolume and UnmountVolume.
#pragma once

#include <vector>

#include "operation/mount_operations.h"
#include "operation/operation.h"
#include "operation/operation_executor.h"
#include "operation/volume_record.h"
#include "os/fault_domain.h"
#include "pluginmgr/volume_plugin.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Whether the volume may be made together with others of its pod: it has no device and no storage
// that could be somebody else's, and hangs with nothing but the agent's own filesystem. Of a
// teardown its record says so; what was handed out as it is may be taken away with the others,
// for nobody looks there. Threads: any. Blocks: never.
bool CanBeGrouped(const MountRequest& request, const VolumePlugin& plugin);
bool CanBeGrouped(const UnmountRequest& request, const PodVolumeRecord& record,
                  const VolumePlugin& plugin);

// Something is mounted in the directory that covers the volume, or that lies in it and may hang: no
// other volume is to wait for it. `mounts`: FaultDomains::MountsAround of the directory. Pure.
bool IsCovered(const KubeletPaths& paths, const VolumePlace& volume,
               const std::vector<FaultDomains::KnownMount>& mounts);

// What is mounted over a directory on the way to the volume: effects would be made in somebody's
// filesystem, and the pod's own things below it be taken for gone.
// Errors: FailedPrecondition, not applied, naming it; those of ListMounts. Blocks: never for long.
Status CheckNotCovered(const VolumeHost& host, const VolumePlace& volume, const CallOptions& call);

// Both: an answer for each operation, in their order; nothing where it was done. A volume whose
// plugin has no effect for it after all is run alone, after the others. All are of one pod, and of
// different volumes. Threads: one at a time per volume. Blocks: until the deadlines and the store.
OperationFailures RunMountGroup(const OperationParts& parts,
                                const std::vector<const MountVolume*>& all,
                                const std::vector<MountedVolume*>& results,
                                OperationProgress& progress);
OperationFailures RunUnmountGroup(const OperationParts& parts,
                                  const std::vector<const UnmountVolume*>& all,
                                  OperationProgress& progress);

}  // namespace volumed
