// What is taken from the node without its driver, which is absent for longer than
// driver-absent-limit: only what the record of the volume and the mount table together show to be a
// plain mount of a local disk, and each only after it is on record that the driver is owed the call
// (csi/csi_debts.h). A detach is never made so.
#pragma once

#include <string>

#include "base/result.h"
#include "csi/csi_context.h"
#include "csi/csi_names.h"
#include "os/kernel.h"
#include "os/safe_path.h"

namespace volumed {

// Whether the driver may be done without. Threads: any. Blocks: never.
bool MayOwe(const CsiContext& context, const std::string& driver);

// Both have: Threads: one call at a time per place. Blocks: until the deadline. Errors: those of
// the store and of the unmount; Unavailable, not applied, with the reason, if it is no plain mount;
// Internal, maybe applied, if something is mounted there afterwards.
//
// In place of NodeUnpublishVolume: the target has to be a bind of what is staged by the volume's
// record, or of the device that the pod was given; or nothing is there.
Status UnpublishOwing(const CsiContext& context, const CsiVolumeId& volume, const SafePath& target,
                      const CallOptions& call);
// In place of NodeUnstageVolume: the staging path has to be one mount of a disk, the one on record;
// or nothing is mounted there. REQUIRES: nobody else has the device, and the driver has staged it.
Status UnstageOwing(const CsiContext& context, const CsiVolumeId& volume, const SafePath& place,
                    const CallOptions& call);

// Something was left at a place that was taken away: the driver has lied if it was asked
// (DriverLied()); else nobody did.
Error LeftBehind(const CsiContext& context, const CsiDebt& place, const std::string& said,
                 const std::string& left);

}  // namespace volumed
