// What the operations ask of a place that a CO gave (given_place.h) before they put a volume there,
// and before they take it away. Nobody else is asked: no reconciler looks after these places. Only
// the operations' own source files include this.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "operation/operation_parts.h"
#include "operation/step_runner.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"
#include "os/kernel.h"

namespace volumed {

// Threads: any. Blocks: until the call's deadline.

// For a device: the CO has made the directory. Errors, not applied: those of CheckGivenPlace;
// NotFound if it is missing; FailedPrecondition if it is no directory; those of Stat, also for a
// link on the way.
Status CheckPlaceOfDevice(const OperationParts& parts, const SafePath& place,
                          const CallOptions& call);

// The same as a step of a mount, if its request gives a place. All arguments outlive the step.
void AddCheckPlaceOfDevice(const OperationParts& parts, const MountDeviceRequest& request,
                           std::vector<Step>& steps);

// For a volume at a target: the CO has made the target's parent, nothing is mounted over that,
// nothing is in the target, be it a directory or a file, and what is mounted there is nothing but
// this volume: from `device`, if that has a place. The target does not lie in that place either.
// Errors, not applied: as of CheckPlaceOfDevice, of the parent; FailedPrecondition, naming the
// mount; those of ListMounts.
Status CheckTarget(const OperationParts& parts, const PodVolumeKey& key, const SafePath& place,
                   const std::optional<SafePath>& device, const CallOptions& call);

// The same before the volume of these facts is taken from its target; a parent that is missing is
// success, as nothing is there then. Of a block volume it is not asked what is mounted there: only
// a node is ever unbound. REQUIRES: the facts have a place that a CO gave.
Status CheckTargetOfTeardown(const OperationParts& parts, const PodVolumeRecord& facts,
                             const CallOptions& call);

// What became of a target from which a volume was taken: `removed`, or success if that is an error
// and what is there, with nothing mounted at it, is nothing that was made for the volume (a file
// with content, a directory with something in it, a fifo ...). That stays, and the log says so:
// whoever may write beside a target has put it there, and no repeated call would ever end. A link
// is never such a thing.
Status LeaveForeign(const OperationParts& parts, const SafePath& place, bool is_block,
                    const Status& removed, const CallOptions& call);

// Where the device of the volume is by its row, if a CO gave that place. Blocks: never.
std::optional<SafePath> GivenPlaceOfDevice(const OperationParts& parts,
                                           const UniqueVolumeName& device);

}  // namespace volumed
