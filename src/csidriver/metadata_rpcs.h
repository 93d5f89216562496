// The SnapshotMetadata service of the CSI driver: which bytes of a snapshot a program that makes
// backups has to read: all that are allocated, or those that have changed since an earlier snapshot
// of the volume. Where the blocks of the two lie says it (changed_blocks.h); no data is read.
#pragma once

#include <chrono>

#include "base/scheduler.h"
#include "csidriver/csi_service.h"
#include "pool/pool_volumes.h"
#include "snapshot/snapshot_engine.h"

namespace volumed {

// What the handlers need. It outlives the calls and what they begin.
struct MetadataRpcParts {
  Scheduler& scheduler;
  const SnapshotEngine& snapshots;
  const PoolVolumes& volumes;
  Duration part_deadline = std::chrono::seconds(60);  // of what is looked at for one part
};

// Adds the handlers of GetMetadataAllocated and GetMetadataDelta. Handlers: Threads: control.
// Blocks: never.
//
// Ranges have lengths of their own (VARIABLE_LENGTH) and begin and end with blocks of 4096 bytes;
// the first one is that of the block which has `starting_offset`, or a later one, so that a stream
// can be gone on with from wherever it ended. A message has 4096 ranges at most, or `max_results`;
// a stream has one message at least, so that its caller learns the size. A part of 4096 ranges is
// looked for once all messages of the one before are taken: whoever takes his time holds neither a
// thread nor a worker, and no snapshot either, but the ranges of a part alone. If a snapshot is
// deleted meanwhile, the stream ends with NotFound.
//
// Errors for a caller are those of FindChangedBlocks(). Source: CSI spec v1.13.0,
// "GetMetadataAllocated", "GetMetadataDelta".
void AddMetadataRpcs(CsiHandlers& handlers, const MetadataRpcParts& parts);

}  // namespace volumed
