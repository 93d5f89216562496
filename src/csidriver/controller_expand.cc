// The Controller service: volumes are made larger. Their files and devices are; their filesystems
// follow on the node, by NodeExpandVolume.
#include <cstdint>
#include <string>

#include "csidriver/controller_parts.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerExpandVolumeRequest;
using ::csi::v1::ControllerExpandVolumeResponse;

using ExpandRpc = CsiRpc<ControllerExpandVolumeRequest, ControllerExpandVolumeResponse>;

void Expand(const SharedControllerParts& shared, const ExpandRpc& rpc) {
  const ControllerExpandVolumeRequest& request = rpc.request();
  const auto volume = FindServedVolume(*shared, request.volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  if (request.has_volume_capability()) {
    const Status usable = CheckCapabilityOf(*volume, request.volume_capability());
    if (!usable.ok()) return rpc.Finish(usable);
  }
  const Result<int64_t> bytes = ParseCsiGrowth(request.capacity_range(), *volume);
  if (!bytes.ok()) return rpc.Finish(bytes.error());
  // Of what was grown by an earlier call, too: whether the node has followed is not known here.
  rpc.response().set_node_expansion_required(true);
  rpc.response().set_capacity_bytes(volume->capacity_bytes);
  if (*bytes == volume->capacity_bytes) return rpc.Finish(OkStatus());
  StartForCall(*shared, ExpandPoolVolume(shared->parts.pools, volume->id, *bytes), rpc,
               [rpc](int64_t capacity) { rpc.response().set_capacity_bytes(capacity); });
}

}  // namespace

void AddGrowingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<ControllerExpandVolumeRequest, ControllerExpandVolumeResponse>(
      [shared](const ExpandRpc& rpc) { Expand(shared, rpc); });
}

}  // namespace volumed
