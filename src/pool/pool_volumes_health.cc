// PoolVolumes: what is wrong with a pool and its volumes.
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pool/pool_volumes.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {

PoolHealth PoolVolumes::Look(const std::string& name, const CallOptions& call) {
  PoolHealth health;
  const Pool* const pool = PoolNamed(name);
  if (pool == nullptr) {
    health.reachable = Error::NotApplied(Code::kNotFound, "it is not configured any more");
    return health;
  }
  // What is made meanwhile is not measured, and has to be missing from neither.
  std::set<std::string> before;
  std::vector<PoolVolumeRecord> devices;
  const auto is_there = [&name](const PoolVolumeRecord& record) {
    return record.pool == name && !IsListed(record.backend) &&
           (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding);
  };
  {
    MutexLock lock(mu_);
    for (const auto& [id, record] : volumes_) {
      if (is_there(record)) before.insert(id);
      const bool is_device = record.backend == PoolBackendKind::kStatic;
      if (record.pool == name && is_device) devices.push_back(record);
    }
  }
  for (const PoolVolumeRecord& volume : devices) {
    const auto device = FindStaticDevice(parts_.kernel, volume, call);
    if (!device.ok()) health.lost[volume.id] = device.error().message();
  }
  const Result<Measured> measured = Measure(*pool, call);
  if (!measured.ok()) {
    health.reachable = measured.error();
    return health;
  }
  MutexLock lock(mu_);
  health.is_short = AccountFor(*pool, *measured).is_short;
  for (const auto& [id, record] : volumes_) {
    const std::optional<PoolId> parsed = ParsePoolId(id);
    if (!parsed || !is_there(record) || !before.contains(id)) continue;
    const auto found = measured->artefacts.find(*parsed);
    if (found == measured->artefacts.end()) {
      health.lost[id] = "its file is missing, or cannot be looked at";
    } else if (found->second.size_bytes < record.capacity_bytes) {
      health.lost[id] = "its file has " + std::to_string(found->second.size_bytes) +
                        " bytes, and is to have " + std::to_string(record.capacity_bytes);
    }
  }
  return health;
}

}  // namespace volumed
