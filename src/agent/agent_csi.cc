// Agent: its CSI drivers, and who hears what happens to them.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/csi_settings_of_config.h"
#include "agent/forget_driver.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

constexpr char kRegistryPart[] = "plugins-registry";
// Of kubernetes pkg/volume/csi/csi_plugin.go@v1.36.2 (CSIPluginName).
constexpr char kCsiPlugin[] = "kubernetes.io/csi";

}  // namespace

Status Agent::MakeCsi() {
  csi_connections_ = std::make_unique<CsiConnectionParts>(wall_clock_, families_);
  csi_plugin_settings_.Set(CsiPluginSettingsOf(config_));
  CsiClientSettings settings = CsiClientSettingsOf(config_, named_root_);
  csi_roots_ = settings.roots;
  csi_ = std::make_unique<CsiClient>(
      CsiClient::Parts{*scheduler_, &scheduler_->loop(), *csi_connections_, *records_, *log_},
      std::move(settings), MakeCsiHooks());
  csi_debts_ = std::make_unique<CsiDebts>(CsiDebts::Parts{
      *records_, csi_->drivers(), csi_plugin_settings_, scheduler_->clock(), *log_});
  csi_node_ = std::make_unique<CsiNodeSource>(
      CsiNodeSource::Parts{csi_->drivers(), *kubelet_host_, NodeName(config_.node_name)},
      [this](ObjectList list) { updates_->Add(std::move(list)); });
  csi_storage_health_ = std::make_unique<CsiStorageHealth>(
      CsiStorageHealth::Parts{*scheduler_, csi_->drivers(), csi_plugin_settings_, families_, *log_},
      config_.volume_stats_period);
  lanes_ = std::make_unique<DriverLanes>(*kernel_, csi_->drivers(), csi_debts_.get());
  return OkStatus();
}

CsiClientHooks Agent::MakeCsiHooks() {
  CsiClientHooks hooks;
  hooks.drivers.has_attached = [this](const std::string& driver) {
    return operations_->HasAnyOf(DriverDomain(driver), /*attached=*/true);
  };
  hooks.drivers.what_is_here = [this](const std::string& driver) {
    return TextOf(TracesOf(driver));
  };
  hooks.drivers.merge_topology = [this](const std::string& driver, const StringMap& topology) {
    return node_->MergeTopology(driver, topology);
  };
  hooks.drivers.made = [this](const std::string& driver,
                              const std::shared_ptr<CsiSecretMemory>& memory) {
    csi_earlier_secrets_->DriverMade(driver, memory);
  };
  hooks.drivers.release_topology = [this](const std::string& driver) {
    csi_earlier_secrets_->DriverForgotten(driver);
    node_->ReleaseTopology(driver);
  };
  hooks.happened = [this](const std::string& driver, DriverEvent event) {
    DriverHappened(driver, event);
  };
  hooks.looked = [this](const std::optional<Error>& error) {
    // Drivers that are registered go on being used.
    parts_->Set(kRegistryPart, error ? Status(*error) : OkStatus(), PartNeed::kOptional);
    csi_node_->Looked(error);
    watchdog_->Status(NotReadyReason().value_or("ready"));
  };
  return hooks;
}

std::map<std::string, std::string> Agent::LabelGivers() const {
  std::map<std::string, std::string> givers;
  for (const auto& [label, value] : config_.node_labels) givers[label] = "node-labels";
  for (const auto& [label, drivers] : node_->LabelsOfDrivers()) {
    for (const std::string& driver : drivers) {
      std::string& giver = givers[label];
      giver += (giver.empty() ? "" : ", ") + ("CSI driver " + driver);
    }
  }
  return givers;
}

DriverTraces Agent::TracesOf(const std::string& driver) const {
  std::vector<VolumeOnRecord> volumes = operations_->VolumesOf(DriverDomain(driver));
  std::set<PodUid> leaving;
  for (const VolumeOnRecord& volume : volumes) {
    if (manager_ == nullptr || volume.pod.empty()) continue;
    if (manager_->pods().IsLeaving(volume.pod)) leaving.insert(volume.pod);
  }
  return {.driver = driver,
          .volumes = std::move(volumes),
          .open_calls = csi_->commands().OpenOf(driver),
          .owed_calls = csi_debts_->TextsOf(driver),
          .begun = manager_ == nullptr ? std::vector<std::string>()
                                       : manager_->storage().BegunBy(driver),
          .leaving = std::move(leaving)};
}

void Agent::StartCsi() {
  debt_collector_->Start();
  // Nobody registers, which is all that there is to see.
  if (config_.csi_only) return csi_node_->Looked(std::nullopt);
  const auto made = std::make_shared<std::shared_ptr<RegistryWatch>>();
  const auto make = [made, directory = RegistryOf(config_), roots = csi_roots_]() -> Status {
    ASSIGN_OR_RETURN(std::unique_ptr<RegistryWatch> watch,
                     InotifyRegistryWatch::Create(directory, {}, roots));
    *made = std::move(watch);
    return OkStatus();
  };
  const auto use = [this, made]() -> Status {
    csi_->Start(std::move(*made));
    return OkStatus();
  };
  if (const Status watched = make(); !watched.ok()) {
    return parts_->Retry(kRegistryPart, watched.error(), make, use, PartNeed::kOptional);
  }
  (void)use().ok();
}

void Agent::DebtPaid(const std::string& driver) {
  if (manager_ != nullptr) manager_->events().DriverIsBack(kCsiPlugin, DriverDomain(driver));
}

// Lanes and pods hear of it in a task of their own: whoever told of it is not done yet.
void Agent::DriverHappened(const std::string& driver, DriverEvent event) {
  scheduler_->Post([this, driver, event] {
    csi_node_->DriversChanged();
    debt_collector_->Happened(driver);
    LanesChanged();
    NodeEvents& events = manager_->events();
    switch (event) {
      case DriverEvent::kRegistered:
      case DriverEvent::kFactsChanged:
        return events.DriverChanged(kCsiPlugin, DriverDomain(driver));
      case DriverEvent::kReady:
      case DriverEvent::kControllerReady:
        return events.DriverIsBack(kCsiPlugin, DriverDomain(driver));
      case DriverEvent::kSilent:
      case DriverEvent::kAway:
        // What fails now waits in its back-off, and then for the driver.
        return;
      case DriverEvent::kControllerAway:
        return events.MakersChanged();
    }
  });
}

}  // namespace volumed
