// The table of handlers: what is a row, and what follows from the rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/log.h"
#include "base/simulated_scheduler.h"
#include "csi.pb.h"
#include "csidriver/csi_service.h"
#include "csidriver/identity_rpcs.h"
#include "pluginregistration.pb.h"

namespace volumed {
namespace {

using ::csi::v1::NodeStageVolumeRequest;
using ::csi::v1::NodeStageVolumeResponse;

template <typename Request, typename Response>
void AddNothing(CsiHandlers& handlers) {
  handlers.Add<Request, Response>([](const CsiRpc<Request, Response>&) {});
}

const CsiMethod& Rpc(const std::string& name) { return *FindCsiMethod(name); }

TEST(CsiHandlersTest, ARowServesTheRpcOfItsRequest) {
  CsiHandlers handlers(CsiProfile::kCentral, CsiServeLevel::k1_12);
  EXPECT_EQ(handlers.Find(Rpc("NodeStageVolume")), nullptr);
  AddNothing<NodeStageVolumeRequest, NodeStageVolumeResponse>(handlers);
  EXPECT_TRUE(handlers.Check().ok());
  EXPECT_NE(handlers.Find(Rpc("NodeStageVolume")), nullptr);
  EXPECT_EQ(handlers.Find(Rpc("NodeUnstageVolume")), nullptr);
}

TEST(CsiHandlersTest, RowsThatAreForNoRpcAreNamedTogether) {
  CsiHandlers handlers(CsiProfile::kCentral, CsiServeLevel::k1_12);
  AddNothing<NodeStageVolumeRequest, NodeStageVolumeResponse>(handlers);
  AddNothing<NodeStageVolumeRequest, NodeStageVolumeResponse>(handlers);
  AddNothing<::csi::v1::ProbeRequest, NodeStageVolumeResponse>(handlers);
  AddNothing<::csi::v1::VolumeCapability, NodeStageVolumeResponse>(handlers);
  AddNothing<::csi::v1::GetMetadataDeltaRequest, ::csi::v1::GetMetadataDeltaResponse>(handlers);
  AddNothing<::pluginregistration::InfoRequest, ::pluginregistration::PluginInfo>(handlers);
  const Status checked = handlers.Check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message(),
            "CSI driver: NodeStageVolume has two handlers; "
            "Probe does not answer with one NodeStageVolumeResponse; "
            "VolumeCapability is the request of no RPC; "
            "GetMetadataDelta does not answer with one GetMetadataDeltaResponse; "
            "InfoRequest is the request of no RPC");
}

TEST(CsiHandlersTest, ARowThatStreamsIsForAnRpcThatDoes) {
  CsiHandlers handlers(CsiProfile::kCentral, CsiServeLevel::k1_12);
  handlers.AddStream<::csi::v1::GetMetadataDeltaRequest, ::csi::v1::GetMetadataDeltaResponse>(
      [](const auto&) {});
  EXPECT_TRUE(handlers.Check().ok());
  const CsiRow* const row = handlers.Find(Rpc("GetMetadataDelta"));
  ASSERT_NE(row, nullptr);
  EXPECT_TRUE(row->streams);
  EXPECT_TRUE(row->needs_records);
  handlers.AddStream<NodeStageVolumeRequest, NodeStageVolumeResponse>([](const auto&) {});
  const Status checked = handlers.Check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message(),
            "CSI driver: NodeStageVolume does not answer with a stream of NodeStageVolumeResponse");
}

TEST(CsiHandlersTest, AnRpcThatTheProfileDoesNotHaveIsNotServedThoughItHasARow) {
  const auto serves = [](CsiProfile profile, CsiServeLevel level, const char* rpc) {
    CsiHandlers handlers(profile, level);
    AddNothing<::csi::v1::ControllerExpandVolumeRequest, ::csi::v1::ControllerExpandVolumeResponse>(
        handlers);
    AddNothing<::csi::v1::NodeGetVolumeHealthRequest, ::csi::v1::NodeGetVolumeHealthResponse>(
        handlers);
    return handlers.Find(Rpc(rpc)) != nullptr ? std::string("served") : handlers.WhyNot(Rpc(rpc));
  };
  const auto node = CsiProfile::kNode;
  const auto central = CsiProfile::kCentral;
  EXPECT_EQ(serves(central, CsiServeLevel::k1_12, "ControllerExpandVolume"), "served");
  EXPECT_EQ(serves(node, CsiServeLevel::k1_12, "ControllerExpandVolume"),
            "a driver of csi-profile node and csi-serve-level 1.12 does not have it");
  EXPECT_EQ(serves(node, CsiServeLevel::k1_13, "NodeGetVolumeHealth"), "served");
  EXPECT_EQ(serves(node, CsiServeLevel::k1_12, "NodeGetVolumeHealth"),
            "a driver of csi-profile node and csi-serve-level 1.12 does not have it");
  EXPECT_EQ(serves(node, CsiServeLevel::k1_12, "NodeStageVolume"), "this driver does not have it");
}

TEST(CsiHandlersTest, CapabilitiesAreThoseOfTheRowsAndFeatures) {
  CsiHandlers handlers(CsiProfile::kNode, CsiServeLevel::k1_12);
  AddIdentityRpcs(handlers, {"a.io", "1", "n"}, [] { return true; });
  EXPECT_TRUE(handlers.Check().ok());
  EXPECT_TRUE(handlers.Capabilities().plugin.empty()) << "a controller has more than a list";
  EXPECT_TRUE(handlers.Capabilities().node.empty());
  AddNothing<NodeStageVolumeRequest, NodeStageVolumeResponse>(handlers);
  EXPECT_TRUE(handlers.Capabilities().node.empty()) << "staging is of two RPCs";
  AddNothing<::csi::v1::NodeUnstageVolumeRequest, ::csi::v1::NodeUnstageVolumeResponse>(handlers);
  EXPECT_EQ(handlers.Capabilities().node,
            (std::vector<::csi::v1::NodeServiceCapability::RPC::Type>{
                ::csi::v1::NodeServiceCapability::RPC::STAGE_UNSTAGE_VOLUME}));
  handlers.AddFeature(CsiFeature::kTopology);
  EXPECT_EQ(handlers.Capabilities().plugin,
            (std::vector<::csi::v1::PluginCapability::Service::Type>{
                ::csi::v1::PluginCapability::Service::VOLUME_ACCESSIBILITY_CONSTRAINTS}));
}

TEST(CsiHandlersTest, EveryServiceOfTheProtoIsAServiceOfTheServer) {
  EXPECT_EQ(CsiService::Names(),
            (std::vector<std::string>{"csi.v1.Identity", "csi.v1.Controller", "csi.v1.Node",
                                      "csi.v1.GroupController", "csi.v1.SnapshotMetadata"}));
}

}  // namespace
}  // namespace volumed
