// The driver as its clients see it: a gRPC client over a unix socket.
#include "csidriver/csi_server.h"

#include <grpcpp/impl/client_unary_call.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>

#include "unit/csidriver/csi_server_fixture.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::csi::v1::Identity;
using ::csi::v1::Node;
using ::csi::v1::NodeUnpublishVolumeRequest;
using ::csi::v1::NodeUnpublishVolumeResponse;

class CsiServerTest : public CsiServerFixture {
 protected:
  // Calls of NodeUnpublishVolume wait until they are released.
  void HoldUnpublish() {
    handlers_.Add<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>(
        [this](const CsiRpc<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>& rpc) {
          const std::lock_guard lock(mu_);
          held_.push_back(rpc);
        });
  }
  size_t held() {
    const std::lock_guard lock(mu_);
    return held_.size();
  }
  void Release(const Status& status) {
    const std::lock_guard lock(mu_);
    for (const auto& rpc : held_) rpc.Finish(status);
    held_.clear();
  }
  grpc::Status Unpublish(const std::string& volume,
                         std::chrono::milliseconds limit = std::chrono::seconds(20)) const {
    const auto stub = Node::NewStub(Connect());
    NodeUnpublishVolumeRequest request;
    request.set_volume_id(volume);
    request.set_target_path("/t");
    NodeUnpublishVolumeResponse response;
    return Call(&Node::Stub::NodeUnpublishVolume, *stub, request, &response, limit);
  }

  std::mutex mu_;
  std::vector<CsiRpc<NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse>> held_;
};

TEST_F(CsiServerTest, SaysWhoItIsBeforeItsRecordsAreLoadedAndWhatItCanDoAfterwards) {
  Serve();
  const auto identity = Identity::NewStub(Connect());
  const auto node = Node::NewStub(Connect());
  ::csi::v1::GetPluginInfoResponse info;
  ASSERT_TRUE(Call(&Identity::Stub::GetPluginInfo, *identity, {}, &info).ok());
  EXPECT_EQ(info.name(), "disk.example.com");
  EXPECT_EQ(info.vendor_version(), "1.2.3");
  ::csi::v1::NodeGetInfoResponse node_info;
  ASSERT_TRUE(Call(&Node::Stub::NodeGetInfo, *node, {}, &node_info).ok());
  EXPECT_EQ(node_info.node_id(), "node-a");
  ::csi::v1::ProbeResponse probe;
  ASSERT_TRUE(Probe(&probe).ok());
  EXPECT_TRUE(probe.has_ready());
  EXPECT_FALSE(probe.ready().value());

  ::csi::v1::GetPluginCapabilitiesResponse capabilities;
  ::csi::v1::NodeGetCapabilitiesResponse of_node;
  EXPECT_EQ(Call(&Identity::Stub::GetPluginCapabilities, *identity, {}, &capabilities).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Call(&Node::Stub::NodeGetCapabilities, *node, {}, &of_node).error_code(),
            grpc::StatusCode::UNAVAILABLE);

  server_->RecordsLoaded();
  ASSERT_TRUE(Probe(&probe).ok());
  EXPECT_TRUE(probe.ready().value());
  EXPECT_TRUE(Call(&Identity::Stub::GetPluginCapabilities, *identity, {}, &capabilities).ok());
  EXPECT_EQ(capabilities.capabilities_size(), 0) << "nothing is served but what asks";
  EXPECT_TRUE(Call(&Node::Stub::NodeGetCapabilities, *node, {}, &of_node).ok());
  EXPECT_EQ(of_node.capabilities_size(), 0);
}

// What its answers mean to gRPC's own client, of each RPC of the proto, streams included.
TEST_F(CsiServerTest, AnRpcThatNobodyServesIsUnimplementedByItsName) {
  Serve();
  server_->RecordsLoaded();
  const auto channel = Connect();
  const std::set<std::string> served = {"GetPluginInfo",
                                        "GetPluginCapabilities",
                                        "Probe",
                                        "ControllerGetCapabilities",
                                        "NodeGetCapabilities",
                                        "NodeGetInfo",
                                        "GroupControllerGetCapabilities"};
  size_t refused = 0;
  for (const CsiMethod& method : CsiMethods()) {
    if (!method.service.starts_with("csi.v1.")) continue;
    const grpc::internal::RpcMethod rpc(method.path.c_str(),
                                        method.streaming
                                            ? grpc::internal::RpcMethod::SERVER_STREAMING
                                            : grpc::internal::RpcMethod::NORMAL_RPC,
                                        channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const grpc::Slice nothing("");
    const grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer response;
    const grpc::Status status =
        grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
            channel.get(), rpc, &context, request, &response);
    if (served.contains(method.name)) {
      EXPECT_TRUE(status.ok()) << method.name << ": " << status.error_message();
      continue;
    }
    ++refused;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << method.name;
    EXPECT_EQ(status.error_message(), method.path + " is not served: this driver does not have it");
  }
  EXPECT_GT(refused, 25U);
}

TEST_F(CsiServerTest, AStreamThatNobodyServesEndsWithTheSameStatus) {
  Serve();
  const auto stub = ::csi::v1::SnapshotMetadata::NewStub(Connect());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto reader = stub->GetMetadataAllocated(&context, {});
  ::csi::v1::GetMetadataAllocatedResponse response;
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(CsiServerTest, AHugeMessageIsNotRead) {
  settings_.most_message_bytes = 64 * 1024;
  HoldUnpublish();
  Serve();
  server_->RecordsLoaded();
  EXPECT_EQ(Unpublish(std::string(128 * 1024, 'v')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  const grpc::Status large = Unpublish(std::string(60 * 1024, 'v'));
  EXPECT_EQ(large.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(large.error_message(),
            "volume_id has 61440 bytes; 128 are the most that the CSI specification allows");
  EXPECT_EQ(held(), 0U);
}

TEST_F(CsiServerTest, AnEnumOfALaterSpecificationIsNamed) {
  handlers_.Add<::csi::v1::NodePublishVolumeRequest, ::csi::v1::NodePublishVolumeResponse>(
      [](const auto& rpc) { rpc.Finish(OkStatus()); });
  Serve();
  server_->RecordsLoaded();
  const auto stub = Node::NewStub(Connect());
  ::csi::v1::NodePublishVolumeRequest request;
  request.set_volume_id("v");
  request.set_target_path("/t");
  request.mutable_volume_capability()->mutable_mount();
  auto& mode = *request.mutable_volume_capability()->mutable_access_mode();
  mode.set_mode(static_cast<::csi::v1::VolumeCapability::AccessMode::Mode>(42));
  ::csi::v1::NodePublishVolumeResponse response;
  const grpc::Status unknown = Call(&Node::Stub::NodePublishVolume, *stub, request, &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(unknown.error_message(),
            "volume_capability.access_mode.mode has the value 42, which this driver does not know");
  mode.set_mode(::csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  EXPECT_TRUE(Call(&Node::Stub::NodePublishVolume, *stub, request, &response).ok());
}

TEST_F(CsiServerTest, OfTwoCallsWithOneKeyTheSecondIsAborted) {
  HoldUnpublish();
  Serve();
  server_->RecordsLoaded();
  grpc::Status first;
  std::thread caller([&] { first = Unpublish("v"); });
  EXPECT_TRUE(Becomes([&] { return held() == 1; }));
  EXPECT_EQ(Unpublish("v").error_code(), grpc::StatusCode::ABORTED);
  Release(OkStatus());
  caller.join();
  EXPECT_TRUE(first.ok()) << first.error_message();
}

TEST_F(CsiServerTest, AClientThatGivesUpEndsNothing) {
  HoldUnpublish();
  Serve();
  server_->RecordsLoaded();
  EXPECT_EQ(Unpublish("v", std::chrono::milliseconds(200)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(Becomes([&] { return held() == 1; }));
  EXPECT_EQ(Unpublish("v").error_code(), grpc::StatusCode::ABORTED) << "it goes on";
  Release(OkStatus());
  std::thread repeat([&] { EXPECT_TRUE(Unpublish("v").ok()); });
  EXPECT_TRUE(Becomes([&] { return held() == 1; }));
  Release(OkStatus());
  repeat.join();
}

TEST_F(CsiServerTest, APeerThatCallsTooOftenIsPutOffOverAllItsConnections) {
  settings_.limits.rate = 1;
  Serve();
  int answered = 0;
  int put_off = 0;
  for (int i = 0; i < 40; ++i) {
    ::csi::v1::ProbeResponse response;
    const grpc::Status status = Probe(&response);
    if (status.ok()) {
      ++answered;
      continue;
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_NE(status.error_message().find("more than 1 calls within a second"), std::string::npos)
        << status.error_message();
    ++put_off;
  }
  EXPECT_GE(answered, 1);
  EXPECT_GT(put_off, 0) << "each connection had a rate of its own";
}

TEST_F(CsiServerTest, ThePeerOfACallIsKnown) {
  HoldUnpublish();
  Serve();
  server_->RecordsLoaded();
  std::thread caller([&] { EXPECT_TRUE(Unpublish("v").ok()); });
  EXPECT_TRUE(Becomes([&] { return held() == 1; }));
  Release(OkStatus());
  caller.join();
  const std::string peer =
      "uid=" + std::to_string(::getuid()) + " pid=" + std::to_string(::getpid());
  EXPECT_NE(lines_.all().find(peer), std::string::npos) << lines_.all();
}

TEST_F(CsiServerTest, AServerThatStopsAnswersTheCallsThatItHas) {
  HoldUnpublish();
  Serve();
  server_->RecordsLoaded();
  grpc::Status status;
  std::thread caller([&] { status = Unpublish("v"); });
  EXPECT_TRUE(Becomes([&] { return held() == 1; }));
  control_.OnControl([this] { server_.reset(); });
  caller.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the driver stops: try again later");
  Release(OkStatus());  // what the call had begun is done
}

// ---- answers that are streams -------------------------------------------------------------------

using AllocatedStream =
    CsiStreamRpc<::csi::v1::GetMetadataAllocatedRequest, ::csi::v1::GetMetadataAllocatedResponse>;

// A driver whose streams have as many messages as a test wants, each with `ranges` ranges.
class CsiServerStreamTest : public CsiServerTest {
 protected:
  CsiServerStreamTest() {
    handlers_
        .AddStream<::csi::v1::GetMetadataAllocatedRequest, ::csi::v1::GetMetadataAllocatedResponse>(
            [this](const AllocatedStream& stream) { SendFrom(stream, 0); });
  }
  // On the control thread.
  void SendFrom(const AllocatedStream& stream, int message) {
    if (message == messages_) return stream.Finish(end_);
    stream.response().Clear();
    stream.response().set_volume_capacity_bytes(message);
    for (int i = 0; i < ranges_; ++i) {
      stream.response().add_block_metadata()->set_byte_offset(int64_t{1} << 40);
    }
    ++sent_;
    stream.Send([this, stream, message](bool taken) {
      if (taken) return SendFrom(stream, message + 1);
      ++left_;
      stream.Finish(Error::NotApplied(Code::kCancelled, "nobody reads"));
    });
  }
  std::unique_ptr<grpc::ClientReader<::csi::v1::GetMetadataAllocatedResponse>> Open(
      const std::string& id = "s") {
    stub_ = ::csi::v1::SnapshotMetadata::NewStub(Connect());
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    ::csi::v1::GetMetadataAllocatedRequest request;
    request.set_snapshot_id(id);
    return stub_->GetMetadataAllocated(&context_, request);
  }

  int messages_ = 3;
  int ranges_ = 1;
  Status end_;
  std::atomic<int> sent_{0};
  std::atomic<int> left_{0};
  std::unique_ptr<::csi::v1::SnapshotMetadata::Stub> stub_;
  grpc::ClientContext context_;
};

TEST_F(CsiServerStreamTest, AllMessagesComeInOrderAndThenTheStatus) {
  messages_ = 200;
  Serve();
  server_->RecordsLoaded();
  const auto reader = Open();
  ::csi::v1::GetMetadataAllocatedResponse response;
  for (int message = 0; message < messages_; ++message) {
    ASSERT_TRUE(reader->Read(&response)) << message;
    EXPECT_EQ(response.volume_capacity_bytes(), message);
  }
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(Becomes([&] { return server_->calls_under_way() == 0; }));
  EXPECT_EQ(left_, 0);
}

TEST_F(CsiServerStreamTest, AnErrorComesAfterTheMessagesBeforeIt) {
  end_ = Error::NotApplied(Code::kNotFound, "snapshot s is gone");
  Serve();
  server_->RecordsLoaded();
  const auto reader = Open();
  ::csi::v1::GetMetadataAllocatedResponse response;
  for (int message = 0; message < messages_; ++message) EXPECT_TRUE(reader->Read(&response));
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "snapshot s is gone");
}

TEST_F(CsiServerStreamTest, WhatIsRefusedIsAStatusWithoutAMessage) {
  Serve();
  ::csi::v1::GetMetadataAllocatedResponse response;
  const auto early = Open();
  EXPECT_FALSE(early->Read(&response));
  EXPECT_EQ(early->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->RecordsLoaded();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  const auto nameless = stub_->GetMetadataAllocated(&context, {});
  EXPECT_FALSE(nameless->Read(&response));
  const grpc::Status status = nameless->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "snapshot_id is required");
  EXPECT_EQ(sent_, 0);
}

// What it has not read is bounded by gRPC's windows and one message, however long the stream is.
TEST_F(CsiServerStreamTest, AClientThatDoesNotReadIsLeftAfterAWhile) {
  messages_ = 1'000'000;
  ranges_ = 4096;
  settings_.limits.longest_untaken = std::chrono::milliseconds(300);
  Serve();
  server_->RecordsLoaded();
  const auto reader = Open();
  EXPECT_TRUE(Becomes([&] { return server_->calls_under_way() == 0 && left_ == 1; }));
  EXPECT_GE(sent_, 1);
  EXPECT_LT(sent_, 1000) << "it was sent more than anybody took";
  ::csi::v1::GetMetadataAllocatedResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(CsiServerStreamTest, AStreamEndsWithTheClientThatCancelsIt) {
  messages_ = 1'000'000;
  ranges_ = 4096;
  Serve();
  server_->RecordsLoaded();
  const auto reader = Open();
  ::csi::v1::GetMetadataAllocatedResponse response;
  EXPECT_TRUE(reader->Read(&response));
  context_.TryCancel();
  EXPECT_TRUE(Becomes([&] { return server_->calls_under_way() == 0 && left_ == 1; }));
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(CsiServerStreamTest, AServerThatStopsEndsItsStreams) {
  messages_ = 1'000'000;
  ranges_ = 4096;
  Serve();
  server_->RecordsLoaded();
  const auto reader = Open();
  ::csi::v1::GetMetadataAllocatedResponse response;
  EXPECT_TRUE(reader->Read(&response));
  control_.OnControl([this] { server_.reset(); });
  while (reader->Read(&response)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_TRUE(Becomes([&] { return left_ == 1; }));
}

TEST(CsiGuestClassTest, RootTheAgentsUserAndTheGroupMayCall) {
  const auto may = [](uid_t uid, gid_t gid, std::optional<gid_t> group) {
    return CsiGuestClass({1, uid, gid}, group).has_value();
  };
  EXPECT_TRUE(may(0, 0, std::nullopt));
  EXPECT_TRUE(may(::geteuid(), 54321, std::nullopt));
  EXPECT_FALSE(may(54321, 0, std::nullopt)) << "the group of root is no user root";
  EXPECT_FALSE(may(54321, 54322, std::nullopt));
  EXPECT_TRUE(may(54321, 54322, gid_t{54322}));
  EXPECT_FALSE(may(54321, 54323, gid_t{54322}));
}

// Connects as another user, and speaks. 0: the server closed the connection without a word; 1: it
// said something; 2: it could not be connected to.
int ConnectAs(uid_t uid, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const int connection = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (::setuid(uid) != 0 ||
        ::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      ::_exit(2);
    }
    constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    // Whoever is turned away may be so before it has written.
    (void)::send(connection, kPreface, sizeof(kPreface) - 1, MSG_NOSIGNAL);
    char byte = 0;
    ::_exit(::read(connection, &byte, 1) > 0 ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(CsiServerTest, APeerThatMayNotCallIsTurnedAwayWhateverTheFilesModeIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root can be another user";
  constexpr uid_t kOther = 54321;
  Serve();
  EXPECT_EQ(fs::status(settings_.socket).permissions(), fs::perms(0600));
  fs::permissions(fs::path(settings_.socket).parent_path(), fs::perms(0755));
  EXPECT_EQ(ConnectAs(kOther, settings_.socket), 2) << "the file lets nobody connect";
  fs::permissions(settings_.socket, fs::perms(0666));
  EXPECT_EQ(ConnectAs(kOther, settings_.socket), 0);
  EXPECT_EQ(ConnectAs(0, settings_.socket), 1);
  EXPECT_NE(lines_.all().find("CSI connection refused: no role"), std::string::npos);
}

TEST_F(CsiServerTest, ASocketThatIsRemovedIsMadeAnew) {
  Serve();
  fs::remove(settings_.socket);
  EXPECT_TRUE(Becomes([&] { return fs::exists(settings_.socket); }));
  EXPECT_TRUE(Becomes([&] {
    ::csi::v1::ProbeResponse response;
    return Probe(&response).ok();
  }));
}

}  // namespace
}  // namespace volumed
