// The paths that calls have on the wire, as a server hears them.
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "csi.grpc.pb.h"
#include "pluginregistration.grpc.pb.h"

namespace volumed {
namespace {

// Knows no call, but which one came last; that is told before the call ends.
class PathListener : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    path_ = context->method();
    return CallbackGenericService::CreateReactor(context);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class MethodPaths : public testing::Test {
 protected:
  MethodPaths() {
    grpc::ServerBuilder builder;
    builder.RegisterCallbackGenericService(&listener_);
    server_ = builder.BuildAndStart();
  }

  // The path of a call, which `call` makes by a stub of the service.
  template <typename Service, typename Call>
  std::string PathOf(const Call& call) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const auto stub = Service::NewStub(server_->InProcessChannel({}));
    const grpc::Status status = call(*stub, &context);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
    return listener_.path();
  }

  PathListener listener_;
  std::unique_ptr<grpc::Server> server_;
};

// What PathOf makes, of a call with one answer.
template <typename Stub, typename Request, typename Answer>
auto Once(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Answer*)) {
  return [method](Stub& stub, grpc::ClientContext* context) {
    Answer answer;
    return (stub.*method)(context, Request(), &answer);
  };
}

TEST_F(MethodPaths, OfCsi) {
  using csi::v1::Controller;
  using csi::v1::GroupController;
  using csi::v1::Identity;
  using csi::v1::Node;
  EXPECT_EQ(PathOf<Identity>(Once(&Identity::Stub::GetPluginInfo)),
            "/csi.v1.Identity/GetPluginInfo");
  EXPECT_EQ(PathOf<Controller>(Once(&Controller::Stub::CreateVolume)),
            "/csi.v1.Controller/CreateVolume");
  EXPECT_EQ(PathOf<Node>(Once(&Node::Stub::NodeStageVolume)), "/csi.v1.Node/NodeStageVolume");
  EXPECT_EQ(PathOf<Node>(Once(&Node::Stub::NodeGetVolumeHealth)),
            "/csi.v1.Node/NodeGetVolumeHealth");
  EXPECT_EQ(PathOf<GroupController>(Once(&GroupController::Stub::CreateVolumeGroupSnapshot)),
            "/csi.v1.GroupController/CreateVolumeGroupSnapshot");
}

TEST_F(MethodPaths, OfAStream) {
  const auto read = [](csi::v1::SnapshotMetadata::Stub& stub, grpc::ClientContext* context) {
    const auto stream = stub.GetMetadataDelta(context, {});
    csi::v1::GetMetadataDeltaResponse answer;
    EXPECT_FALSE(stream->Read(&answer));
    return stream->Finish();
  };
  EXPECT_EQ(PathOf<csi::v1::SnapshotMetadata>(read), "/csi.v1.SnapshotMetadata/GetMetadataDelta");
}

TEST_F(MethodPaths, OfRegistration) {
  using pluginregistration::Registration;
  EXPECT_EQ(PathOf<Registration>(Once(&Registration::Stub::GetInfo)),
            "/pluginregistration.Registration/GetInfo");
  EXPECT_EQ(PathOf<Registration>(Once(&Registration::Stub::NotifyRegistrationStatus)),
            "/pluginregistration.Registration/NotifyRegistrationStatus");
}

}  // namespace
}  // namespace volumed
