#include "csi/csi_drivers.h"

#include <chrono>
#include <utility>

#include "csi.pb.h"
#include "csi/plugin_info.h"
#include "csi/rpc/csi_redact.h"
#include "kube/unknown_fields.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

// Only people look at when a driver was used last, so that alone is not worth a synced write.
constexpr int64_t kNoticeableMillis = 3'600'000;
// Of what is shown of a topology: a segment has 128 bytes, what is said in its place may have more.
constexpr size_t kMostSegment = 1024;

std::map<std::string, std::string> ShownTopology(const CsiDriverFacts& facts,
                                                 const std::shared_ptr<CsiSecretMemory>& memory) {
  const CsiSecrets secrets(memory);
  std::map<std::string, std::string> shown;
  for (const auto& [key, value] : facts.topology) {
    shown[secrets.RemovedFrom(key, kMostSegment)] = secrets.RemovedFrom(value, kMostSegment);
  }
  return shown;
}

// "; did you mean x?"; empty if none of them is near.
std::string DidYouMean(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = Nearest(name, {known.begin(), known.end()});
  return near.empty() || near == name ? "" : "; did you mean " + near + "?";
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
  std::shared_ptr<CsiDriver> driver;
  {
    MutexLock lock(mu_);
    driver = CsiDriver::Make(
        {parts_.scheduler, parts_.dialer}, driver_settings_, std::move(hooks), record,
        controller == settings_.controllers.end() ? std::nullopt
                                                  : std::optional(controller->second));
    drivers_[name] = driver;
  }
  if (hooks_.made) hooks_.made(name, driver->secrets());
  return driver;
}

void CsiDrivers::Restore(const std::vector<CsiDriverRecord>& records,
                         std::map<std::string, std::string> unreadable) {
  {
    MutexLock lock(mu_);
    unreadable_ = std::move(unreadable);
  }
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
  return Error::NotApplied(Code::kUnavailable, NeverSeen(name)).About(kDriverAway);
}

std::string CsiDrivers::NeverSeen(const std::string& name) const {
  const std::string unseen =
      "driver name " + name + " not found in the list of registered CSI drivers";
  {
    MutexLock lock(mu_);
    const auto row = unreadable_.find(name);
    if (row != unreadable_.end()) {
      return unseen + ": its record csi-driver/" + name + " cannot be read (" + row->second +
             "), and is written anew when the driver registers (see `volumectl records`)";
    }
  }
  return unseen + DidYouMean(name, KnownNames());
}

std::vector<std::string> CsiDrivers::KnownNames() const {
  std::vector<std::string> names;
  for (const std::shared_ptr<CsiDriver>& driver : All()) {
    if (driver->known()) names.push_back(driver->name());
  }
  return names;
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

std::string CsiDrivers::WhyNoProvisioner(const std::string& name) const {
  const std::shared_ptr<CsiDriver> driver = Find(name);
  if (driver == nullptr) {
    return "no CSI driver " + name + " has registered (see `volumectl get drivers`)" +
           DidYouMean(name, KnownNames());
  }
  const CsiDriverFacts facts = driver->facts();
  if (facts.HasController(::csi::v1::ControllerServiceCapability::RPC::CREATE_DELETE_VOLUME)) {
    return "";
  }
  if (const std::string why = driver->WhyNoController(); !why.empty()) return why;
  if (facts.controller_capabilities.empty() && !driver->controller_link()) {
    return "CSI driver " + name +
           " has registered, but serves no controller here: its own socket has none, and "
           "csi-controller-endpoints names none for it" +
           NearController(name);
  }
  return "the controller of CSI driver " + name +
         " makes and deletes no volumes: it has no CREATE_DELETE_VOLUME";
}

// A key of csi-controller-endpoints that is no driver's may be this one's, misspelled.
std::string CsiDrivers::NearController(const std::string& name) const {
  std::vector<std::string> unused;
  for (const UnusedController& one : UnusedControllers()) unused.push_back(one.driver);
  const std::string near = Nearest(name, {unused.begin(), unused.end()});
  return near.empty() ? "" : "; it names " + near + ", which no driver is called";
}

std::vector<UnusedController> CsiDrivers::UnusedControllers() const {
  std::vector<UnusedController> unused;
  for (const auto& [name, place] : settings_.controllers) {
    if (Find(name) == nullptr) unused.push_back({name, place.Display()});
  }
  return unused;
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
                     .why_away = driver->WhyAway(),
                     .controller = driver->controller_link(),
                     .shown_topology = ShownTopology(record.facts, driver->secrets())});
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

void CsiDrivers::RegistrarFailed(const std::string& socket, const std::string& why,
                                 bool is_refusal) {
  for (const std::shared_ptr<CsiDriver>& driver : All()) {
    if (driver->record().socket == socket) driver->RegistrarFailed(why, is_refusal);
  }
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

void CsiDrivers::RefreshNowAndThen(const std::string& name) {
  if (const std::shared_ptr<CsiDriver> driver = FindAny(name)) driver->RefreshNowAndThen();
}

void CsiDrivers::TextsShown(const std::string& name) {
  if (const std::shared_ptr<CsiDriver> driver = FindAny(name)) driver->TextsShown();
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
          if (put.ok()) Written(record);
          done(put.ok() ? put : Status(put.error().With("what the driver is cannot be recorded")));
        });
      });
}

void CsiDrivers::Written(const CsiDriverRecord& record) {
  const std::string& name = record.facts.name;
  written_[name] = record;
  bool is_renewed = false;
  {
    MutexLock lock(mu_);
    is_renewed = unreadable_.erase(name) > 0;
  }
  if (is_renewed) {
    parts_.log.Warning("the record of a CSI driver, which could not be read, is written anew",
                       {{"driver", name}});
  }
}

void CsiDrivers::MakeRoom() {
  const std::vector<std::shared_ptr<CsiDriver>> all = All();
  if (all.size() < settings_.most_drivers) return;
  std::string oldest;
  int64_t since = 0;
  for (const std::shared_ptr<CsiDriver>& driver : all) {
    const bool may_go = driver->known() && WhyKept(*driver).empty();
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

Error RefuseToForget(const std::string& driver, const std::string& why) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "CSI driver " + driver + " is not forgotten: " + why);
}

std::string CsiDrivers::WhyThere(const CsiDriver& driver) {
  if (driver.registered() || driver.registering()) {
    // It may be dead: what counts is the socket, which a driver that is killed leaves.
    const std::string socket = driver.record().socket;
    return "it is registered" +
           (socket.empty() ? "" : " by " + socket + ": end the driver, and remove that socket");
  }
  return driver.connected() ? "there is a connection to it" : "";
}

std::string CsiDrivers::WhyKept(const CsiDriver& driver) const {
  const std::string there = WhyThere(driver);
  const std::string here = hooks_.what_is_here ? hooks_.what_is_here(driver.name()) : "";
  return there + (there.empty() || here.empty() ? "" : "; ") + here;
}

Status CsiDrivers::CheckAway(const std::string& name) const {
  const std::shared_ptr<CsiDriver> driver = Find(name);
  if (driver == nullptr) {
    return Error::NotApplied(Code::kNotFound, "there is no CSI driver " + name);
  }
  const std::string why = WhyThere(*driver);
  return why.empty() ? OkStatus() : Status(RefuseToForget(name, why));
}

void CsiDrivers::Forget(const std::string& name, std::function<void(Status)> done) {
  const std::shared_ptr<CsiDriver> driver = Find(name);
  if (driver == nullptr) return done(CheckAway(name));
  // All of it at once: whoever ends one reason is not to meet the next one then.
  const std::string kept_by = WhyKept(*driver);
  if (!kept_by.empty()) return done(RefuseToForget(name, kept_by));
  written_.erase(name);
  parts_.scheduler.RunBlocking(
      [this, watch = alive_.watch(), parts = parts_, name, done = std::move(done)] {
        const Status removed =
            parts.records.Remove(kCsiDriverRecordKind, name, kCsiDriverRecordDurability);
        parts.scheduler.Post([this, watch, name, removed, done] {
          if (watch.alive()) Forgotten(name, removed, done);
        });
      });
}

void CsiDrivers::Forgotten(const std::string& name, const Status& removed,
                           const std::function<void(Status)>& done) {
  if (!removed.ok()) return done(removed.error().With("the record of the driver stays"));
  const std::shared_ptr<CsiDriver> driver = FindAny(name);
  if (driver != nullptr && !WhyKept(*driver).empty()) {
    // It came back while its row was removed: what has been written of it since may be lost.
    return Write(driver->record(), [name, done](const Status& written) {
      if (!written.ok()) return done(written);
      done(Error::NotApplied(Code::kFailedPrecondition,
                             "CSI driver " + name + " has come back meanwhile"));
    });
  }
  {
    MutexLock lock(mu_);
    drivers_.erase(name);  // `driver` has it
  }
  if (hooks_.release_topology) hooks_.release_topology(name);
  parts_.log.Info("a CSI driver is forgotten, as an administrator wished", {{"driver", name}});
  for (const Listener& listener : listeners_) listener(name, DriverEvent::kFactsChanged);
  done(OkStatus());
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
    case DriverEvent::kControllerReady:
      parts_.log.LogLimited("csi controller ready " + name, LogLevel::kInfo,
                            "the controller of a CSI driver is used", {{"driver", name}});
      break;
    case DriverEvent::kControllerAway:
      parts_.log.LogLimited("csi controller away " + name, LogLevel::kWarning,
                            "volumes wait for the controller of a CSI driver",
                            {{"driver", name}, {"reason", driver->WhyControllerAway()}});
      break;
    case DriverEvent::kRegistered:
    case DriverEvent::kFactsChanged:
      break;
  }
  for (const Listener& listener : listeners_) listener(name, event);
}

}  // namespace volumed
