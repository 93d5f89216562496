// The table of RPCs.
#include "csi/rpc/csi_methods.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "csi.pb.h"
#include "pluginregistration.pb.h"

namespace volumed {
namespace {

TEST(CsiMethodsTest, EveryRpcOfEveryServiceIsThereOnce) {
  std::set<std::string> services;
  std::set<const google::protobuf::Descriptor*> requests;
  std::set<std::string> paths;
  for (const CsiMethod& method : CsiMethods()) {
    services.insert(method.service);
    EXPECT_TRUE(requests.insert(method.request).second) << method.name;
    EXPECT_TRUE(paths.insert(method.path).second) << method.path;
    EXPECT_NE(method.response, nullptr);
  }
  EXPECT_EQ(services,
            (std::set<std::string>{"csi.v1.Controller", "csi.v1.GroupController", "csi.v1.Identity",
                                   "csi.v1.Node", "csi.v1.SnapshotMetadata",
                                   "pluginregistration.Registration"}));
}

TEST(CsiMethodsTest, WhatChangesSomethingIsMutatingAndNothingElseIs) {
  std::set<std::string> mutating;
  for (const CsiMethod& method : CsiMethods()) {
    if (method.kind == CsiRpcKind::kMutating) mutating.insert(method.name);
  }
  EXPECT_EQ(mutating, (std::set<std::string>{
                          "ControllerExpandVolume", "ControllerModifyVolume",
                          "ControllerPublishVolume", "ControllerUnpublishVolume", "CreateSnapshot",
                          "CreateVolume", "CreateVolumeGroupSnapshot", "DeleteSnapshot",
                          "DeleteVolume", "DeleteVolumeGroupSnapshot", "NodeExpandVolume",
                          "NodePublishVolume", "NodeStageVolume", "NodeUnpublishVolume",
                          "NodeUnstageVolume", "NotifyRegistrationStatus"}));
}

TEST(CsiMethodsTest, ARpcIsFoundByNameServiceOrPath) {
  for (const char* name : {"NodeStageVolume", "Node/NodeStageVolume", "csi.v1.Node/NodeStageVolume",
                           "/csi.v1.Node/NodeStageVolume"}) {
    const CsiMethod* method = FindCsiMethod(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_EQ(method->path, "/csi.v1.Node/NodeStageVolume");
  }
  for (const char* name : {"", "/", "nodestagevolume", "Controller/NodeStageVolume", "Node/"}) {
    EXPECT_EQ(FindCsiMethod(name), nullptr) << name;
  }
}

TEST(CsiMethodsTest, OnlyTheSnapshotMetadataAreStreams) {
  for (const CsiMethod& method : CsiMethods()) {
    EXPECT_EQ(method.streaming, method.service == "csi.v1.SnapshotMetadata") << method.name;
  }
}

TEST(CsiMethodsTest, TheKeyIsWhatTheRequestIsAbout) {
  const auto field = [](const char* name) { return FindCsiMethod(name)->key_field; };
  EXPECT_EQ(field("NodeStageVolume"), "volume_id");
  EXPECT_EQ(field("CreateVolume"), "name");
  EXPECT_EQ(field("CreateSnapshot"), "name");
  EXPECT_EQ(field("DeleteSnapshot"), "snapshot_id");
  EXPECT_EQ(field("DeleteVolumeGroupSnapshot"), "group_snapshot_id");
  EXPECT_EQ(field("GetMetadataDelta"), "target_snapshot_id");
  EXPECT_EQ(field("Probe"), "");
}

TEST(CsiMethodsTest, AKeyIsPrintableAndBounded) {
  ::csi::v1::NodeStageVolumeRequest request;
  request.set_volume_id("vol\n1");
  EXPECT_EQ(CsiKeyOf(*FindCsiMethod("NodeStageVolume"), request), "vol\\x0a1");
  request.set_volume_id(std::string(1000, '\n'));
  EXPECT_LE(CsiKeyOf(*FindCsiMethod("NodeStageVolume"), request).size(), 256u);
  EXPECT_EQ(CsiKeyOf(*FindCsiMethod("Probe"), ::csi::v1::ProbeRequest()), "");
}

TEST(CsiMethodsTest, ARequestKnowsItsRpcAndAnAnswerHasNone) {
  EXPECT_EQ(CsiMethodOf(::pluginregistration::InfoRequest::descriptor())->path,
            "/pluginregistration.Registration/GetInfo");
  EXPECT_EQ(CsiMethodOf(::csi::v1::ProbeResponse::descriptor()), nullptr);
}

}  // namespace
}  // namespace volumed
