// A channel, and what its callbacks were told.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "csi.pb.h"
#include "csi/rpc/csi_channel.h"
#include "csi/rpc/csi_outcome.h"
#include "unit/csi/scripted_driver.h"

namespace volumed {

// Something that happens now and then on any thread, and the wait for it: 20 seconds at most.
class Happening {
 public:
  void Happened(const std::function<void()>& change = [] {}) {
    const std::lock_guard lock(mu_);
    change();
    changed_.notify_all();
  }
  bool WaitFor(const std::function<bool()>& condition) {
    std::unique_lock lock(mu_);
    return changed_.wait_for(lock, std::chrono::seconds(20), condition);
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
};

class KeptReports final : public CsiCallObserver {
 public:
  void CallEnded(const CsiCallReport& report) override {
    const std::lock_guard lock(mu_);
    reports_.push_back(report);
  }
  std::vector<CsiCallReport> all() {
    const std::lock_guard lock(mu_);
    return reports_;
  }

 private:
  std::mutex mu_;
  std::vector<CsiCallReport> reports_;
};

// A call that was begun, and its answer.
class BegunCall {
 public:
  explicit BegunCall(CsiChannel& channel, const google::protobuf::Message& request,
                     const CsiCallOptions& options = {}) {
    channel.Start(request, options, [state = state_](CsiChannel::AnyAnswer answer) {
      state->happening.Happened([&] { state->answer = std::move(answer); });
    });
  }
  bool ended() const {
    return state_->happening.WaitFor([this] { return state_->answer.has_value(); });
  }
  bool has_ended_now() const {
    bool ended = false;
    state_->happening.Happened([&] { ended = state_->answer.has_value(); });
    return ended;
  }
  // REQUIRES: ended().
  const CsiChannel::AnyAnswer& answer() const { return *state_->answer; }

 private:
  struct State {
    Happening happening;
    std::optional<CsiChannel::AnyAnswer> answer;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

class CsiChannelFixture : public testing::Test {
 protected:
  CsiChannelFixture() {
    options_.driver = "test.csi";
    options_.socket = directory_.Socket();
    options_.observers = {&reports_};
    options_.connection_changed = [this] { connection_.Happened(); };
  }

  void Connect() {
    auto channel = CsiChannel::Create(options_, clock_, watch_);
    ASSERT_TRUE(channel.ok()) << channel.error().ToString();
    channel_ = std::move(channel).value();
  }
  void Serve(ScriptedDriver::Script script) {
    driver_ = std::make_unique<ScriptedDriver>(options_.socket, std::move(script));
  }
  bool WaitForState(CsiConnectionState state) {
    return connection_.WaitFor([&] { return channel_->connection().state == state; });
  }
  CsiCallOptions In(Duration timeout) const { return {Deadline::After(clock_, timeout)}; }

  static ::csi::v1::NodeStageVolumeRequest Stage(const std::string& volume = "vol-1") {
    ::csi::v1::NodeStageVolumeRequest request;
    request.set_volume_id(volume);
    return request;
  }
  Result<::csi::v1::NodeStageVolumeResponse> CallStage(const std::string& volume = "vol-1") {
    return channel_->Call<::csi::v1::NodeStageVolumeResponse>(Stage(volume), {});
  }
  Result<::csi::v1::ProbeResponse> CallProbe() {
    return channel_->Call<::csi::v1::ProbeResponse>(::csi::v1::ProbeRequest(), {});
  }

  const RealClock clock_;
  SocketDirectory directory_;
  KeptReports reports_;
  Happening connection_;
  CsiChannelOptions options_;
  CsiStateWatch watch_;
  std::unique_ptr<ScriptedDriver> driver_;
  std::unique_ptr<CsiChannel> channel_;
};

}  // namespace volumed
