// What a peer has to be for each call of the control API.
#include <grpcpp/grpcpp.h>

#include <map>

#include "agent.grpc.pb.h"
#include "unit/agent/control_backend_fixture.h"

namespace volumed {
namespace {

using Stub = v1::VolumeAgent::Stub;

class ControlRolesTest : public ControlBackendTest {
 protected:
  // The role that a peer without one is told to need.
  template <typename Request, typename Response>
  std::string NeededBy(grpc::Status (Stub::*call)(grpc::ClientContext*, const Request&, Response*),
                       const Request& request = Request()) {
    grpc::ClientContext context;
    Response response;
    return RoleIn((StubFor(PeerRole::kNone).*call)(&context, request, &response));
  }
  template <typename Request, typename Response>
  std::string NeededByStream(std::unique_ptr<grpc::ClientReader<Response>> (Stub::*call)(
      grpc::ClientContext*, const Request&)) {
    grpc::ClientContext context;
    const auto reader = (StubFor(PeerRole::kNone).*call)(&context, Request());
    Response response;
    while (reader->Read(&response)) {
    }
    return RoleIn(reader->Finish());
  }
  Stub& StubFor(PeerRole role) {
    Served& served = served_[role];
    if (served.stub != nullptr) return *served.stub;
    served.service = std::make_unique<ControlService>(*backend_, role);
    grpc::ServerBuilder builder;
    builder.RegisterService(served.service.get());
    served.server = builder.BuildAndStart();
    served.stub = v1::VolumeAgent::NewStub(served.server->InProcessChannel({}));
    return *served.stub;
  }
  // "operate" of "needs role operate; this peer has role none".
  static std::string RoleIn(const grpc::Status& refused) {
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
    const std::string& text = refused.error_message();
    const std::string before = "needs role ";
    EXPECT_EQ(text.rfind(before, 0), 0u) << text;
    return text.substr(before.size(), text.find(';') - before.size());
  }

 private:
  struct Served {
    std::unique_ptr<ControlService> service;
    std::unique_ptr<grpc::Server> server;
    std::unique_ptr<Stub> stub;
  };
  std::map<PeerRole, Served> served_;
};

TEST_F(ControlRolesTest, WhatOnlyLooksIsForReaders) {
  EXPECT_EQ(NeededBy(&Stub::GetPods), "read");
  EXPECT_EQ(NeededBy(&Stub::GetSources), "read");
  EXPECT_EQ(NeededBy(&Stub::GetRecords), "read");
  EXPECT_EQ(NeededBy(&Stub::GetContainerMounts), "read");
  EXPECT_EQ(NeededBy(&Stub::GetStatus), "read");
  EXPECT_EQ(NeededBy(&Stub::Describe), "read");
  EXPECT_EQ(NeededBy(&Stub::GetStorage), "read");
  EXPECT_EQ(NeededBy(&Stub::ListObjects), "read");
  EXPECT_EQ(NeededBy(&Stub::GetDrivers), "read");
  EXPECT_EQ(NeededBy(&Stub::GetDriverTrace), "read");
  EXPECT_EQ(NeededBy(&Stub::GetPools), "read");
  EXPECT_EQ(NeededBy(&Stub::GetPoolVolumes), "read");
  EXPECT_EQ(NeededBy(&Stub::GetSnapshots), "read");
  v1::CallDriverRequest question;
  question.set_method("NodeGetInfo");
  EXPECT_EQ(NeededBy(&Stub::CallDriver, question), "read");
  EXPECT_EQ(NeededByStream(&Stub::Wait), "read");
  EXPECT_EQ(NeededByStream(&Stub::WatchOperations), "read");
  EXPECT_EQ(NeededByStream(&Stub::WatchEvents), "read");
  EXPECT_EQ(NeededByStream(&Stub::WatchSnapshot), "read");
}

TEST_F(ControlRolesTest, WhatChangesPodsAndObjectsIsForOperators) {
  EXPECT_EQ(NeededBy(&Stub::Apply), "operate");
  EXPECT_EQ(NeededBy(&Stub::Delete), "operate");
  EXPECT_EQ(NeededBy(&Stub::DeleteObjects), "operate");
  EXPECT_EQ(NeededBy(&Stub::Hold), "operate");
  EXPECT_EQ(NeededBy(&Stub::ReleaseHold), "operate");
  EXPECT_EQ(NeededBy(&Stub::Retry), "operate");
  EXPECT_EQ(NeededBy(&Stub::RetryAll), "operate");
  EXPECT_EQ(NeededBy(&Stub::RetryDriver), "operate");
  EXPECT_EQ(NeededBy(&Stub::CreateSnapshot), "operate");
  EXPECT_EQ(NeededBy(&Stub::DeleteSnapshot), "operate");
  EXPECT_EQ(NeededBy(&Stub::CancelSnapshot), "operate");
  EXPECT_EQ(NeededBy(&Stub::RestoreSnapshot), "operate");
  EXPECT_EQ(NeededBy(&Stub::ImportVolume), "operate");
  EXPECT_EQ(NeededBy(&Stub::DeletePoolVolume), "operate");
}

TEST_F(ControlRolesTest, WhatMayLoseDataIsForAdministrators) {
  EXPECT_EQ(NeededBy(&Stub::ForgetSource), "admin");
  EXPECT_EQ(NeededBy(&Stub::AcceptSource), "admin");
  EXPECT_EQ(NeededBy(&Stub::AcceptRecords), "admin");
  EXPECT_EQ(NeededBy(&Stub::AcceptVolume), "admin");
  EXPECT_EQ(NeededBy(&Stub::ForgetDriver), "admin");
  v1::CallDriverRequest change;
  change.set_method("NodeUnstageVolume");
  EXPECT_EQ(NeededBy(&Stub::CallDriver, change), "admin");
  v1::DeleteRequest forced;
  forced.set_force(true);
  EXPECT_EQ(NeededBy(&Stub::Delete, forced), "admin");
  v1::DeleteObjectsRequest one_forced;
  one_forced.add_objects();
  *one_forced.add_objects() = forced;
  EXPECT_EQ(NeededBy(&Stub::DeleteObjects, one_forced), "admin");
}

TEST_F(ControlRolesTest, ARoleBelowTheNeededOneIsNotEnough) {
  grpc::ClientContext context;
  v1::AcceptRecordsResponse response;
  const grpc::Status refused =
      StubFor(PeerRole::kOperate).AcceptRecords(&context, v1::AcceptRecordsRequest(), &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(refused.error_message(), "needs role admin; this peer has role operate");
}

}  // namespace
}  // namespace volumed
