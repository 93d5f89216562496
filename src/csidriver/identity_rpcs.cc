#include "csidriver/identity_rpcs.h"

#include <utility>

#include "csi.pb.h"

namespace volumed {
namespace {

using ::csi::v1::ControllerGetCapabilitiesRequest;
using ::csi::v1::ControllerGetCapabilitiesResponse;
using ::csi::v1::GetPluginCapabilitiesRequest;
using ::csi::v1::GetPluginCapabilitiesResponse;
using ::csi::v1::GetPluginInfoRequest;
using ::csi::v1::GetPluginInfoResponse;
using ::csi::v1::GroupControllerGetCapabilitiesRequest;
using ::csi::v1::GroupControllerGetCapabilitiesResponse;
using ::csi::v1::NodeGetCapabilitiesRequest;
using ::csi::v1::NodeGetCapabilitiesResponse;
using ::csi::v1::NodeGetInfoRequest;
using ::csi::v1::NodeGetInfoResponse;
using ::csi::v1::ProbeRequest;
using ::csi::v1::ProbeResponse;

constexpr bool kAtAnyTime = false;

void AddPluginRpcs(CsiHandlers& handlers, const CsiIdentity& identity,
                   std::function<bool()> is_ready) {
  handlers.Add<GetPluginInfoRequest, GetPluginInfoResponse>(
      [identity](const CsiRpc<GetPluginInfoRequest, GetPluginInfoResponse>& rpc) {
        rpc.response().set_name(identity.driver);
        rpc.response().set_vendor_version(identity.version);
        rpc.Finish(OkStatus());
      },
      kAtAnyTime);
  handlers.Add<GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse>(
      [&handlers](const CsiRpc<GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse>& rpc) {
        const CsiCapabilities has = handlers.Capabilities();
        for (const auto type : has.plugin) {
          rpc.response().add_capabilities()->mutable_service()->set_type(type);
        }
        if (has.expansion) {
          rpc.response().add_capabilities()->mutable_volume_expansion()->set_type(*has.expansion);
        }
        rpc.Finish(OkStatus());
      });
  handlers.Add<ProbeRequest, ProbeResponse>(
      [is_ready = std::move(is_ready)](const CsiRpc<ProbeRequest, ProbeResponse>& rpc) {
        rpc.response().mutable_ready()->set_value(is_ready());
        rpc.Finish(OkStatus());
      },
      kAtAnyTime);
}

// Adds the RPC by which a service says which of its RPCs it has. `types` are those of the answer.
template <typename Request, typename Response, typename Types>
void AddCapabilitiesRpc(CsiHandlers& handlers, Types CsiCapabilities::*types) {
  handlers.Add<Request, Response>([&handlers, types](const CsiRpc<Request, Response>& rpc) {
    const CsiCapabilities capabilities = handlers.Capabilities();
    for (const auto type : capabilities.*types) {
      rpc.response().add_capabilities()->mutable_rpc()->set_type(type);
    }
    rpc.Finish(OkStatus());
  });
}

}  // namespace

void AddIdentityRpcs(CsiHandlers& handlers, const CsiIdentity& identity,
                     std::function<bool()> is_ready) {
  AddPluginRpcs(handlers, identity, std::move(is_ready));
  AddCapabilitiesRpc<ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse>(
      handlers, &CsiCapabilities::controller);
  AddCapabilitiesRpc<GroupControllerGetCapabilitiesRequest, GroupControllerGetCapabilitiesResponse>(
      handlers, &CsiCapabilities::group);
  AddCapabilitiesRpc<NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse>(
      handlers, &CsiCapabilities::node);
  if (!identity.topology.empty()) handlers.AddFeature(CsiFeature::kTopology);
  // A registration waits for it, also while the node's volumes are being found.
  handlers.Add<NodeGetInfoRequest, NodeGetInfoResponse>(
      [identity](const CsiRpc<NodeGetInfoRequest, NodeGetInfoResponse>& rpc) {
        rpc.response().set_node_id(identity.node);
        rpc.response().set_max_volumes_per_node(identity.most_volumes);
        for (const auto& [key, value] : identity.topology) {
          (*rpc.response().mutable_accessible_topology()->mutable_segments())[key] = value;
        }
        rpc.Finish(OkStatus());
      },
      kAtAnyTime);
}

}  // namespace volumed
