// The Controller service over the pools and operations of a simulated node, for tests: a call goes
// from its request to its answer, and what it has begun is done by then.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "csi.pb.h"
#include "csidriver/controller_rpcs.h"
#include "csidriver/csi_call.h"
#include "csidriver/identity_rpcs.h"
#include "unit/pool/pool_operations_fixture.h"

namespace volumed {

inline constexpr char kThisNode[] = "node";

class ControllerFixture : public PoolOperationsFixture {
 protected:
  // `pool_type`: as PoolOperationsFixture has it.
  explicit ControllerFixture(const std::string& pool_type = "") : PoolOperationsFixture(pool_type) {
    Serve();
  }
  ~ControllerFixture() override { EndCalls(); }

  // Handlers with these settings, of this profile and level.
  void Serve(CsiProfile profile = CsiProfile::kCentral,
             CsiServeLevel level = CsiServeLevel::k1_12) {
    pools_ = std::make_unique<PoolServed>(PoolServed{*volumes_, kDriver});
    handlers_ = std::make_unique<CsiHandlers>(profile, level);
    CsiIdentity identity{kDriver, "1", kThisNode};
    identity.topology = {{PoolTopologyLabel(kDriver), kThisNode}};
    identity.most_volumes = settings_.most_volumes;
    AddIdentityRpcs(*handlers_, identity, [] { return true; });
    AddControllerRpcs(*handlers_,
                      {scheduler_,
                       *operations_,
                       *pools_,
                       *devices_,
                       {scheduler_, kernel_, nullptr, {}},
                       [this] { return why_unseen_; },
                       when_copied_},
                      settings_);
    EXPECT_TRUE(handlers_->Check().ok());
    EndCalls();
    calls_ = CsiCalls::Make({scheduler_, logger_}, CsiLimits{});
    calls_->RecordsLoaded();
  }
  // A call that nobody will answer any more would hold itself for ever.
  void EndCalls() {
    if (calls_ != nullptr) calls_->End();
  }
  // A new agent on the same node and store.
  void RestartDriver() {
    Restart();
    Serve();
  }

  // Begins a call, whose status is to be looked at once the scheduler has run.
  template <typename Request, typename Response>
  std::shared_ptr<grpc::Status> Begin(const Request& request, Response* response) {
    const CsiMethod* const method = CsiMethodOf(Request::descriptor());
    const CsiRow* const row = handlers_->Find(*method);
    const auto status =
        std::make_shared<grpc::Status>(grpc::StatusCode::UNKNOWN, "it is not answered");
    CsiArrival arrival;
    arrival.method = method;
    arrival.peer = {0, caller_};
    arrival.read = [request](google::protobuf::Message& message) {
      message.CopyFrom(request);
      return true;
    };
    arrival.answer = [status, response](const grpc::Status& answered,
                                        const google::protobuf::Message& message) {
      *status = answered;
      if (answered.ok()) response->CopyFrom(message);
    };
    if (row == nullptr) {
      *status = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "no handler");
    } else {
      calls_->Begin(*row, std::move(arrival));
    }
    return status;
  }
  template <typename Request, typename Response>
  grpc::Status Call(const Request& request, Response* response) {
    const auto status = Begin(request, response);
    scheduler_.RunFor(std::chrono::milliseconds(1));
    return *status;
  }
  // OK, or the error, for a message of a test.
  template <typename Request, typename Response>
  grpc::StatusCode CodeOf(const Request& request, Response* response) {
    const grpc::Status status = Call(request, response);
    message_ = status.error_message();
    return status.error_code();
  }

  static ::csi::v1::VolumeCapability Mount(const std::string& fs_type = "") {
    ::csi::v1::VolumeCapability capability;
    capability.mutable_mount()->set_fs_type(fs_type);
    capability.mutable_access_mode()->set_mode(
        ::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
    return capability;
  }
  static ::csi::v1::VolumeCapability Block() {
    ::csi::v1::VolumeCapability capability = Mount();
    capability.mutable_block();
    return capability;
  }
  static ::csi::v1::CreateVolumeRequest CreateRequest(const std::string& name,
                                                      int64_t bytes = 16 * kMiB) {
    ::csi::v1::CreateVolumeRequest request;
    request.set_name(name);
    request.mutable_capacity_range()->set_required_bytes(bytes);
    *request.add_volume_capabilities() = Mount();
    return request;
  }
  // The volume; one without an id if it was refused.
  ::csi::v1::Volume Create(const ::csi::v1::CreateVolumeRequest& request) {
    ::csi::v1::CreateVolumeResponse response;
    EXPECT_EQ(CodeOf(request, &response), grpc::StatusCode::OK) << message_;
    return response.volume();
  }
  std::string CreateNamed(const std::string& name) {
    return Create(CreateRequest(name)).volume_id();
  }
  grpc::StatusCode CreateCode(const ::csi::v1::CreateVolumeRequest& request) {
    ::csi::v1::CreateVolumeResponse response;
    return CodeOf(request, &response);
  }
  grpc::StatusCode Modify(const std::string& id, const StringMap& changes) {
    ::csi::v1::ControllerModifyVolumeRequest request;
    request.set_volume_id(id);
    for (const auto& [key, value] : changes) (*request.mutable_mutable_parameters())[key] = value;
    ::csi::v1::ControllerModifyVolumeResponse response;
    return CodeOf(request, &response);
  }
  StringMap RecordedOf(const std::string& id) {
    return Must(volumes_->Find(id)).mutable_parameters;
  }
  grpc::StatusCode Delete(const std::string& id) {
    ::csi::v1::DeleteVolumeRequest request;
    request.set_volume_id(id);
    ::csi::v1::DeleteVolumeResponse response;
    return CodeOf(request, &response);
  }
  static ::csi::v1::ControllerPublishVolumeRequest PublishRequest(
      const std::string& id, const std::string& node = kThisNode, bool read_only = false) {
    ::csi::v1::ControllerPublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_node_id(node);
    request.set_readonly(read_only);
    *request.mutable_volume_capability() = Mount();
    return request;
  }
  grpc::StatusCode PublishCode(const ::csi::v1::ControllerPublishVolumeRequest& request) {
    ::csi::v1::ControllerPublishVolumeResponse response;
    return CodeOf(request, &response);
  }
  grpc::StatusCode Unpublish(const std::string& id, const std::string& node = kThisNode) {
    ::csi::v1::ControllerUnpublishVolumeRequest request;
    request.set_volume_id(id);
    request.set_node_id(node);
    ::csi::v1::ControllerUnpublishVolumeResponse response;
    return CodeOf(request, &response);
  }

  ControllerRpcSettings settings_{.node = kThisNode,
                                  .other_nodes = {},
                                  .most_volumes = 0,
                                  .capacity_deadline = std::chrono::seconds(10)};
  decltype(ControllerRpcParts::when_copied) when_copied_;
  std::string why_unseen_;
  std::string message_;  // of the last call's error
  pid_t caller_ = 0;     // not known
  std::unique_ptr<PoolServed> pools_;
  std::unique_ptr<CsiHandlers> handlers_;
  std::shared_ptr<CsiCalls> calls_;
};

}  // namespace volumed
