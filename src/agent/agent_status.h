// What `volumectl status` shows of the agent itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent.pb.h"
#include "agent/agent_parts.h"
#include "agent/config.h"
#include "base/clock.h"
#include "operation/operation_settings.h"
#include "os/worker_kernel.h"
#include "volumehost/recovery_gate.h"

namespace volumed {

// What the configuration says of operations: their deadlines, their back-off, and how many of them
// may run at once in one lane and in all. An operation does not need a worker all the time, so
// there may be up to four of them for each worker. It is a pure function.
OperationSettings DeadlinesOf(const Config& config);

// The references are used during the call only.
struct StatusParts {
  const Config& config;
  const KernelFeatures& features;
  const WorkerKernel& kernel;
  const RecoveryGate& recovery;
  const Clock& clock;
  const AgentParts& parts;
  const std::vector<std::string> unrecorded_mounts;
};

// Makes the whole answer, from values that are kept in memory. `not_ready_reason` is nullopt if the
// agent is ready. Threads: the control thread. Blocks: never.
v1::GetStatusResponse DescribeStatus(const StatusParts& parts,
                                     const std::optional<std::string>& not_ready_reason);

}  // namespace volumed
