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

// The deadlines of operations, as configured.
OperationSettings DeadlinesOf(const Config& config);

struct StatusParts {
  const Config& config;
  const KernelFeatures& features;
  const WorkerKernel& kernel;
  const RecoveryGate& recovery;
  const Clock& clock;
  const AgentParts& parts;
  const std::vector<std::string>& unrecorded_mounts;
};

// `not_ready_reason` is nullopt if the agent is ready. Threads: the control thread. Blocks: never.
v1::GetStatusResponse DescribeStatus(const StatusParts& parts,
                                     const std::optional<std::string>& not_ready_reason);

}  // namespace volumed
