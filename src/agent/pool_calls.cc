// The calls of the control API about pools and their volumes.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/control_service.h"
#include "agent/pool_gauges.h"
#include "agent/pool_volume_lookup.h"
#include "agent/snapshot_backend.h"
#include "agent/snapshot_view.h"
#include "base/strings.h"
#include "pool/pool_id.h"

namespace volumed {
namespace {

constexpr Duration kLookAtRecords = std::chrono::seconds(1);

using GetPoolsCall = UnaryCall<v1::GetPoolsRequest, v1::GetPoolsResponse>;

// What is told of the pools, each of which is looked at beside the others: one that does not answer
// makes nobody wait for it but a moment.
struct PoolsAnswer {
  GetPoolsCall call;
  std::vector<v1::Pool> pools;  // in their order
  size_t left = 0;              // that are being looked at
};

// On the control thread.
void AddPool(const std::shared_ptr<PoolsAnswer>& answer, size_t at, const v1::Pool& pool) {
  answer->pools[at] = pool;
  if (--answer->left > 0) return;
  for (const v1::Pool& one : answer->pools) *answer->call.response->add_pools() = one;
  answer->call.Finish(OkStatus());
}

// Blocks: until the pool's filesystem has answered, or has not for a while.
v1::Pool LookAtPool(PoolVolumes& volumes, const Pool& pool,
                    const std::vector<std::string>& snapshots, const Clock& clock) {
  v1::Pool told;
  EncodePool({pool, static_cast<int>(volumes.CountOf(pool.name())), CountOfPool(pool, snapshots),
              volumes.Glance(pool.name())},
             &told);
  CallOptions call;
  call.deadline = Deadline::After(clock, kLookAtRecords);
  const Status readable = volumes.CheckAllReadable(call);
  if (told.reason().empty() && !readable.ok()) told.set_reason(readable.error().message());
  return told;
}

void LookAtPools(const GetPoolsCall& call) {
  PoolVolumes& volumes = call.backend.snapshots->pools.volumes;
  std::vector<std::string> ids;
  for (const SnapshotRecord& one : call.backend.snapshots->maker.List({})) ids.push_back(one.id);
  std::vector<const Pool*> asked;
  for (const std::unique_ptr<Pool>& pool : volumes.pools()) {
    if (call.request.name().empty() || pool->name() == call.request.name()) {
      asked.push_back(pool.get());
    }
  }
  if (asked.empty()) return call.Finish(OkStatus());
  const auto answer = std::make_shared<PoolsAnswer>(
      PoolsAnswer{call, std::vector<v1::Pool>(asked.size()), asked.size()});
  Scheduler& scheduler = call.backend.scheduler;
  for (size_t at = 0; at < asked.size(); ++at) {
    scheduler.RunBlocking([&scheduler, &volumes, pool = asked[at], ids, answer, at] {
      scheduler.Post([answer, at, told = LookAtPool(volumes, *pool, ids, scheduler.clock())] {
        AddPool(answer, at, told);
      });
    });
  }
}

void HandleGetPools(const GetPoolsCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) return call.Finish(OkStatus());
    LookAtPools(call);
  });
}

// ---- volumes of pools ---------------------------------------------------------------------------

using DeletePoolVolumeCall = UnaryCall<v1::DeletePoolVolumeRequest, v1::DeletePoolVolumeResponse>;

Status HandleGetPoolVolumes(ControlBackend& backend, const v1::GetPoolVolumesRequest& request,
                            v1::GetPoolVolumesResponse* response) {
  if (backend.snapshots == nullptr) return OkStatus();
  const PoolVolumeHolders holders(backend);
  for (const PoolVolumeRecord& volume : backend.snapshots->pools.volumes.All()) {
    if (!request.id().empty() && volume.id != request.id()) continue;
    EncodePoolVolume(volume, holders.Of(volume), response->add_volumes());
  }
  return OkStatus();
}

std::string SnapshotsThatStay(const SnapshotBackend& snapshots, const std::string& volume) {
  SnapshotFilter filter;
  filter.volume = volume;
  std::vector<std::string> ids;
  for (const SnapshotRecord& one : snapshots.maker.List(filter)) ids.push_back(one.id);
  return ids.empty() ? "" : "its snapshots stay: " + Join(ids, ", ");
}

void HandleDeletePoolVolume(const DeletePoolVolumeCall& call) {
  call.backend.scheduler.Post([call] {
    if (call.backend.snapshots == nullptr) {
      return call.Finish(Error::NotApplied(Code::kUnavailable, "this agent has no pools"));
    }
    const std::string& id = call.request.id();
    const Status free = CheckPoolVolumeIsFree(call.backend, id, call.request.abandoned());
    if (!free.ok()) return call.Finish(free);
    SnapshotBackend& snapshots = *call.backend.snapshots;
    DeletePoolVolume operation(snapshots.pools, id);
    // What it has waited for is over: a person asks.
    snapshots.operations.ResetBackoff(operation.key());
    const auto done = [call](const OperationOutcome<Unit>& outcome) {
      if (outcome.failure) return call.Finish(outcome.failure->error);
      call.response->set_warning(SnapshotsThatStay(*call.backend.snapshots, call.request.id()));
      call.backend.log.Info("a pool's volume was deleted by command",
                            {{"volume", call.request.id()}});
      call.Finish(OkStatus());
    };
    const StartResult started = snapshots.operations.Start(
        std::move(operation), VolumeOperations::Done<DeletePoolVolume>(done));
    if (started == StartResult::kStarted) return;
    call.Finish(Error::NotApplied(Code::kAborted, "it is just being deleted, or in use"));
  });
}

}  // namespace

void AddPoolCalls(ControlService& service) {
  service.Unary("GetPools", PeerRole::kRead, HandleGetPools);
  service.OnControl("GetPoolVolumes", PeerRole::kRead, HandleGetPoolVolumes);
  service.Unary("DeletePoolVolume", PeerRole::kOperate, HandleDeletePoolVolume);
}

}  // namespace volumed
