// The agent's CSI drivers with all real parts, and whoever asks of them what the control API asks.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/csi_client.h"
#include "agent/driver_commands.h"
#include "agent/driver_questions.h"
#include "csi/csi_call_by_hand.h"
#include "fakes/memory_record_store.h"
#include "metrics/exported_families.h"
#include "unit/csi/channel_fixture.h"
#include "unit/csi/real_driver.h"
#include "unit/csi/scheduler_thread.h"

namespace volumed {

// Says of each call by hand that it is done.
class DoneByHand final : public VolumeOperations {
 public:
  std::vector<StartResult> StartAll(
      std::vector<std::unique_ptr<AnyOperation>> operations) override {
    if (refuses) return {*refuses};
    auto* const call = As<CallByHand>(*operations.front());
    traits.push_back(call->operation().Traits());
    if (fails) {
      call->Finish({.value = {}, .failure = OperationFailure{"csi_command", "Call", *fails}});
      return {StartResult::kStarted};
    }
    call->Finish({.value = "done by hand", .failure = {}});
    return {StartResult::kStarted};
  }
  std::set<std::string> SetUnknownVolumes(std::vector<UnknownVolume>) override { return {}; }
  bool IsPending(const OperationKey&) const override { return false; }
  std::optional<TimePoint> NextTry(const OperationKey&) const override { return std::nullopt; }
  void ResetBackoff(const OperationKey&) override {}
  std::vector<RunningOperation> Running() const override { return {}; }
  std::optional<RunningOperation> FindRunning(const OperationKey&) const override {
    return std::nullopt;
  }

  std::optional<Error> fails;
  std::optional<StartResult> refuses;
  std::vector<OperationTraits> traits;
};

class CsiClientTest : public testing::Test {
 protected:
  static constexpr const char* kName = "disk.example.com";

  CsiClientTest() {
    std::filesystem::create_directories(root_ / "plugins" / "disk");
    StartClient();
  }
  ~CsiClientTest() override { StopClient(); }

  // What the client has asked of other threads uses it until it is answered: a socket that is just
  // being opened anew, as its driver has gone.
  void StopClient() {
    for (bool stopped = false; !stopped; std::this_thread::yield()) {
      scheduler_.OnControl([&] {
        const ExecutorLoad load = scheduler_.scheduler().load();
        if (load.busy > 0 || load.queued > 0) return;
        client_.reset();
        stopped = true;
      });
    }
    scheduler_.WaitUntilIdle();
  }
  // The agent starts; the records stay.
  void StartClient() {
    looked_ = false;
    auto watch = InotifyRegistryWatch::Create(registry_.string(), {});
    ASSERT_TRUE(watch.ok()) << watch.error().ToString();
    scheduler_.OnControl([&] {
      CsiClientSettings settings;
      settings.registry = registry_.string();
      settings.owners = {static_cast<uint32_t>(::getuid())};
      settings.drivers.endpoint_directories = {root_.string()};
      settings.drivers.controllers = controllers_;
      CsiClientHooks hooks;
      hooks.happened = [this](const std::string&, DriverEvent) { happening_.Happened(); };
      hooks.looked = [this](const std::optional<Error>&) {
        happening_.Happened([&] { looked_ = true; });
      };
      client_ = std::make_unique<CsiClient>(
          CsiClient::Parts{scheduler_.scheduler(), &scheduler_.scheduler().loop(), *connections_,
                           store_, log_},
          settings, hooks);
      for (const OtherRecordKind& kind : CsiClient::RecordKinds()) {
        client_->Restore(kind.kind, *store_.Load(kind.kind));
      }
      restored_ = Drivers();
      client_->Start(*std::move(watch));
    });
    ASSERT_TRUE(happening_.WaitFor([&] { return looked_; }));
  }
  std::unique_ptr<RealDriver> StartDriver() {
    return std::make_unique<RealDriver>(Endpoint(), kName);
  }
  std::unique_ptr<RealDriver> StartRegistrar() {
    return StartRealRegistrar(registry_, "disk.sock", kName, Endpoint());
  }
  std::string Endpoint() const { return (root_ / "plugins" / "disk" / "csi.sock").string(); }

  // On the control thread.
  v1::GetDriversResponse Drivers(const std::string& name = "") {
    v1::GetDriversRequest request;
    request.set_name(name);
    v1::GetDriversResponse response;
    asked_ = DescribeDrivers(*client_, {{"csi:disk.example.com", 3}}, clock_, request, &response);
    return response;
  }
  v1::GetDriversResponse DriversNow(const std::string& name = "") {
    v1::GetDriversResponse drivers;
    scheduler_.OnControl([&] { drivers = Drivers(name); });
    return drivers;
  }
  // Looks again after each event, and now and then: sockets have none.
  bool WaitUntil(const std::function<bool(const v1::GetDriversResponse&)>& is) {
    const Deadline deadline = Deadline::After(clock_, std::chrono::seconds(20));
    while (!deadline.Passed(clock_)) {
      if (is(DriversNow())) return true;
      std::this_thread::yield();
    }
    return false;
  }
  bool WaitForState(const std::string& state) {
    return WaitUntil([&](const v1::GetDriversResponse& drivers) {
      return drivers.drivers_size() == 1 && drivers.drivers(0).state() == state;
    });
  }
  // `changes`: there is something that makes calls which change something.
  Result<std::string> Ask(const std::string& method, const std::string& json = "",
                          bool changes = false) {
    v1::CallDriverRequest request;
    request.set_driver(kName);
    request.set_method(method);
    request.set_request_json(json);
    std::optional<Result<std::string>> answer;
    const DriverCommands commands{
        .scheduler = scheduler_.scheduler(),
        .csi = *client_,
        .operations = operations_,
        .who_needs = [this](const CsiMethod&, const CsiVolumeId&) { return needed_by_; },
        .why_unseen = [this] { return unseen_; }};
    scheduler_.OnControl([&] {
      AskDriver({scheduler_.scheduler(), *client_, std::chrono::seconds(20), open_,
                 changes ? &commands : nullptr, may_look_},
                request, [&](const Result<std::string>& told) {
                  happening_.Happened([&] { answer = told; });
                });
    });
    happening_.WaitFor([&] { return answer.has_value(); });
    return *answer;
  }

  const RealClock clock_{};
  SocketDirectory directory_;
  const std::filesystem::path root_ = std::filesystem::path(directory_.Socket("k"));
  const std::filesystem::path registry_ = root_ / "plugins_registry";
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  MemoryRecordStore store_;
  ExportedFamilies families_;
  Happening happening_;
  bool looked_ = false;
  int open_ = 0;
  DoneByHand operations_;
  std::map<std::string, SafePath> controllers_;  // of agents that start from now on
  std::string needed_by_;
  std::string unseen_;
  std::function<bool(const CsiVolumeId& volume, const std::string& path)> may_look_;
  Status asked_ = OkStatus();
  v1::GetDriversResponse restored_;
  std::unique_ptr<CsiConnectionParts> connections_ =
      std::make_unique<CsiConnectionParts>(clock_, families_);
  SchedulerThread scheduler_;
  std::unique_ptr<CsiClient> client_;
};

}  // namespace volumed
