// The Controller service: which node is to have a volume. What is promised is a lease on record
// (PoolVolumes::TakeLease), and nothing else: the node itself makes the device.
#include <utility>

#include "base/printable_text.h"
#include "csidriver/controller_parts.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerPublishVolumeRequest;
using ::csi::v1::ControllerPublishVolumeResponse;
using ::csi::v1::ControllerUnpublishVolumeRequest;
using ::csi::v1::ControllerUnpublishVolumeResponse;

using PublishRpc = CsiRpc<ControllerPublishVolumeRequest, ControllerPublishVolumeResponse>;
using UnpublishRpc = CsiRpc<ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse>;

constexpr size_t kShownNode = 256;  // bytes of a node's id in a message

Result<PoolLease> LeaseAskedFor(const ControllerParts& shared,
                                const ControllerPublishVolumeRequest& request) {
  ASSIGN_OR_RETURN(const CsiCapabilityWish wish, ParseCsiCapability(request.volume_capability()));
  ASSIGN_OR_RETURN(const PoolVolumeRecord volume, FindServedVolume(shared, request.volume_id()));
  if (!shared.places.nodes.contains(request.node_id())) {
    return Error::NotApplied(Code::kNotFound, "node " + Quoted(request.node_id(), kShownNode) +
                                                  " is none of this driver's (csi-nodes)");
  }
  std::string why_not = WhyNotUsableSo(volume, wish);
  if (why_not.empty()) why_not = WhyNotInMode(volume, wish.access_mode, shared.places);
  if (!why_not.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volume " + volume.id + " cannot be used so: " + why_not);
  }
  return PoolLease{request.node_id(), request.readonly(), static_cast<int32_t>(wish.access_mode),
                   /*by_stage=*/false};
}

void Publish(const SharedControllerParts& shared, const PublishRpc& rpc) {
  Result<PoolLease> lease = LeaseAskedFor(*shared, rpc.request());
  if (!lease.ok()) return rpc.Finish(lease.error());
  RunForCall(*shared, rpc, [shared, id = rpc.request().volume_id(), lease = *std::move(lease)] {
    return shared->volumes().TakeLease(id, lease, shared->settings.most_volumes);
  });
}

// A node that there is not, or no more, has no lease.
void Unpublish(const SharedControllerParts& shared, const UnpublishRpc& rpc) {
  RunForCall(*shared, rpc,
             [shared, id = rpc.request().volume_id(), node = rpc.request().node_id()] {
               return shared->volumes().EndLease(id, node, /*by_stage=*/false);
             });
}

}  // namespace

void AddPublishingRpcs(CsiHandlers& handlers, const SharedControllerParts& shared) {
  handlers.Add<ControllerPublishVolumeRequest, ControllerPublishVolumeResponse>(
      [shared](const PublishRpc& rpc) { Publish(shared, rpc); });
  handlers.Add<ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse>(
      [shared](const UnpublishRpc& rpc) { Unpublish(shared, rpc); });
  handlers.AddFeature(CsiFeature::kReadOnlyPublish);
}

}  // namespace volumed
