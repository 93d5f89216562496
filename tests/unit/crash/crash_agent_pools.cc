#include "unit/crash/crash_agent_pools.h"

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool_plugin.h"
#include "unit/crash/crash_pools.h"

namespace volumed {
namespace {

PoolSettings SettingsOfCrashPool() {
  PoolSettings pool;
  pool.name = "fast";
  pool.path = kCrashPool;
  pool.holder = "the agent of node n1, with pid 4711";
  return pool;
}

}  // namespace

CrashAgentPools::CrashAgentPools(Parts parts)
    : parts_(parts.scheduler, parts.log, [] {}),
      pools_({parts.scheduler, parts.kernel, parts.store, parts.log, parts.irreversible,
              parts.devices, parts.paths, parts_, std::move(parts.opened)},
             {SettingsOfCrashPool()}) {
  const Status labelled = parts.node.MergeTopology(
      kCrashPoolDriver, {{PoolTopologyLabel(kCrashPoolDriver), parts.node.GetNodeName().str()}});
  if (!labelled.ok()) throw std::logic_error(labelled.error().ToString());
}

std::unique_ptr<VolumePlugin> CrashAgentPools::MakePlugin(const DeviceVolumeSettings& devices) {
  return std::make_unique<PoolPlugin>(PoolPluginParts{pools_.volumes(), kCrashPoolDriver, devices});
}

}  // namespace volumed
