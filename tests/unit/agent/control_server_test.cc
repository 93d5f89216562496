// The control socket with a real client on it: who is let in, and what a role may do.
#include "agent/control_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "agent.grpc.pb.h"
#include "base/real_scheduler.h"
#include "base/socket_file.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;

// Answers with the role that it stands for.
class RoleService final : public v1::VolumeAgent::CallbackService {
 public:
  explicit RoleService(std::string role) : role_(std::move(role)) {}
  grpc::ServerUnaryReactor* GetStatus(grpc::CallbackServerContext* context,
                                      const v1::GetStatusRequest*,
                                      v1::GetStatusResponse* response) override {
    response->set_version(role_);
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

 private:
  const std::string role_;
};

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    std::string name = (fs::temp_directory_path() / "control-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = (directory_ / "agent.sock").string();
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [](LogLevel, std::string_view) {};
    log_ = std::make_unique<Logger>(options, clock_);
    scheduler_ = std::move(RealScheduler::Create()).value();
  }
  ~ControlServerTest() override {
    scheduler_->Stop();
    if (control_.joinable()) control_.join();
    server_.reset();
    fs::remove_all(directory_);
  }

  // `peer_role` decides what this process, which may be root or not, is taken for.
  void Start(const std::map<PeerRole, grpc::Service*>& services,
             std::optional<gid_t> operate_group) {
    Result<Descriptor> socket = BindSocketFile({path_, std::nullopt, std::nullopt});
    ASSERT_TRUE(socket.ok()) << socket.error().ToString();
    server_ = std::make_unique<ControlServer>(PeerRoles(operate_group, std::nullopt),
                                              scheduler_->loop(), *log_, services);
    ASSERT_TRUE(server_->ListenAt(std::move(socket).value()).ok());
    control_ = std::thread([this] { scheduler_->Run(); });
  }

  grpc::Status Call(v1::GetStatusResponse* response) {
    auto stub = v1::VolumeAgent::NewStub(
        grpc::CreateChannel("unix://" + path_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    return stub->GetStatus(&context, v1::GetStatusRequest(), response);
  }

  RealClock clock_;
  // They outlive the server, whose threads call them.
  RoleService operate_{"operate"};
  RoleService admin_{"admin"};
  fs::path directory_;
  std::string path_;
  std::unique_ptr<Logger> log_;
  std::unique_ptr<RealScheduler> scheduler_;
  std::unique_ptr<ControlServer> server_;
  std::thread control_;
};

TEST_F(ControlServerTest, ThePeersCredentialsDecideWhichServerAnswers) {
  Start({{PeerRole::kOperate, &operate_}, {PeerRole::kAdmin, &admin_}}, ::getgid());
  v1::GetStatusResponse response;
  const grpc::Status status = Call(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.version(), ::getuid() == 0 ? "admin" : "operate");
}

TEST_F(ControlServerTest, APeerWithoutARoleIsTurnedAway) {
  Start({}, std::nullopt);
  v1::GetStatusResponse response;
  EXPECT_EQ(Call(&response).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ControlServerTest, TheSocketIsNotForEverybody) {
  Start({}, std::nullopt);
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0600));
}

TEST(PeerRolesTest, GroupsDecideForThoseWhoAreNotRoot) {
  const PeerRoles roles(gid_t{5000}, gid_t{6000});
  EXPECT_EQ(roles.RoleOf({1, 0, 0}), PeerRole::kAdmin);
  EXPECT_EQ(roles.RoleOf({1, 54321, 5000}), PeerRole::kOperate);
  EXPECT_EQ(roles.RoleOf({1, 54321, 6000}), PeerRole::kRead);
  EXPECT_EQ(roles.RoleOf({1, 54321, 7000}), PeerRole::kNone);
  EXPECT_EQ(PeerRoles(std::nullopt, std::nullopt).RoleOf({1, 54321, 0}), PeerRole::kNone);
}

TEST(PeerRolesTest, OnlyReadersShareFewPlaces) {
  EXPECT_TRUE(GuestClassOf(PeerRole::kRead).shares_few);
  EXPECT_FALSE(GuestClassOf(PeerRole::kOperate).shares_few);
  EXPECT_FALSE(GuestClassOf(PeerRole::kAdmin).shares_few);
}

}  // namespace
}  // namespace volumed
