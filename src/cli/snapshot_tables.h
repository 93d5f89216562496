// `volumectl get pools`, `get pool-volumes`, `get snapshots`, `describe snapshot` and `snapshot
// watch`, as text.
//
// Threads: one. Blocks: no.
#pragma once

#include <cstdint>
#include <ostream>

#include "agent.pb.h"
#include "cli/output.h"

namespace volumed {

// One line for each pool; why it is not open, or what it lacks, is the last column.
void PrintPools(const v1::GetPoolsResponse& pools, OutputFormat format, std::ostream& out);
// One line for each volume; who has it is the last column. The wide table adds its mode and the
// filesystem that it has.
void PrintPoolVolumes(const v1::GetPoolVolumesResponse& volumes, OutputFormat format,
                      std::ostream& out);
// One line for each snapshot. The wide table adds the VolumeSnapshot and the group that it is of.
void PrintSnapshots(const v1::GetSnapshotsResponse& snapshots, OutputFormat format,
                    int64_t now_unix_ms, std::ostream& out);
// All that is known of one.
void PrintSnapshotDescription(const v1::Snapshot& snapshot, int64_t now_unix_ms, std::ostream& out);
// One line: the phase, and of a copy how many bytes of how many, how fast and for how long still.
void PrintSnapshotProgress(const v1::WatchSnapshotResponse& answer, OutputFormat format,
                           std::ostream& out);

}  // namespace volumed
