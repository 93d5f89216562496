// The Controller service: volumes are made larger, and are tuned. Their files and devices are made
// larger here; their filesystems follow on the node, by NodeExpandVolume.
#include <cstdint>
#include <string>

#include "csidriver/controller_parts.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerExpandVolumeRequest;
using ::csi::v1::ControllerExpandVolumeResponse;
using ::csi::v1::ControllerModifyVolumeRequest;
using ::csi::v1::ControllerModifyVolumeResponse;

using ExpandRpc = CsiRpc<ControllerExpandVolumeRequest, ControllerExpandVolumeResponse>;
using ModifyRpc = CsiRpc<ControllerModifyVolumeRequest, ControllerModifyVolumeResponse>;

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

void Modify(const SharedControllerParts& shared, const ModifyRpc& rpc) {
  const auto volume = FindServedVolume(*shared, rpc.request().volume_id());
  if (!volume.ok()) return rpc.Finish(volume.error());
  const auto& changes = rpc.request().mutable_parameters();
  StartForCall(
      *shared,
      ModifyPoolVolume(shared->parts.pools, volume->id, StringMap(changes.begin(), changes.end())),
      rpc, [](const Unit&) {});
}

}  // namespace

void AddChangingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<ControllerExpandVolumeRequest, ControllerExpandVolumeResponse>(
      [shared](const ExpandRpc& rpc) { Expand(shared, rpc); });
  handlers.Add<ControllerModifyVolumeRequest, ControllerModifyVolumeResponse>(
      [shared](const ModifyRpc& rpc) { Modify(shared, rpc); });
}

}  // namespace volumed
