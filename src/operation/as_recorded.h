// A volume that a driver works for, after a restart of the agent: a certain record of this boot
// says that it is set up, and its pod runs. It is proven on the node alone, so that neither a call
// nor a driver that is away stands in its way; only a failed proof calls the driver. Only the
// operations' own source files include this.
#pragma once

#include "operation/operation_parts.h"
#include "operation/volume_requests.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never. Both are asked before the call is on record, since its intent makes
// the record uncertain.

bool IsProvenAsRecorded(const OperationParts& parts, const MountRequest& request,
                        const VolumePlugin& plugin);
bool IsProvenAsRecorded(const OperationParts& parts, const MountDeviceRequest& request,
                        const VolumePlugin& plugin);

// What a step that proves has answered: after a failed proof it is not known what is there.
inline Status AsProof(const Status& proven) {
  return proven.ok() ? proven : Status(proven.error().AsMaybeApplied());
}

}  // namespace volumed
