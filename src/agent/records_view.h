// What `volumectl records` shows: whether the records may be older than the disks, and which steps
// are held back because of that.
#pragma once

#include "agent.pb.h"
#include "volumehost/recovery_gate.h"

namespace volumed {

// The state of the gate now. Threads: any. Blocks: never.
v1::RecordsStatus DescribeRecords(const RecoveryGate& gate);
// Fills `out`, which is empty. Threads: any. Blocks: never.
void EncodePendingStep(const PendingStep& step, v1::PendingStep* out);

}  // namespace volumed
