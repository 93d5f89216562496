// What the CSI driver says of the health of volumes and pools: conditions, each with a word for
// programs that stays as it is, and a text for people.
//
//   PoolUnreachable   the pool is not there, so neither are its volumes
//   PoolShort         others have filled the pool's filesystem: writes to volumes may fail
//   FileLost          the file of a volume is missing, or shorter than it was made
//   DeviceAway        a listed device is away or smaller, or another one is at its path
//   MountLost         what was staged or published is not mounted any more
//   LimitLost         a directory is of another project than the one by which it is bounded
//   ServerUnreachable the server of an export does not answer
//   ReadOnly          the kernel lets nobody write to the volume's filesystem after an error, or
//                     has shut it down
//
// Source: CSI spec v1.13.0, VolumeHealth, NodeGetStorageHealth.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "csi.pb.h"
#include "csidriver/node_targets.h"
#include "os/kernel.h"
#include "pool/pool_volumes.h"

namespace volumed {

// Threads: any, for all. Blocks: what has CallOptions.
//
// What is wrong with the volume at its pool; nothing is added if nothing is, and nothing of an
// export, which needs no pool.
void TellVolumeHealth(const PoolVolumeRecord& volume, const PoolHealth& pool,
                      ::csi::v1::VolumeHealth& health);

// What is wrong with the volume at these places of a CO, by the mount table, and by what its
// filesystem answers where it is staged; of one that answers nothing there is nothing to tell.
// `writes`: the node has it for writing. Blocks: until the deadline. Errors: those of the table.
Status TellPlacesHealth(Kernel& kernel, const std::vector<NodePlace>& places, bool writes,
                        const CallOptions& call, ::csi::v1::VolumeHealth& health);

// Whether the server of an export answers at the first of these places, in the lane of the server.
// Of one that is nowhere nothing is told. Blocks: until the deadline.
void TellServerHealth(Kernel& kernel, const std::vector<NodePlace>& places, const CallOptions& call,
                      ::csi::v1::VolumeHealth& health);

// What is wrong with the pool, for NodeGetStorageHealth: conditions of several pools that are the
// same are one, with each pool in its text.
void TellStorageHealth(const std::string& pool_name, const PoolHealth& pool,
                       ::csi::v1::NodeGetStorageHealthResponse& response);

}  // namespace volumed
