// Set-up and teardown of several volumes of one pod as one operation: their intents are written
// together, one composite request makes all of them, and their outcomes are written together. Each
// volume keeps a state, outcome and error of its own: one that cannot be tried yet, or that fails,
// leaves the others as they are. This is for volumes that need no device and lie on the agent's own
// filesystem. MountVolume and UnmountVolume use it.
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
// that could belong to others, and depends on no filesystem but the agent's own. For a teardown the
// volume's record decides; a volume that was handed out as it is may be taken away with the others,
// since its teardown does not touch its place. Threads: any. Blocks: never.
bool CanBeGrouped(const MountRequest& request, const VolumePlugin& plugin);
bool CanBeGrouped(const UnmountRequest& request, const PodVolumeRecord& record,
                  const VolumePlugin& plugin);

// Whether a mount covers the volume, or lies in it and may hang; other volumes must not wait for
// such a volume. `mounts` is FaultDomains::MountsAround of the directory. This function is pure.
bool IsCovered(const KubeletPaths& paths, const VolumePlace& volume,
               const std::vector<FaultDomains::KnownMount>& mounts);

// Checks that nothing is mounted over a directory on the way to the volume. Otherwise effects would
// be made in a foreign filesystem, and the pod's own things below it would seem to be gone.
// Errors: FailedPrecondition, not applied, naming the mount; those of ListMounts. Blocks: for a
// question to the mount table.
Status CheckNotCovered(const VolumeHost& host, const VolumePlace& volume, const CallOptions& call);

// Both answer for each operation, in their order; nullopt if it was done. A volume for which its
// plugin has no effect after all is run alone, after the others. REQUIRES: all volumes are of one
// pod, and differ. Threads: one at a time per volume. Blocks: until the deadlines and the store. A
// volume that can only be tried by itself has `left_out` set in its result, and no failure.
OperationFailures RunMountGroup(const OperationParts& parts,
                                const std::vector<const MountVolume*>& all,
                                const std::vector<MountedVolume*>& results,
                                OperationProgress& progress);
OperationFailures RunUnmountGroup(const OperationParts& parts,
                                  const std::vector<const UnmountVolume*>& all,
                                  OperationProgress& progress);

}  // namespace volumed
