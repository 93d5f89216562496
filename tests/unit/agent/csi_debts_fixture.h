// CsiDebtsTest: a driver that is absent for too long, with the operations and all parts that know
// what it is owed, in simulated time.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/debt_collector.h"
#include "agent/driver_lanes.h"
#include "csi/csi_debts.h"
#include "operation/attach_operations.h"
#include "operation/device_operations.h"
#include "operation/mount_operations.h"
#include "operation/node_volume_operations.h"
#include "operation/recorded_volume.h"
#include "unit/csi/plugin_fixture.h"

namespace volumed {

// A filesystem of its own for each domain.
class OwnLanes final : public FaultDomains {
 public:
  FaultDomain Locate(const std::string& domain) override { return {"of " + domain, "kernel"}; }
  LaneHealth HealthOf(const std::string&) const override { return {}; }
};

class CsiDebtsTest : public CsiPluginFixture {
 protected:
  CsiDebtsTest() {
    plugin_settings_.Set({.absent_limit = minutes(10)});
    drivers_->AddListener([this](const std::string& driver, DriverEvent) {
      if (collector_ == nullptr) return;
      collector_->Happened(driver);
      operations_->LanesChanged();
    });
    ServeNode();
    Start();
  }
  ~CsiDebtsTest() override { End(); }

  void End() {
    collector_.reset();
    operations_.reset();
    scheduler_.RunFor(milliseconds(1));
    plugin_.reset();
    plugins_.reset();
  }
  // The agent's own parts; the records stay.
  void Start() {
    debts_ = std::make_unique<CsiDebts>(
        CsiDebts::Parts{store_, *drivers_, plugin_settings_, clock_, log_});
    debts_->Restore(*store_.Load(kCsiDebtRecordKind));
    CsiPluginParts parts = context_->parts;
    parts.debts = debts_.get();
    with_debts_.reset(new CsiContext{parts, host_});
    plugin_ = std::make_unique<CsiPlugin>(parts);
    EXPECT_TRUE(plugin_->Init({host_, wrappers_}).ok());
    plugins_ = std::make_unique<VolumePluginMgr>();
    std::vector<std::unique_ptr<VolumePlugin>> plugins;
    plugins.push_back(std::make_unique<CsiPlugin>(parts));
    EXPECT_TRUE(plugins_->InitPlugins(std::move(plugins), host_).ok());
    storage_ = std::make_unique<StorageGuard>(kernel_, store_, clock_, log_, kBoot);
    lanes_ = std::make_unique<DriverLanes>(own_lanes_, *drivers_, debts_.get());
    operations_ = std::make_unique<NodeVolumeOperations>(scheduler_,
                                                         OperationParts{.plugins = *plugins_,
                                                                        .host = host_,
                                                                        .logger = log_,
                                                                        .store = store_,
                                                                        .devices = *devices_,
                                                                        .storage = *storage_},
                                                         observer_, kBoot, lanes_.get());
    std::vector<PodVolumeRecord> volumes;
    const Result<LoadedRecords> rows = store_.Load(kPodVolumeRecordKind);
    for (const Record& row : rows->records) {
      volumes.push_back(AfterRestart(*DecodePodVolumeRecord(row), kBoot));
    }
    operations_->Restore(volumes, {});
    StartCollector();
  }
  void StartCollector() {
    collector_.reset(new DebtCollector(
        {scheduler_, *with_debts_, *operations_, [this] { operations_->LanesChanged(); }}));
    collector_->Start();
  }
  void RestartAll() {
    End();
    RestartAgent();
    Start();
  }

  // A pod has the volume, as the operations put it on record.
  void PutPod(bool attachable = false) {
    ASSERT_TRUE(Stage(CsiSpec()).ok());
    ASSERT_TRUE(Publish(CsiSpec()).ok());
    DeviceRecord device = *devices_->Find(Device());
    device.volume_json = EncodeRecordedVolume(CsiSpec());
    device.fault_domain = std::string("csi:") + kName;
    device.attachable = attachable;
    device.attach_way = attachable ? AttachWay::kByController : AttachWay::kNotKnown;
    device.node_id = attachable ? "node-a" : "";
    devices_->Restore(device);
    ASSERT_TRUE(store_.Put(EncodeRecord(device), kDeviceRecordDurability).ok());
    PodVolumeRecord pod;
    pod.key = {PodUid(kPodUid), SpecName("pv-1")};
    pod.pod_namespace = "shop";
    pod.pod_name = "web";
    pod.plugin_name = kCsiPluginName;
    pod.fault_domain = device.fault_domain;
    pod.state = VolumeState::kSetUp;
    pod.boot_id = kBoot;
    pod.volume_json = device.volume_json;
    pod.unique_name = Device();
    pod.has_device = true;
    ASSERT_TRUE(store_.Put(EncodeRecord(pod), kPodVolumeRecordDurability).ok());
    operations_->Restore({pod}, {});
    calls_.clear();
  }
  void DriverDies() {
    dialer_.Kill(process_);
    dialer_.Remove(kEndpoint);
    scheduler_.RunFor(milliseconds(1));
  }
  void DriverReturns() { ServeNode(); }

  static UniqueVolumeName Device() { return CsiUniqueName(kName, kHandle); }
  std::string PodMount() { return Target(CsiSpec()); }
  std::vector<Record> Rows() { return store_.Load(kCsiDebtRecordKind)->records; }

  // "" on success, "waits", or the error's text.
  template <typename Op>
  std::string Run(Op operation, Duration wait = seconds(1)) {
    const auto outcome = std::make_shared<std::optional<OperationOutcome<Unit>>>();
    operations_->ResetBackoff(operation.key());
    const StartResult started = operations_->Start(
        operation, [outcome](const OperationOutcome<Unit>& ended) { *outcome = ended; });
    if (started != StartResult::kStarted) return "not started";
    scheduler_.RunFor(wait);
    if (!*outcome) return "waits";
    if (!(*outcome)->failure) return "";
    const Error& error = (*outcome)->failure->error;
    return (error.maybe_applied() ? "maybe: " : "") + error.message();
  }
  std::string PodLeaves(Duration wait = seconds(1)) {
    return Run(UnmountVolume({.pod = PodUid(kPodUid),
                              .spec = SpecName("pv-1"),
                              .plugin_name = kCsiPluginName,
                              .pod_display_name = "shop/web",
                              .device = Device()}),
               wait);
  }
  std::string DeviceGoes(Duration wait = seconds(1)) {
    return Run(::volumed::UnmountDevice({.device = Device(),
                                         .plugin_name = kCsiPluginName,
                                         .spec = SpecName("pv-1"),
                                         .device_mount_path = Staging()}),
               wait);
  }
  // The driver is gone for longer than the limit, and pod and device have left without it.
  void LeaveWithout() {
    PutPod();
    DriverDies();
    scheduler_.RunFor(minutes(11));
    ASSERT_EQ(PodLeaves(), "");
    ASSERT_EQ(DeviceGoes(), "");
    ASSERT_EQ(Rows().size(), 2u);
    ASSERT_TRUE(calls_.empty());
  }

  OwnLanes own_lanes_;
  std::unique_ptr<CsiDebts> debts_;
  std::unique_ptr<CsiContext> with_debts_;
  std::unique_ptr<VolumePluginMgr> plugins_;
  std::unique_ptr<StorageGuard> storage_;
  std::unique_ptr<DriverLanes> lanes_;
  std::unique_ptr<NodeVolumeOperations> operations_;
  std::unique_ptr<DebtCollector> collector_;
};

}  // namespace volumed
