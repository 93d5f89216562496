// CrashAgentPools: the pools of a CrashAgent, as src/agent puts them together.
#pragma once

#include <functional>
#include <memory>

#include "agent/agent_parts.h"
#include "agent/node_pools.h"
#include "base/log.h"
#include "base/scheduler.h"
#include "operation/volume_record_keeper.h"
#include "os/kernel.h"
#include "pluginmgr/device_volume.h"
#include "pluginmgr/volume_plugin.h"
#include "records/record_store.h"
#include "volumehost/irreversible_steps.h"
#include "volumehost/kubelet_paths.h"
#include "volumehost/node_facts.h"

namespace volumed {

// Threads: those of the scheduler.
class CrashAgentPools {
 public:
  // All outlive this object.
  struct Parts {
    Scheduler& scheduler;
    Kernel& kernel;
    RecordStore& store;
    Logger& log;
    IrreversibleSteps& irreversible;
    const DeviceRecordKeeper& devices;
    const KubeletPaths& paths;
    NodeFacts& node;
    // A pool is open that was not.
    std::function<void()> opened;
  };
  // The node gets the label of its volumes.
  explicit CrashAgentPools(Parts parts);

  NodePools& pools() { return pools_; }
  std::unique_ptr<VolumePlugin> MakePlugin(const DeviceVolumeSettings& devices);

 private:
  AgentParts parts_;
  NodePools pools_;
};

}  // namespace volumed
