// A table of drivers in simulated time, and drivers that answer as they are told.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/simulated_scheduler.h"
#include "csi/csi_drivers.h"
#include "fakes/memory_record_store.h"
#include "unit/csi/fake_csi_dialer.h"

namespace volumed {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class CsiDriversFixture : public testing::Test {
 protected:
  static constexpr const char* kName = "disk.example.com";
  static constexpr const char* kEndpoint = "/kubelet/plugins/disk/csi.sock";

  CsiDriversFixture() {
    settings_.endpoint_directories = {"/kubelet"};
    Restart();
  }

  // The agent starts anew; the records stay.
  void Restart() {
    drivers_.reset();
    const auto rows = store_.Load(kCsiDriverRecordKind);
    drivers_ = std::make_unique<CsiDrivers>(
        CsiDrivers::Parts{scheduler_, dialer_, store_, log_}, settings_,
        CsiDriversHooks{
            .has_attached = [this](const std::string&) { return has_attached_; },
            .what_is_here =
                [this](const std::string&) {
                  return std::string(has_volumes_ ? "volumes of it are here: volume pvc-1" : "");
                },
            .merge_topology = [this](const std::string&,
                                     const std::map<std::string, std::string>&) { return merged_; },
            .made = made_,
            .release_topology =
                [this](const std::string& driver) { released_.push_back(driver); }});
    drivers_->AddListener([this](const std::string& driver, DriverEvent event) {
      events_.emplace_back(driver, event);
    });
    std::vector<CsiDriverRecord> records;
    for (const Record& row : rows->records) records.push_back(*DecodeCsiDriverRecord(row));
    std::map<std::string, std::string> unreadable;
    for (const QuarantinedRecord& row : rows->quarantined) unreadable[row.key] = row.reason;
    drivers_->Restore(records, unreadable);
  }

  // A driver that says all that it has to.
  std::shared_ptr<FakeCsiProcess> Serve(const std::string& path = kEndpoint,
                                        const std::string& name = kName,
                                        const std::string& node_id = "node-a") {
    auto process = std::make_shared<FakeCsiProcess>();
    ::csi::v1::GetPluginInfoResponse info;
    info.set_name(name);
    info.set_vendor_version("2.1");
    process->Answer("GetPluginInfo", info);
    ::csi::v1::NodeGetCapabilitiesResponse node;
    node.add_capabilities()->mutable_rpc()->set_type(
        ::csi::v1::NodeServiceCapability::RPC::STAGE_UNSTAGE_VOLUME);
    process->Answer("NodeGetCapabilities", node);
    process->Fail("ControllerGetCapabilities", Code::kUnimplemented, "no controller");
    NodeInfo(*process, node_id);
    dialer_.Listen(path, process);
    return process;
  }
  static void NodeInfo(FakeCsiProcess& process, const std::string& node_id) {
    ::csi::v1::NodeGetInfoResponse info;
    info.set_node_id(node_id);
    info.set_max_volumes_per_node(16);
    (*info.mutable_accessible_topology()->mutable_segments())["example.com/zone"] = "z1";
    process.Answer("NodeGetInfo", info);
  }

  std::optional<Status> Register(const std::string& name = kName,
                                 const std::string& path = kEndpoint, Duration wait = seconds(1)) {
    auto told = std::make_shared<std::optional<Status>>();
    drivers_->Register({name, "/kubelet/plugins_registry/" + name + "-reg.sock", path,
                        *drivers_->PlaceOf(path), "1.0.0"},
                       [told](const Status& status) { *told = status; });
    scheduler_.RunFor(wait);
    return *told;
  }
  CsiDriverState State(const std::string& name = kName) const {
    return drivers_->Find(name)->health().state;
  }
  // How long it takes until the lane is open.
  std::optional<Duration> TimeUntilOpen(Duration most = minutes(1)) {
    const TimePoint begun = scheduler_.clock().Now();
    const bool opens =
        scheduler_.RunUntil([this] { return !drivers_->LaneOf(kName).closed; }, most);
    if (!opens) return std::nullopt;
    return scheduler_.clock().Now() - begun;
  }
  Result<::csi::v1::NodeStageVolumeResponse> CallStage(Duration timeout = minutes(2)) {
    std::optional<Result<::csi::v1::NodeStageVolumeResponse>> answer;
    scheduler_.RunBlocking([&] {
      ::csi::v1::NodeStageVolumeRequest request;
      request.set_volume_id("vol-1");
      answer = drivers_->Find(kName)->Call<::csi::v1::NodeStageVolumeResponse>(
          request, {Deadline::After(scheduler_.clock(), timeout)});
    });
    scheduler_.RunUntil([&] { return answer.has_value(); }, minutes(10));
    scheduler_.RunFor(milliseconds(1));
    return *answer;
  }
  int Count(DriverEvent event) const {
    int count = 0;
    for (const auto& [driver, happened] : events_) count += happened == event ? 1 : 0;
    return count;
  }

  ManualClock clock_;
  SimulatedScheduler scheduler_{7, clock_};
  FakeCsiDialer dialer_{scheduler_};
  MemoryRecordStore store_;
  Logger log_{LogOptions{.target = LogOptions::Target::kCallback, .callback = {}}, clock_};
  CsiDriversSettings settings_;
  bool has_attached_ = false;
  bool has_volumes_ = false;
  Status merged_ = OkStatus();
  // CsiDriversHooks::made, from the next Restart() on.
  std::function<void(const std::string&, const std::shared_ptr<CsiSecretMemory>&)> made_;
  std::vector<std::string> released_;
  std::vector<std::pair<std::string, DriverEvent>> events_;
  std::unique_ptr<CsiDrivers> drivers_;
};

}  // namespace volumed
