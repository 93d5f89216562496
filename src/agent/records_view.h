// What `volumectl records` shows: whether the records may be older than the disks, and what is held
// back therefore.
#pragma once

#include "agent.pb.h"
#include "volumehost/recovery_gate.h"

namespace volumed {

v1::RecordsStatus DescribeRecords(const RecoveryGate& gate);
void EncodeHeldStep(const HeldStep& step, v1::HeldStep* out);

}  // namespace volumed
