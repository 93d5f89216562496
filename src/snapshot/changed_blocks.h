// ChangedBlocks: which bytes a snapshot has, or has otherwise than another one of the same volume;
// of volumes that are images. Where their blocks lie says it, and no data is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"
#include "pool/pool_volumes.h"
#include "snapshot/extent_delta.h"
#include "snapshot/snapshot_engine.h"

namespace volumed {

struct ChangedBlocksQuery {
  std::string base;    // id; empty: what of the target may have other bytes than zero
  std::string target;  // id
  int64_t from = 0;    // the block that has this byte is the first that is looked at
  size_t most = 0;     // ranges in a part; above zero
};

// A part of an answer. Ranges are ascending and apart, begin and end with blocks of 4096 bytes, and
// those of later parts follow them. There may be none, though it is not the last part.
struct ChangedBlocks {
  std::vector<ByteRange> ranges;
  int64_t volume_bytes = 0;  // as the target was when it was cut
  // From where to go on. It is the end of the volume after the last part.
  int64_t next = 0;
  bool is_last() const { return next >= volume_bytes; }
};

// The part of the answer that begins at `query.from`; each byte from there to `next` that is not in
// a range is certainly the same. Nothing is held from one part to the next, so that whoever is slow
// to take them keeps nobody from deleting a snapshot; a later part fails then. A target that is
// larger than the base is compared with zeros behind the base's end.
//
// Threads: any. Blocks: until the deadline; it looks at some ten thousand extents at most. Errors,
// not applied: NotFound, also of a snapshot whose deletion is begun; FailedPrecondition for a
// snapshot that is not ready, for one whose bytes were copied, or that does not lie on xfs or
// btrfs, and that is to be compared with another, and for one that is no image; InvalidArgument if
// the two are of different volumes; OutOfRange for an offset beyond the volume; those of
// PoolVolumes::ListCutExtents. But two of a listed device, which are copies, are compared wherever
// they lie: whatever either has blocks for counts as changed.
Result<ChangedBlocks> FindChangedBlocks(const SnapshotEngine& engine, const PoolVolumes& volumes,
                                        const ChangedBlocksQuery& query, const CallOptions& call);

// Whether the snapshots are there still, for a part of which not all was passed on at once.
// Threads: any. Blocks: never. Errors, not applied: NotFound, as above.
Status CheckNotDeleted(const SnapshotEngine& engine, const ChangedBlocksQuery& query);

}  // namespace volumed
