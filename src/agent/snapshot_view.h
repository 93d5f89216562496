// Encodes snapshots and pools as messages of the control API. Each function fills `out`, which is
// empty. Threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <optional>

#include "agent.pb.h"
#include "agent/pool_volume_lookup.h"
#include "pool/pool_volumes.h"
#include "snapshot/snapshot_record.h"

namespace volumed {

void EncodeSnapshot(const SnapshotRecord& record, v1::Snapshot* out);

// What a pool is, and how much of it is here.
struct PoolFacts {
  const Pool& pool;
  int volumes = 0;
  int snapshots = 0;
  PoolGlance seen;
};
void EncodePool(const PoolFacts& facts, v1::Pool* out);

void EncodePoolVolume(const PoolVolumeRecord& volume, const PoolVolumeHolding& holding,
                      v1::PoolVolume* out);

// How far a copy was at a moment.
struct CopySample {
  int64_t bytes = 0;
  int64_t at_unix_ms = 0;
};
// How fast a copy is, and when it ends.
struct CopyPace {
  double bytes_per_second = 0;     // 0: not known
  std::optional<int64_t> left_ms;  // nullopt: not known
  friend bool operator==(const CopyPace&, const CopyPace&) = default;
};
// The mean since the sample. Of a snapshot of which nothing is copied, or no more, nothing is
// known.
CopyPace PaceOf(const SnapshotRecord& record, const CopySample& since, int64_t now_unix_ms);

}  // namespace volumed
