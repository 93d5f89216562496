// The registration as a kubelet sees it, and what may be at its place already.
#include "csidriver/registration_server.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include "base/socket_file.h"
#include "pluginregistration.grpc.pb.h"
#include "unit/csidriver/csi_server_fixture.h"

namespace volumed {
namespace {

namespace fs = std::filesystem;
using ::pluginregistration::Registration;

class RegistrationServerTest : public testing::Test {
 protected:
  RegistrationServerTest() {
    settings_.directory = fs::path(directory_.Socket()).parent_path().string();
    settings_.driver = "disk.example.com";
    settings_.endpoint = "/var/lib/kubelet/plugins/disk/csi.sock";
    path_ = settings_.directory + "/disk.example.com-reg.sock";
  }
  ~RegistrationServerTest() override { End(); }

  void Serve() {
    control_.OnControl([this] {
      server_ = std::make_unique<RegistrationServer>(
          RegistrationServer::Parts{control_.scheduler(), control_.scheduler().loop(), log_},
          settings_, [this](const Status& state) {
            const std::lock_guard lock(mu_);
            state_ = state;
          });
      server_->Serve();
    });
  }
  void End() {
    control_.OnControl([this] { server_.reset(); });
  }
  Status state() {
    const std::lock_guard lock(mu_);
    return state_;
  }
  // The text of what is wrong; "" if nothing is.
  std::string Wrong() {
    const Status now = state();
    return now.ok() ? "" : now.error().message();
  }

  std::optional<::pluginregistration::PluginInfo> GetInfo() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = Registration::NewStub(grpc::CreateCustomChannel(
        "unix://" + path_, grpc::InsecureChannelCredentials(), arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    ::pluginregistration::PluginInfo info;
    if (!stub->GetInfo(&context, {}, &info).ok()) return std::nullopt;
    return info;
  }
  bool Notify(bool registered, const std::string& error) const {
    const auto stub = Registration::NewStub(
        grpc::CreateChannel("unix://" + path_, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    ::pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(registered);
    status.set_error(error);
    ::pluginregistration::RegistrationStatusResponse response;
    return stub->NotifyRegistrationStatus(&context, status, &response).ok();
  }
  ino_t InodeOfPlace() const {
    struct stat found {};
    return ::lstat(path_.c_str(), &found) == 0 ? found.st_ino : 0;
  }
  // A socket that was bound by a process that is dead.
  void LeaveDeadSocket(const std::string& path) const {
    const Result<Descriptor> socket = BindSocketFile({path, std::nullopt, std::nullopt});
    ASSERT_TRUE(socket.ok()) << socket.error().ToString();
  }

  SocketDirectory directory_;
  RegistrationServerSettings settings_;
  std::string path_;
  KeptLines lines_;
  RealClock clock_;
  Logger log_{lines_.options(), clock_};
  std::mutex mu_;
  Status state_;
  SchedulerThread control_;
  std::unique_ptr<RegistrationServer> server_;
};

TEST_F(RegistrationServerTest, SaysWhatItIsAndWhereItsDriverIs) {
  Serve();
  ASSERT_EQ(Wrong(), "");
  const auto info = GetInfo();
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->type(), "CSIPlugin");
  EXPECT_EQ(info->name(), "disk.example.com");
  EXPECT_EQ(info->endpoint(), "/var/lib/kubelet/plugins/disk/csi.sock");
  ASSERT_EQ(info->supported_versions_size(), 1);
  EXPECT_EQ(info->supported_versions(0), "1.0.0");
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms(0600));
  EXPECT_FALSE(fs::exists(HiddenSocketPath(path_))) << "it has its name";
}

TEST_F(RegistrationServerTest, WhatAKubeletSaysIsTheStateOfThePart) {
  Serve();
  ASSERT_TRUE(Notify(false, "no handler\nregistered"));
  EXPECT_TRUE(Becomes([&] { return !state().ok(); }));
  EXPECT_EQ(Wrong(), "a kubelet did not register the driver: no handler\\x0aregistered");
  ASSERT_TRUE(Notify(false, ""));
  EXPECT_TRUE(Becomes([&] {
    return Wrong() == "a kubelet did not register the driver: it gave no reason";
  })) << Wrong();
  ASSERT_TRUE(Notify(false, std::string(1 << 15, 'x')));
  EXPECT_TRUE(Becomes([&] { return Wrong().size() > 1000; }));
  EXPECT_LT(Wrong().size(), 1100U);
  ASSERT_TRUE(Notify(true, ""));
  EXPECT_TRUE(Becomes([&] { return state().ok(); }));
}

// A slip in the path of its directory left the driver without a kubelet, and the part was fine.
TEST_F(RegistrationServerTest, ADriverForWhichNoKubeletAskedWasSaidToBeRegistered) {
  settings_.silent_for = std::chrono::milliseconds(20);
  Serve();
  EXPECT_TRUE(Becomes([&] { return !state().ok(); }));
  EXPECT_EQ(Wrong(), "no kubelet has registered the driver: none runs here, or " +
                         settings_.directory + " is not its plugins_registry");
  ASSERT_TRUE(Notify(true, ""));
  EXPECT_TRUE(Becomes([&] { return state().ok(); }));
}

// A kubelet was told of a driver that nobody could call.
TEST_F(RegistrationServerTest, ADriverThatDidNotServeWasRegistered) {
  const auto tell = [this](const Status& state) {
    control_.OnControl([this, state] { server_->DriverServes(state); });
  };
  Serve();
  ASSERT_NE(InodeOfPlace(), 0u);
  tell(Error::NotApplied(Code::kUnavailable, "there is no directory"));
  EXPECT_EQ(InodeOfPlace(), 0u);
  EXPECT_EQ(Wrong(), "it is not registered while csi-serve does not serve: there is no directory");
  tell(OkStatus());
  EXPECT_EQ(Wrong(), "");
  EXPECT_TRUE(GetInfo().has_value());
  control_.OnControl([this] { ASSERT_TRUE(server_->Remove().ok()); });
  tell(OkStatus());
  EXPECT_EQ(InodeOfPlace(), 0u) << "the agent stops";
}

TEST_F(RegistrationServerTest, AStopTakesTheSocketAway) {
  Serve();
  ASSERT_NE(InodeOfPlace(), 0U);
  control_.OnControl([this] { EXPECT_TRUE(server_->Remove().ok()); });
  EXPECT_EQ(InodeOfPlace(), 0U);
  control_.OnControl([] {});
  EXPECT_EQ(InodeOfPlace(), 0U) << "it is not made anew";
}

TEST_F(RegistrationServerTest, AStopLeavesTheSocketOfAnother) {
  Serve();
  fs::path moved = settings_.directory + "/.moved";
  control_.OnControl([&] {
    // On the control thread, so that the place is not taken back before the stop.
    fs::rename(path_, moved);
    LeaveDeadSocket(path_);
    EXPECT_TRUE(server_->Remove().ok());
  });
  EXPECT_NE(InodeOfPlace(), 0U);
}

TEST_F(RegistrationServerTest, ASocketThatIsRemovedIsMadeAnew) {
  Serve();
  const ino_t before = InodeOfPlace();
  ASSERT_NE(before, 0U);
  fs::remove(path_);
  EXPECT_TRUE(Becomes([&] { return InodeOfPlace() != 0; }));
  EXPECT_TRUE(GetInfo().has_value());
}

TEST_F(RegistrationServerTest, TheSocketOfAKilledAgentIsNotServedAndIsReplaced) {
  const pid_t child = ::fork();
  if (child == 0) {
    // As an agent whose socket is in place, with nothing that would take it away.
    const bool made =
        BindSocketFile({.path = path_, .group = {}, .read_group = {}, .renamed_into_place = true})
            .ok();
    ::_exit(made ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const ino_t left = InodeOfPlace();
  ASSERT_NE(left, 0U);
  EXPECT_FALSE(GetInfo().has_value());
  Serve();
  EXPECT_EQ(Wrong(), "");
  EXPECT_TRUE(GetInfo().has_value());
}

TEST_F(RegistrationServerTest, WhatIsNoSocketAtItsPlaceStays) {
  std::ofstream(path_) << "a file";
  Serve();
  EXPECT_EQ(Wrong(), path_ + " is not a socket");
  EXPECT_EQ(fs::file_size(path_), 6U);
  fs::remove(path_);
  EXPECT_TRUE(Becomes([&] { return state().ok(); })) << "it comes when its place is free";
  EXPECT_TRUE(GetInfo().has_value());
}

TEST_F(RegistrationServerTest, ALinkAtItsPlaceIsNotFollowedAndStays) {
  const std::string elsewhere = settings_.directory + "/elsewhere.sock";
  LeaveDeadSocket(elsewhere);
  fs::create_symlink(elsewhere, path_);
  Serve();
  EXPECT_EQ(Wrong(), path_ + " is not a socket");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_TRUE(fs::exists(elsewhere));
}

TEST_F(RegistrationServerTest, ALinkUnderItsHiddenNameIsNotFollowed) {
  const std::string elsewhere = settings_.directory + "/elsewhere.sock";
  fs::create_symlink(elsewhere, HiddenSocketPath(path_));
  Serve();
  EXPECT_EQ(Wrong(), HiddenSocketPath(path_) + " is not a socket");
  EXPECT_FALSE(fs::exists(elsewhere));
  EXPECT_EQ(InodeOfPlace(), 0U);
}

TEST_F(RegistrationServerTest, TheLiveSocketOfAnotherIsNotTaken) {
  const Result<Descriptor> other = BindSocketFile({path_, std::nullopt, std::nullopt});
  ASSERT_TRUE(other.ok()) << other.error().ToString();
  const ino_t before = InodeOfPlace();
  Serve();
  EXPECT_EQ(Wrong(), "another process listens at " + path_);
  EXPECT_EQ(InodeOfPlace(), before);
}

TEST_F(RegistrationServerTest, OfTwoAgentsThatRegisterOneNameTheSecondWaits) {
  Serve();
  const ino_t before = InodeOfPlace();
  Status second;
  std::unique_ptr<RegistrationServer> other;
  control_.OnControl([&] {
    other = std::make_unique<RegistrationServer>(
        RegistrationServer::Parts{control_.scheduler(), control_.scheduler().loop(), log_},
        settings_, [&](const Status& state) { second = state; });
    other->Serve();
  });
  EXPECT_FALSE(second.ok());
  EXPECT_EQ(InodeOfPlace(), before);
  control_.OnControl([&] { other.reset(); });
  EXPECT_EQ(InodeOfPlace(), before);
  EXPECT_TRUE(GetInfo().has_value());
}

TEST_F(RegistrationServerTest, WhatAnEndedAgentLeftIsRemovedAndWhatALivingOneHasIsNot) {
  EXPECT_TRUE(RegistrationServer::RemoveDead(settings_).ok()) << "there is nothing";
  LeaveDeadSocket(path_);
  LeaveDeadSocket(HiddenSocketPath(path_));
  EXPECT_TRUE(RegistrationServer::RemoveDead(settings_).ok());
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_FALSE(fs::exists(HiddenSocketPath(path_)));
  std::ofstream(path_) << "a file";
  EXPECT_FALSE(RegistrationServer::RemoveDead(settings_).ok());
  EXPECT_TRUE(fs::exists(path_));
  fs::remove(path_);
  Serve();
  const Status living = RegistrationServer::RemoveDead(settings_);
  ASSERT_FALSE(living.ok());
  EXPECT_EQ(living.error().code(), Code::kUnavailable);
  EXPECT_TRUE(GetInfo().has_value());
}

TEST_F(RegistrationServerTest, ADirectoryThatComesLaterIsFoundThen) {
  settings_.directory += "/kubelet/plugins_registry";
  path_ = RegistrationServer::SocketPath(settings_);
  Serve();
  EXPECT_NE(Wrong(), "");
  fs::create_directories(fs::path(settings_.directory).parent_path());
  EXPECT_TRUE(Becomes([&] { return state().ok(); })) << Wrong();
  EXPECT_TRUE(GetInfo().has_value());
}

}  // namespace
}  // namespace volumed
