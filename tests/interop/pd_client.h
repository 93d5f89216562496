// PdClient: a caller that goes from a disk's making to its deletion, for tests of the driver
// itself. It knows nothing of volumed. Each call has a connection of its own, so that it finds a
// server that was started anew.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <string>

#include "csi.grpc.pb.h"

namespace volumed {

class PdClient {
 public:
  using Identity = csi::v1::Identity::Stub;
  using Controller = csi::v1::Controller::Stub;
  using Node = csi::v1::Node::Stub;

  PdClient(std::string controller_socket, std::string node_socket, std::string node_id)
      : controller_socket_(std::move(controller_socket)),
        node_socket_(std::move(node_socket)),
        node_id_(std::move(node_id)) {}

  // The stubs' method with a deadline; `wait` also for a server that is not there yet.
  template <typename Stub, typename Request, typename Response>
  static grpc::Status Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Response*),
                           const Request& request, Response* response, bool wait = true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    context.set_wait_for_ready(wait);
    return (stub.*method)(&context, request, response);
  }
  static std::shared_ptr<grpc::Channel> Channel(const std::string& socket) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  template <typename Request, typename Response>
  grpc::Status AskController(grpc::Status (Controller::*method)(grpc::ClientContext*,
                                                                const Request&, Response*),
                             const Request& request, Response* response, bool wait = true) const {
    Controller stub(Channel(controller_socket_));
    return Call(stub, method, request, response, wait);
  }
  template <typename Request, typename Response>
  grpc::Status AskNode(grpc::Status (Node::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                       const Request& request, Response* response) const {
    Node stub(Channel(node_socket_));
    return Call(stub, method, request, response);
  }

  static csi::v1::VolumeCapability Mounted(const std::string& fs_type) {
    csi::v1::VolumeCapability capability;
    capability.mutable_mount()->set_fs_type(fs_type);
    capability.mutable_access_mode()->set_mode(
        csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    return capability;
  }
  static csi::v1::VolumeCapability Block() {
    csi::v1::VolumeCapability capability;
    capability.mutable_block();
    capability.mutable_access_mode()->set_mode(
        csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    return capability;
  }

  // The capability of all calls below.
  csi::v1::VolumeCapability capability = Mounted("xfs");

  grpc::Status Create(const std::string& name, std::string* handle, bool wait = true) const {
    csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(int64_t{1} << 30);
    *request.add_volume_capabilities() = capability;
    csi::v1::CreateVolumeResponse response;
    const grpc::Status status = AskController(&Controller::CreateVolume, request, &response, wait);
    *handle = response.volume().volume_id();
    return status;
  }
  grpc::Status Delete(const std::string& handle, bool wait = true) const {
    csi::v1::DeleteVolumeRequest request;
    request.set_volume_id(handle);
    csi::v1::DeleteVolumeResponse response;
    return AskController(&Controller::DeleteVolume, request, &response, wait);
  }
  grpc::Status Attach(const std::string& handle, bool wait = true) const {
    return AttachTo(handle, node_id_, wait);
  }
  grpc::Status AttachTo(const std::string& handle, const std::string& node,
                        bool wait = true) const {
    csi::v1::ControllerPublishVolumeRequest request;
    request.set_volume_id(handle);
    request.set_node_id(node);
    *request.mutable_volume_capability() = capability;
    csi::v1::ControllerPublishVolumeResponse response;
    return AskController(&Controller::ControllerPublishVolume, request, &response, wait);
  }
  grpc::Status Detach(const std::string& handle, bool wait = true) const {
    csi::v1::ControllerUnpublishVolumeRequest request;
    request.set_volume_id(handle);
    request.set_node_id(node_id_);
    csi::v1::ControllerUnpublishVolumeResponse response;
    return AskController(&Controller::ControllerUnpublishVolume, request, &response, wait);
  }
  grpc::Status Grow(const std::string& handle, int64_t bytes, bool wait = true) const {
    csi::v1::ControllerExpandVolumeRequest request;
    request.set_volume_id(handle);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    csi::v1::ControllerExpandVolumeResponse response;
    return AskController(&Controller::ControllerExpandVolume, request, &response, wait);
  }
  grpc::Status GrowOnNode(const std::string& handle, const std::string& target,
                          int64_t bytes) const {
    csi::v1::NodeExpandVolumeRequest request;
    request.set_volume_id(handle);
    request.set_volume_path(target);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    *request.mutable_volume_capability() = capability;
    csi::v1::NodeExpandVolumeResponse response;
    return AskNode(&Node::NodeExpandVolume, request, &response);
  }
  grpc::Status Stage(const std::string& handle, const std::string& staging) const {
    csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(handle);
    request.set_staging_target_path(staging);
    *request.mutable_volume_capability() = capability;
    csi::v1::NodeStageVolumeResponse response;
    return AskNode(&Node::NodeStageVolume, request, &response);
  }
  grpc::Status Publish(const std::string& handle, const std::string& staging,
                       const std::string& target) const {
    csi::v1::NodePublishVolumeRequest request;
    request.set_volume_id(handle);
    request.set_staging_target_path(staging);
    request.set_target_path(target);
    *request.mutable_volume_capability() = capability;
    csi::v1::NodePublishVolumeResponse response;
    return AskNode(&Node::NodePublishVolume, request, &response);
  }
  grpc::Status Unpublish(const std::string& handle, const std::string& target) const {
    csi::v1::NodeUnpublishVolumeRequest request;
    request.set_volume_id(handle);
    request.set_target_path(target);
    csi::v1::NodeUnpublishVolumeResponse response;
    return AskNode(&Node::NodeUnpublishVolume, request, &response);
  }
  grpc::Status Unstage(const std::string& handle, const std::string& staging) const {
    csi::v1::NodeUnstageVolumeRequest request;
    request.set_volume_id(handle);
    request.set_staging_target_path(staging);
    csi::v1::NodeUnstageVolumeResponse response;
    return AskNode(&Node::NodeUnstageVolume, request, &response);
  }

 private:
  std::string controller_socket_;
  std::string node_socket_;
  std::string node_id_;
};

}  // namespace volumed
