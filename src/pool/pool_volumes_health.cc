// PoolVolumes: what is wrong with a pool and its volumes.
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "os/answers.h"
#include "pool/artefact_directory.h"
#include "pool/pool_volumes.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

// Whether something of the volume has to be where the pool has its volumes.
bool IsThere(const PoolVolumeRecord& record, const std::string& pool) {
  return record.pool == pool && !IsListed(record.backend) &&
         (record.state == PoolVolumeState::kReady || record.state == PoolVolumeState::kExpanding);
}

// By its inode alone, which the look at its size tells, too.
bool IsOtherFile(const PoolVolumeRecord& record, const MadeArtefact& there) {
  if (record.object.inode == 0 || there.object.inode == 0) return false;
  StorageObject now = record.object;
  now.handle.clear();
  now.inode = there.object.inode;
  return !StorageDifference(record.object, now).empty();
}

}  // namespace

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
  {
    MutexLock lock(mu_);
    for (const auto& [id, record] : volumes_) {
      if (IsThere(record, name)) before.insert(id);
      const bool is_device = record.backend == PoolBackendKind::kStatic;
      if (record.pool == name && is_device) devices.push_back(record);
    }
  }
  for (const PoolVolumeRecord& volume : devices) {
    const auto device = FindStaticDevice(parts_.kernel, volume, call);
    if (!device.ok()) health.lost[volume.id] = device.error().message();
  }
  // To measure all that is there may take a while, to answer does not.
  CallOptions soon = InPool(call, *pool);
  soon.deadline = AnswerBy(parts_.clock, call.deadline);
  health.reachable = pool->state();
  if (health.reachable.ok()) health.reachable = pool->CheckThere(soon);
  if (!health.reachable.ok()) return health;
  for (const PoolBackendKind kind : {PoolBackendKind::kImage, PoolBackendKind::kLvm}) {
    const Pool::Opened* const opened = pool->opened();
    if (kind == PoolBackendKind::kLvm && (opened == nullptr || !opened->backends.contains(kind))) {
      continue;
    }
    const Result<Measured> measured = Measure(*pool, kind, call);
    if (!measured.ok()) {
      health.reachable = measured.error();
      return health;
    }
    NoteHealth(*pool, *measured, before, health);
  }
  return health;
}

void PoolVolumes::NoteHealth(const Pool& pool, const Measured& measured,
                             const std::set<std::string>& looked_for, PoolHealth& health) const {
  const bool is_lvm = measured.kind == PoolBackendKind::kLvm;
  const std::string its = is_lvm ? "its logical volume " : "its file ";
  MutexLock lock(mu_);
  health.is_short = health.is_short || AccountFor(pool, measured).is_short;
  for (const std::string& id : looked_for) {
    const auto record = volumes_.find(id);
    const std::optional<PoolId> parsed = ParsePoolId(id);
    if (!parsed || record == volumes_.end() || !IsThere(record->second, pool.name())) continue;
    if ((record->second.backend == PoolBackendKind::kLvm) != is_lvm) continue;
    const auto found = measured.artefacts.find(*parsed);
    if (found == measured.artefacts.end()) {
      health.lost[id] = its + "is missing, or cannot be looked at";
    } else if (IsTree(record->second.backend)) {
      // What it may have at most can be less than its size.
      std::string other;
      if (found->second.project_id) other = OtherProject(record->second, *found->second.project_id);
      if (!other.empty()) health.unbounded[id] = std::move(other);
    } else if (std::string lost = LostEndOf(record->second, found->second.size_bytes);
               !lost.empty()) {
      health.lost[id] = its + lost;
    } else if (IsOtherFile(record->second, found->second)) {
      health.lost[id] = its + "is another one than the one on record: its inode is " +
                        std::to_string(found->second.object.inode) + ", not " +
                        std::to_string(record->second.object.inode);
    }
  }
}

}  // namespace volumed
