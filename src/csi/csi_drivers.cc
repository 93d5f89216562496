#include "csi/csi_drivers.h"

#include <chrono>
#include <utility>

#include "csi/plugin_info.h"

namespace volumed {
namespace {

// Only people look at when a driver was used last, so that alone is not worth a synced write.
constexpr int64_t kNoticeableMillis = 3'600'000;

std::string NeverSeen(const std::string& name) {
  return "driver name " + name + " not found in the list of registered CSI drivers";
}

}  // namespace

CsiDrivers::CsiDrivers(Parts parts, CsiDriversSettings settings, CsiDriversHooks hooks)
    : parts_(parts), settings_(std::move(settings)), hooks_(std::move(hooks)) {
  MutexLock lock(mu_);
  driver_settings_ = settings_.driver;
}

CsiDrivers::~CsiDrivers() {
  alive_.Renew();
  std::map<std::string, std::shared_ptr<CsiDriver>> drivers;
  MutexLock lock(mu_);
  drivers.swap(drivers_);
}

std::shared_ptr<CsiDriver> CsiDrivers::Make(const CsiDriverRecord& record) {
  const std::string name = record.facts.name;
  CsiDriver::Hooks hooks;
  hooks.accept = [this, watch = alive_.watch()](const CsiDriverRecord& fresh,
                                                std::function<void(Status)> done) {
    if (watch.alive()) Accept(fresh, std::move(done));
  };
  hooks.event = [this, watch = alive_.watch(), name](DriverEvent event) {
    if (watch.alive()) Happened(name, event);
  };
  hooks.has_attached = [this, watch = alive_.watch(), name] {
    return watch.alive() && hooks_.has_attached && hooks_.has_attached(name);
  };
  const auto controller = settings_.controllers.find(name);
  MutexLock lock(mu_);
  const auto driver = CsiDriver::Make(
      {parts_.scheduler, parts_.dialer}, driver_settings_, std::move(hooks), record,
      controller == settings_.controllers.end() ? std::nullopt : std::optional(controller->second));
  drivers_[name] = driver;
  return driver;
}

void CsiDrivers::Restore(const std::vector<CsiDriverRecord>& records) {
  for (const CsiDriverRecord& record : records) {
    const std::string& name = record.facts.name;
    written_[name] = record;
    if (hooks_.merge_topology) {
      const Status merged = hooks_.merge_topology(name, record.facts.topology);
      if (!merged.ok()) {
        parts_.log.Error("the topology of a CSI driver is not used",
                         {{"driver", name}, {"error", merged.error()}});
      }
    }
    const std::shared_ptr<CsiDriver> driver = Make(record);
    // A row of other settings names a place that nobody may look at now.
    if (const Result<SafePath> place = PlaceOf(record.facts.endpoint); place.ok()) {
      driver->DialWithoutRegistration(*place);
    }
  }
}

std::shared_ptr<CsiDriver> CsiDrivers::FindAny(const std::string& name) const {
  MutexLock lock(mu_);
  const auto found = drivers_.find(name);
  return found == drivers_.end() ? nullptr : found->second;
}

std::shared_ptr<CsiDriver> CsiDrivers::Find(const std::string& name) const {
  std::shared_ptr<CsiDriver> driver = FindAny(name);
  return driver != nullptr && driver->known() ? driver : nullptr;
}

std::vector<std::shared_ptr<CsiDriver>> CsiDrivers::All() const {
  std::vector<std::shared_ptr<CsiDriver>> all;
  MutexLock lock(mu_);
  for (const auto& [name, driver] : drivers_) all.push_back(driver);
  return all;
}

Result<CsiDriverFacts> CsiDrivers::FactsOf(const std::string& name) const {
  if (const std::shared_ptr<CsiDriver> driver = Find(name)) return driver->facts();
  return Error::NotApplied(Code::kUnavailable, NeverSeen(name));
}

CsiLane CsiDrivers::LaneOf(const std::string& name) const {
  if (const std::shared_ptr<CsiDriver> driver = Find(name)) return driver->lane();
  CsiLane lane;
  lane.closed = lane.closed_to_teardown = true;
  return lane;
}

std::string CsiDrivers::WhyAway(const std::string& name) const {
  const std::shared_ptr<CsiDriver> driver = Find(name);
  return driver == nullptr ? NeverSeen(name) : driver->WhyAway();
}

std::vector<DriverView> CsiDrivers::List() const {
  std::vector<DriverView> views;
  for (const std::shared_ptr<CsiDriver>& driver : All()) {
    if (!driver->known()) continue;
    const CsiDriverRecord record = driver->record();
    views.push_back({.facts = record.facts,
                     .socket = record.socket,
                     .last_ready_unix_ms = record.last_ready_unix_ms,
                     .was_unregistered = driver->was_unregistered(),
                     .health = driver->health(),
                     .lane = driver->lane(),
                     .why_away = driver->WhyAway()});
  }
  return views;
}

void CsiDrivers::Register(const CsiRegister& registration, std::function<void(Status)> done) {
  const std::string& name = registration.driver;
  std::shared_ptr<CsiDriver> driver = FindAny(name);
  if (driver == nullptr) {
    MakeRoom();
    CsiDriverRecord record;
    record.facts.name = name;
    driver = Make(record);
  }
  driver->Register(registration, [this, watch = alive_.watch(), name,
                                  done = std::move(done)](const Status& registered) {
    if (!watch.alive()) return;
    if (!registered.ok()) ForgetUnknown(name);
    done(registered);
  });
}

void CsiDrivers::Unregister(const std::string& name) {
  const std::shared_ptr<CsiDriver> driver = FindAny(name);
  if (driver == nullptr) return;
  driver->Unregister();
  ForgetUnknown(name);
}

void CsiDrivers::ForgetUnknown(const std::string& name) {
  // It is destroyed in a task of its own: this may be called by it.
  std::shared_ptr<CsiDriver> gone;
  {
    MutexLock lock(mu_);
    const auto found = drivers_.find(name);
    if (found == drivers_.end() || found->second->known()) return;
    gone = std::move(found->second);
    drivers_.erase(found);
  }
  parts_.scheduler.Post([gone] {});
}

void CsiDrivers::EndpointChanged(const std::string& display) {
  for (const std::shared_ptr<CsiDriver>& driver : All()) driver->EndpointChanged(display);
}

std::vector<SafePath> CsiDrivers::Endpoints() const {
  std::vector<SafePath> places;
  for (const std::shared_ptr<CsiDriver>& driver : All()) {
    for (SafePath& place : driver->Endpoints()) places.push_back(std::move(place));
  }
  return places;
}

std::string CsiDrivers::LastError(const std::string& name) const {
  const std::shared_ptr<CsiDriver> driver = FindAny(name);
  return driver == nullptr ? "" : driver->health().last_error;
}

bool CsiDrivers::IsConnected(const std::string& name) const {
  const std::shared_ptr<CsiDriver> driver = FindAny(name);
  return driver != nullptr && driver->connected();
}

Result<SafePath> CsiDrivers::PlaceOf(const std::string& endpoint) const {
  return PlaceInOneOf(settings_.endpoint_directories, endpoint);
}

void CsiDrivers::VolumesDetached(const std::string& name) {
  if (const std::shared_ptr<CsiDriver> driver = FindAny(name)) driver->RecheckNode();
}

void CsiDrivers::Refresh(const std::string& name) {
  if (const std::shared_ptr<CsiDriver> driver = FindAny(name)) driver->Refresh();
}

void CsiDrivers::SetSettings(const CsiDriverSettings& settings) {
  {
    MutexLock lock(mu_);
    driver_settings_ = settings;
  }
  for (const std::shared_ptr<CsiDriver>& driver : All()) driver->SetSettings(settings);
}

// ---- Records ----

void CsiDrivers::Accept(const CsiDriverRecord& record, std::function<void(Status)> done) {
  if (hooks_.merge_topology) {
    const Status merged = hooks_.merge_topology(record.facts.name, record.facts.topology);
    if (!merged.ok()) return done(merged);
  }
  if (IsWritten(record)) return done(OkStatus());
  Write(record, std::move(done));
}

bool CsiDrivers::IsWritten(const CsiDriverRecord& record) const {
  const auto found = written_.find(record.facts.name);
  if (found == written_.end()) return false;
  const CsiDriverRecord& written = found->second;
  return written.facts == record.facts && written.socket == record.socket &&
         record.last_ready_unix_ms - written.last_ready_unix_ms < kNoticeableMillis;
}

void CsiDrivers::Write(const CsiDriverRecord& record, std::function<void(Status)> done) {
  parts_.scheduler.RunBlocking(
      [this, watch = alive_.watch(), parts = parts_, record, done = std::move(done)] {
        const Status put = parts.records.Put(EncodeRecord(record), kCsiDriverRecordDurability);
        parts.scheduler.Post([this, watch, record, put, done] {
          if (!watch.alive()) return;
          if (put.ok()) written_[record.facts.name] = record;
          done(put.ok() ? put : Status(put.error().With("what the driver is cannot be recorded")));
        });
      });
}

void CsiDrivers::MakeRoom() {
  const std::vector<std::shared_ptr<CsiDriver>> all = All();
  if (all.size() < settings_.most_drivers) return;
  std::string oldest;
  int64_t since = 0;
  for (const std::shared_ptr<CsiDriver>& driver : all) {
    const bool may_go = driver->known() && !driver->registered() && !driver->connected() &&
                        !(hooks_.has_volumes && hooks_.has_volumes(driver->name()));
    const int64_t used = driver->record().last_ready_unix_ms;
    if (may_go && (oldest.empty() || used < since)) {
      oldest = driver->name();
      since = used;
    }
  }
  if (oldest.empty()) return;
  {
    MutexLock lock(mu_);
    drivers_.erase(oldest);  // `all` has it
  }
  written_.erase(oldest);
  if (hooks_.release_topology) hooks_.release_topology(oldest);
  parts_.log.Info("a CSI driver is forgotten: there are too many", {{"driver", oldest}});
  parts_.scheduler.RunBlocking([parts = parts_, oldest] {
    const Status removed =
        parts.records.Remove(kCsiDriverRecordKind, oldest, kCsiDriverRecordDurability);
    if (!removed.ok()) {
      parts.log.Error("the record of a CSI driver stays",
                      {{"driver", oldest}, {"error", removed.error()}});
    }
  });
}

void CsiDrivers::Happened(const std::string& name, DriverEvent event) {
  const std::shared_ptr<CsiDriver> driver = FindAny(name);
  if (driver == nullptr || !driver->known()) return;
  switch (event) {
    case DriverEvent::kReady:
      parts_.log.LogLimited(
          "csi ready " + name, LogLevel::kInfo, "CSI driver is used",
          {{"driver", name}, {"state", CsiDriverStateName(driver->health().state)}});
      break;
    case DriverEvent::kSilent:
    case DriverEvent::kAway:
      parts_.log.LogLimited("csi away " + name, LogLevel::kWarning, "volumes wait for a CSI driver",
                            {{"driver", name}, {"reason", driver->WhyAway()}});
      break;
    case DriverEvent::kRegistered:
    case DriverEvent::kFactsChanged:
      break;
  }
  for (const Listener& listener : listeners_) listener(name, event);
}

}  // namespace volumed
