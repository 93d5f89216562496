// A CSI driver of a test at a unix socket, with the agent's control thread beside it, and a client.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "csi.grpc.pb.h"
#include "csidriver/csi_server.h"
#include "csidriver/identity_rpcs.h"
#include "unit/csi/scheduler_thread.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {

// Lines of a log, from any thread.
class KeptLines {
 public:
  LogOptions options() {
    LogOptions options;
    options.target = LogOptions::Target::kCallback;
    options.callback = [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mu_);
      lines_ += std::string(line) + "\n";
    };
    return options;
  }
  std::string all() {
    const std::lock_guard lock(mu_);
    return lines_;
  }

 private:
  std::mutex mu_;
  std::string lines_;
};

// Whether it becomes so within 20 seconds.
inline bool Becomes(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class CsiServerFixture : public testing::Test {
 protected:
  ~CsiServerFixture() override {
    control_.OnControl([this] { server_.reset(); });
  }

  void Serve() {
    settings_.socket = directory_.Socket();
    AddIdentityRpcs(handlers_, {"disk.example.com", "1.2.3", "node-a"},
                    [this] { return server_->records_loaded(); });
    ASSERT_TRUE(handlers_.Check().ok());
    control_.OnControl([this] {
      server_ = std::make_unique<CsiServer>(
          CsiServer::Parts{control_.scheduler(), control_.scheduler().loop(), log_}, handlers_,
          settings_, [this](const Status& state) { state_ = state; });
      server_->Serve();
    });
    ASSERT_TRUE(state_.ok()) << state_.error().ToString();
  }

  // A connection of its own, as a kubelet has one for each call.
  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // What a Go client says, which has no host.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
    return grpc::CreateCustomChannel("unix://" + settings_.socket,
                                     grpc::InsecureChannelCredentials(), arguments);
  }
  template <typename Stub, typename Request, typename Response>
  grpc::Status Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                    Stub& stub, const Request& request, Response* response,
                    std::chrono::milliseconds limit = std::chrono::seconds(20)) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    return (stub.*method)(&context, request, response);
  }
  grpc::Status Probe(::csi::v1::ProbeResponse* response) const {
    const auto stub = ::csi::v1::Identity::NewStub(Connect());
    return Call(&::csi::v1::Identity::Stub::Probe, *stub, ::csi::v1::ProbeRequest(), response);
  }

  SocketDirectory directory_;
  KeptLines lines_;
  RealClock clock_;
  Logger log_{lines_.options(), clock_};
  CsiHandlers handlers_{CsiProfile::kCentral, CsiServeLevel::k1_13};
  CsiServerSettings settings_;
  Status state_;
  SchedulerThread control_;
  std::unique_ptr<CsiServer> server_;
};

}  // namespace volumed
