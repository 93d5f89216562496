// The Node service beside the Controller service over the pools and operations of a simulated node,
// for tests: a CO has volumes staged and published in its own directory.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "csidriver/node_rpcs.h"
#include "operation/given_place.h"
#include "unit/csidriver/controller_fixture.h"

namespace volumed {

inline const std::string kCo = "/srv/co";
inline const std::string kStaging = kCo + "/stage";
inline const std::string kTarget = kCo + "/pod-a/v";
inline const std::string kOtherTarget = kCo + "/pod-b/v";
// Well formed, and of no pool of this node.
inline constexpr char kIdOfAnotherPool[] = "v-00000000-0123456789abcdef01234567";

class NodeFixture : public ControllerFixture {
 protected:
  using Capability = ::csi::v1::VolumeCapability;
  using Modes = Capability::AccessMode;

  explicit NodeFixture(const std::string& pool_type = "") : ControllerFixture(pool_type) {
    for (const char* name : {"/stage", "/stage-b", "/pod-a", "/pod-b"}) {
      node_.AddDirectory(kCo + name);
    }
    AddNode();
  }

  // To the handlers that Serve() has made.
  void AddNode() {
    AddNodeRpcs(
        *handlers_,
        {scheduler_, kernel_, *volumes_, *operations_, *devices_, [this] { return why_unseen_; }},
        node_settings_);
    EXPECT_TRUE(handlers_->Check().ok());
  }
  // A new agent on the same node and store.
  void RestartNode(const std::string& boot = "boot-a") {
    Restart(boot);
    Serve();
    AddNode();
  }

  static Capability In(Modes::Mode mode, Capability capability = Mount()) {
    capability.mutable_access_mode()->set_mode(mode);
    return capability;
  }
  static Capability WithFlag(const std::string& flag, Capability capability = Mount()) {
    capability.mutable_mount()->add_mount_flags(flag);
    return capability;
  }
  std::string CreateBlock(const std::string& name) {
    ::csi::v1::CreateVolumeRequest request = CreateRequest(name);
    *request.mutable_volume_capabilities(0) = Block();
    return Create(request).volume_id();
  }

  static ::csi::v1::NodeStageVolumeRequest StageRequest(const std::string& id,
                                                        const Capability& capability = Mount(),
                                                        const std::string& path = kStaging) {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(path);
    *request.mutable_volume_capability() = capability;
    return request;
  }
  grpc::StatusCode StageIt(const std::string& id, const Capability& capability = Mount(),
                           const std::string& path = kStaging) {
    ::csi::v1::NodeStageVolumeResponse response;
    return CodeOf(StageRequest(id, capability, path), &response);
  }
  grpc::StatusCode UnstageIt(const std::string& id, const std::string& path = kStaging) {
    ::csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(path);
    ::csi::v1::NodeUnstageVolumeResponse response;
    return CodeOf(request, &response);
  }
  static ::csi::v1::NodePublishVolumeRequest NodePublishRequest(
      const std::string& id, const Capability& capability = Mount(),
      const std::string& path = kTarget, bool read_only = false) {
    ::csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_staging_target_path(kStaging);
    request.set_target_path(path);
    request.set_readonly(read_only);
    *request.mutable_volume_capability() = capability;
    return request;
  }
  grpc::StatusCode PublishIt(const ::csi::v1::NodePublishVolumeRequest& request) {
    ::csi::v1::NodePublishVolumeResponse response;
    return CodeOf(request, &response);
  }
  grpc::StatusCode PublishIt(const std::string& id, const Capability& capability = Mount(),
                             const std::string& path = kTarget, bool read_only = false) {
    return PublishIt(NodePublishRequest(id, capability, path, read_only));
  }
  grpc::StatusCode UnpublishIt(const std::string& id, const std::string& path = kTarget) {
    ::csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_target_path(path);
    ::csi::v1::NodeUnpublishVolumeResponse response;
    return CodeOf(request, &response);
  }

  // How the volume is at the path: "files", "device" or "" for neither.
  std::string ThereIs(const std::string& path) {
    if (!node_.IsMountPoint(path)) return "";
    return node_.Find(path).type == FileType::kBlockDevice ? "device" : "files";
  }
  std::vector<PoolLease> LeasesOf(const std::string& id) { return Must(volumes_->Find(id)).leases; }

  NodeRpcSettings node_settings_{.driver = kDriver,
                                 .node = kThisNode,
                                 .target_roots = {kCo},
                                 .most_volumes = 0,
                                 .stats_deadline = std::chrono::seconds(10)};
};

}  // namespace volumed
