#include "agent/csi_client.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/printable_text.h"
#include "csi/csi_driver_record.h"

namespace volumed {

CsiClient::CsiClient(Parts parts, CsiClientSettings settings, CsiClientHooks hooks)
    : parts_(parts),
      registry_(std::move(settings.registry)),
      looked_(std::move(hooks.looked)),
      dialer_({.scheduler = parts.scheduler,
               .clock = parts.connections.clock,
               .watch = parts.connections.watch,
               .observers = {&parts.connections.trace, &parts.connections.figures},
               .roots = std::move(settings.roots)},
              std::move(settings.owners), std::move(settings.channel)),
      commands_(parts.records, parts.log),
      drivers_({parts.scheduler, dialer_, parts.records, parts.log}, std::move(settings.drivers),
               std::move(hooks.drivers)) {
  if (hooks.happened) drivers_.AddListener(std::move(hooks.happened));
}

CsiClient::~CsiClient() = default;

std::vector<OtherRecordKind> CsiClient::RecordKinds() {
  return {{kCsiDriverRecordKind,
           [](const Record& row) -> Status {
             RETURN_IF_ERROR(DecodeCsiDriverRecord(row));
             return OkStatus();
           }},
          {kCsiCommandRecordKind, [](const Record& row) -> Status {
             RETURN_IF_ERROR(DecodeCsiCommandRecord(row));
             return OkStatus();
           }}};
}

void CsiClient::Restore(const std::string& kind, const LoadedRecords& rows) {
  if (kind == kCsiDriverRecordKind) return RestoreDrivers(rows);
  if (kind == kCsiCommandRecordKind) commands_.Restore(rows);
}

// A row that cannot be read is that of a driver which was never seen, and says nothing that the
// driver does not say anew when it registers: it is written over then.
void CsiClient::RestoreDrivers(const LoadedRecords& rows) {
  std::vector<CsiDriverRecord> records;
  std::map<std::string, std::string> unreadable;
  for (const Record& row : rows.records) {
    Result<CsiDriverRecord> record = DecodeCsiDriverRecord(row);
    if (record.ok()) {
      records.push_back(*std::move(record));
    } else {
      unreadable[PrintableText(row.key)] = record.error().message();
    }
  }
  for (const QuarantinedRecord& row : rows.quarantined) {
    unreadable[PrintableText(row.key)] = row.reason;
  }
  drivers_.Restore(records, std::move(unreadable));
}

void CsiClient::Start(std::shared_ptr<RegistryWatch> watch) {
  for (const UnusedController& unused : drivers_.UnusedControllers()) {
    parts_.log.Info("csi-controller-endpoints names a CSI driver that has never registered here",
                    {{"driver", unused.driver}, {"endpoint", unused.place}});
  }
  CsiRegistration::Hooks hooks;
  hooks.directory_changed = looked_;
  hooks.ended = [this](const std::string& driver, bool registered) {
    figures().RegistrationEnded(driver, registered);
  };
  registration_ = std::make_unique<CsiRegistration>(
      CsiRegistration::Parts{parts_.scheduler, parts_.loop, dialer_, drivers_, parts_.log},
      std::move(watch), CsiRegistrationSettings{.directory = registry_}, std::move(hooks));
  registration_->Start();
}

std::vector<RegisteredSocket> CsiClient::Sockets() const {
  return registration_ ? registration_->Sockets() : std::vector<RegisteredSocket>();
}

void CsiClient::DriverLied(const CsiAnswered& call, const std::string& found) {
  figures().Lied(call.driver, call.method);
  parts_.connections.trace.Lied(call.driver, call.method, call.key, found);
}

void CsiClient::SetSettings(SocketOwners owners, const CsiDriverSettings& drivers) {
  dialer_.SetOwners(std::move(owners));
  drivers_.SetSettings(drivers);
  if (registration_) registration_->OwnersChanged();
}

void CsiClient::VolumeDetached() {
  for (const DriverView& driver : drivers_.List()) {
    if (driver.health.state == CsiDriverState::kOtherNode) {
      drivers_.VolumesDetached(driver.facts.name);
    }
  }
}

}  // namespace volumed
