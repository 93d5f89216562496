// The pod that alone may have a volume (ReadWriteOncePod): the record of the volume's device says
// which, from before the volume is set up until it is taken from the pod, over a kill and a power
// loss. Only the operations' own source files include this.
#pragma once

#include <vector>

#include "operation/operation_parts.h"
#include "operation/step_runner.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"

namespace volumed {

// Threads: any. Blocks: only the steps, on the store and the mount table.

// Adds the step "TakeOnlyPod" for a volume that only one pod may have and that has a device: a
// volume without one has no record for it. Its error, not applied, names the pod that has it:
// FailedPrecondition, also for a pod whose mount is on no record; or is the store's, or that of
// ListMounts. `request` outlives the step.
void AddTakeOnlyPod(const OperationParts& parts, const MountRequest& request,
                    std::vector<Step>& steps);

// After a set-up that has failed: gives the volume back if nothing of it is there.
void GiveBackOnlyPod(const OperationParts& parts, const MountRequest& request);

// Adds the step "ReleaseOnlyPod", the last one of a teardown: as long as it fails the row stays, so
// that it is made again.
void AddReleaseOnlyPod(const OperationParts& parts, const PodVolumeRecord& facts,
                       std::vector<Step>& steps);

}  // namespace volumed
