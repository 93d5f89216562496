// The Controller service: what is wrong with volumes, as their pools have them. How a node has them
// the node tells itself.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "csidriver/controller_parts.h"
#include "csidriver/csi_page_token.h"
#include "csidriver/volume_health.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetVolumeHealthRequest;
using ::csi::v1::ControllerGetVolumeHealthResponse;
using ::csi::v1::ControllerListVolumeHealthRequest;
using ::csi::v1::ControllerListVolumeHealthResponse;
using ::csi::v1::VolumeHealth;

using GetHealthRpc = CsiRpc<ControllerGetVolumeHealthRequest, ControllerGetVolumeHealthResponse>;
using ListHealthRpc = CsiRpc<ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse>;

// An answer has at most so many volumes, whatever is asked for, as that of ListVolumes.
constexpr int32_t kMostAiling = 1000;
// So many volumes are looked at at a time.
constexpr size_t kVolumesAtOnce = 256;

CallOptions UntilDeadline(const ControllerParts& shared) {
  CallOptions call;
  call.deadline =
      Deadline::After(shared.parts.scheduler.clock(), shared.settings.capacity_deadline);
  return call;
}

// The health of pools, each of which is looked at once. Threads: one.
class PoolHealths {
 public:
  // A pool that does not answer takes nothing of the time that another one has.
  explicit PoolHealths(const SharedControllerParts& shared) : shared_(shared) {}

  VolumeHealth Of(const PoolVolumeRecord& volume) {
    const auto [pool, is_new] = known_.try_emplace(volume.pool);
    if (is_new) pool->second = shared_->volumes().Look(volume.pool, UntilDeadline(*shared_));
    VolumeHealth health;
    health.set_volume_id(volume.id);
    TellVolumeHealth(volume, pool->second, health);
    return health;
  }

 private:
  const SharedControllerParts shared_;
  std::map<std::string, PoolHealth> known_;
};

void GetHealth(const SharedControllerParts& shared, const GetHealthRpc& rpc) {
  Result<PoolVolumeRecord> volume = FindServedVolume(*shared, rpc.request().volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  RunForCall(*shared, rpc, [shared, rpc, volume = *std::move(volume)] {
    PoolHealths pools(shared);
    *rpc.response().mutable_volume_health() = pools.Of(volume);
    return OkStatus();
  });
}

// The volumes that ail behind `after`, `most` of them at most. The token is the last one's, if
// there is another one behind it.
void FillAiling(PoolVolumes& volumes, PoolHealths pools, std::string after, int32_t most,
                ControllerListVolumeHealthResponse& response) {
  bool are_more = true;
  while (are_more) {
    const PoolPage page = volumes.List(after, kVolumesAtOnce);
    for (const PoolVolumeRecord& volume : page.volumes) {
      VolumeHealth health = pools.Of(volume);
      if (health.health_statuses().empty()) continue;
      if (response.entries_size() == most) {
        response.set_next_token(CsiPageToken(response.entries(most - 1).volume_id()));
        return;
      }
      *response.add_entries() = std::move(health);
    }
    after = page.next;
    are_more = !after.empty();
  }
}

void ListHealth(const SharedControllerParts& shared, const ListHealthRpc& rpc) {
  Result<std::string> after =
      ParseCsiPageToken(rpc.request().starting_token(), PoolObject::kVolume);
  if (!after.ok()) return rpc.Finish(after.error());
  const int32_t asked = rpc.request().max_entries();
  const int32_t most = asked == 0 ? kMostAiling : std::min(asked, kMostAiling);
  RunForCall(*shared, rpc, [shared, rpc, most, after = *std::move(after)] {
    FillAiling(shared->volumes(), PoolHealths(shared), after, most, rpc.response());
    return OkStatus();
  });
}

}  // namespace

void AddHealthRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<ControllerGetVolumeHealthRequest, ControllerGetVolumeHealthResponse>(
      [shared](const GetHealthRpc& rpc) { GetHealth(shared, rpc); });
  handlers.Add<ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse>(
      [shared](const ListHealthRpc& rpc) { ListHealth(shared, rpc); });
}

}  // namespace volumed
