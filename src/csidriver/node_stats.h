// What a volume at a place of a CO has and uses, for NodeGetVolumeStats. Source: CSI spec v1.13.0,
// NodeGetVolumeStats.
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "csi.pb.h"
#include "csidriver/node_targets.h"
#include "os/kernel.h"
#include "pool/pool_record.h"

namespace volumed {

// Measures the volume: the bytes and inodes of its filesystem, or of its directory (IsTree), or the
// size of its device; of one that is only staged as a device, its capacity, as nothing is at that
// place. The mount table is asked first, so that what is measured is never the directory
// that a lost mount leaves.
// Threads: any. Blocks: until the deadline, in the lane of the volume. Errors: NotFound, not
// applied, if nothing is mounted at the place, or another device than that of BoundDevicePlace();
// those of the effects.
Status MeasureNodePlace(Kernel& kernel, const Clock& clock, const NodePlace& place,
                        const PoolVolumeRecord& volume, Deadline deadline,
                        ::csi::v1::NodeGetVolumeStatsResponse& response);

}  // namespace volumed
