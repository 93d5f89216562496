// CsiRegistration: one socket, from the question who it belongs to until it is told what came of
// it.
#include <utility>

#include "base/printable_text.h"
#include "csi/registration.h"

namespace volumed {
namespace {

constexpr char kPluginType[] = "CSIPlugin";
constexpr char kRegister[] = "register";
constexpr size_t kShownBytes = 80;
constexpr size_t kInfoBytes = 64 * 1024;  // whoever may make a socket may say anything
constexpr int kQuickTries = 5;
constexpr Duration kQuickWait = std::chrono::milliseconds(50);

// The first is kubelet's text.
std::string NameTaken(const PluginVersion& wanted, const PluginVersion& there,
                      const SafePath& place) {
  const std::string who = "Another driver with the same name is already registered";
  if (wanted <= there) {
    return who + " with a higher supported version: " + there.text + ", at " + place.Display();
  }
  return who + ", and lives: at " + place.Display() + ", of version " + there.text;
}

// Whether whoever registers was there, and was not taken.
bool IsRefusal(const Error& error) {
  return error.IsAbout(kCsiSocketRefused) ||
         (error.code() != Code::kUnavailable && error.code() != Code::kDeadlineExceeded);
}

// What kubelet's texts begin with.
Error RegisterError(Code code, const std::string& what) {
  return Error::NotApplied(code, "RegisterPlugin error -- " + what);
}

}  // namespace

std::vector<RegisteredSocket> CsiRegistration::Sockets() const {
  std::vector<RegisteredSocket> all;
  for (const auto& [name, socket] : sockets_) {
    RegisteredSocket shown{.path = PlaceOf(*socket).Display(),
                           .state = socket->state,
                           .driver = PrintableText(BeginningOf(socket->info.name(), kShownBytes)),
                           .owner = socket->link->owner(),
                           .reason = socket->reason,
                           .next_try = socket->next_try};
    if (socket->state == RegistrationState::kConnecting && shown.reason.empty()) {
      shown.reason = parts_.drivers.LastError(socket->driver);
    }
    // A registrar may end because of its refusal.
    if (!socket->refusal.empty() && socket->refusal != shown.reason) {
      shown.reason +=
          (shown.reason.empty() ? "" : "; ") +
          ("it was refused at " + WallTimeText(socket->refusal_unix_ms) + ": " + socket->refusal);
    }
    all.push_back(std::move(shown));
  }
  return all;
}

CsiRegistration::Socket* CsiRegistration::Find(const std::string& name, uint64_t turn) {
  const auto found = sockets_.find(name);
  return found == sockets_.end() || found->second->turn != turn ? nullptr : found->second.get();
}

void CsiRegistration::Begin(Socket& socket) {
  parts_.scheduler.Cancel(socket.timer);
  socket.timer = 0;
  socket.next_try.reset();
  socket.blocked_by.clear();
  socket.state = RegistrationState::kAsking;
  socket.link->Dial(PlaceOf(socket));
}

CsiLink::Hooks CsiRegistration::LinkHooks(const std::string& name, uint64_t turn) {
  // The link goes with its socket, so each finds it, but for what is told later.
  return {.greet =
              [this, name, turn](const std::shared_ptr<CsiCaller>& caller,
                                 std::function<void(Status)> done) {
                AskInfo(name, turn, caller, std::move(done));
              },
          .up = [this, name, turn] { TakeInfo(*Find(name, turn)); },
          .lost = [](const Error&) {},
          .failed =
              [this, name, turn](const Error& error) {
                Socket& socket = *Find(name, turn);
                if (socket.state == RegistrationState::kAsking) Fail(socket, error);
              }};
}

void CsiRegistration::AskInfo(const std::string& name, uint64_t turn,
                              const std::shared_ptr<CsiCaller>& caller,
                              std::function<void(Status)> done) {
  AskOnControl<::pluginregistration::PluginInfo>(
      parts_.scheduler, caller, ::pluginregistration::InfoRequest(),
      {Deadline::After(parts_.scheduler.clock(), settings_.get_info)},
      [this, watched = alive_.watch(), name, turn,
       done = std::move(done)](const Result<::pluginregistration::PluginInfo>& info) {
        Socket* const socket = watched.alive() ? Find(name, turn) : nullptr;
        if (socket == nullptr) return;
        if (!info.ok()) return done(info.error());
        if (info->ByteSizeLong() > kInfoBytes) {
          return done(
              Error::NotApplied(Code::kInvalidArgument, "GetInfo answered more than 64 KiB"));
        }
        socket->info = *info;
        done(OkStatus());
      });
}

void CsiRegistration::TakeInfo(Socket& socket) {
  if (socket.info.type() != kPluginType) {
    // Another agent's plugin may use the same directory. Kubelet does not try again either.
    socket.state = RegistrationState::kEnded;
    socket.reason = RegisterError(Code::kUnimplemented,
                                  "no handler registered for plugin type: " +
                                      PrintableText(BeginningOf(socket.info.type(), kShownBytes)) +
                                      " at socket " + PlaceOf(socket).Display())
                        .message();
    return NotifyRefusal(socket, socket.reason);
  }
  const Result<CsiRegister> registration = Check(socket);
  if (!registration.ok()) {
    return FailAndNotify(socket, registration.error().With(
                                     "RegisterPlugin error -- plugin validation failed with err"));
  }
  Connect(socket, *registration);
}

Result<CsiRegister> CsiRegistration::Check(Socket& socket) {
  const std::string& name = socket.info.name();
  RETURN_IF_ERROR(CheckCsiDriverName(name));
  const auto& given = socket.info.supported_versions();
  ASSIGN_OR_RETURN(socket.version, HighestSupportedVersion({given.begin(), given.end()}));
  CsiRegister registration;
  registration.driver = name;
  registration.socket = PlaceOf(socket).Display();
  registration.version = PrintableText(BeginningOf(socket.version.text, kShownBytes));
  registration.endpoint =
      socket.info.endpoint().empty() ? registration.socket : socket.info.endpoint();
  registration.place = PlaceOf(socket);
  if (!socket.info.endpoint().empty()) {
    ASSIGN_OR_RETURN(registration.place, parts_.drivers.PlaceOf(socket.info.endpoint()));
  }
  socket.endpoint = registration.place;
  RETURN_IF_ERROR(TakeName(socket));
  return registration;
}

Status CsiRegistration::TakeName(Socket& socket) {
  const std::string& name = socket.info.name();
  const auto owner = owners_.find(name);
  if (owner != owners_.end() && owner->second != socket.name) {
    Socket& other = *sockets_.at(owner->second);
    const bool is_alive =
        other.state != RegistrationState::kRegistered || parts_.drivers.IsConnected(name);
    // Kubelet lets a higher version take the name, for it does not know whether the other one
    // lives.
    if (is_alive) {
      socket.blocked_by = name;
      return Error::NotApplied(Code::kAlreadyExists,
                               NameTaken(socket.version, other.version, PlaceOf(other)));
    }
    EndAttempt(other);
    other.state = RegistrationState::kEnded;
    other.reason = "the driver was registered anew by " + PlaceOf(socket).Display();
    other.driver.clear();
    other.blocked_by = name;
  }
  owners_[name] = socket.name;
  socket.driver = name;
  return OkStatus();
}

void CsiRegistration::Connect(Socket& socket, const CsiRegister& registration) {
  socket.state = RegistrationState::kConnecting;
  socket.reason.clear();
  parts_.drivers.Register(registration, [this, watched = alive_.watch(), name = socket.name,
                                         turn = socket.turn](const Status& status) {
    Socket* const found = watched.alive() ? Find(name, turn) : nullptr;
    if (found != nullptr && found->state == RegistrationState::kConnecting) {
      TakeConnected(*found, status);
    }
  });
  // The endpoint is watched from now on.
  LookAgain();
}

void CsiRegistration::TakeConnected(Socket& socket, const Status& status) {
  if (!status.ok()) {
    return FailAndNotify(
        socket, status.error().With("RegisterPlugin error -- plugin registration failed with err"));
  }
  socket.state = RegistrationState::kNotifying;
  Notify(socket, "",
         [this, watched = alive_.watch(), name = socket.name,
          turn = socket.turn](const Status& notified) {
           Socket* const found = watched.alive() ? Find(name, turn) : nullptr;
           if (found != nullptr && found->state == RegistrationState::kNotifying) {
             TakeNotified(*found, notified);
           }
         });
}

void CsiRegistration::TakeNotified(Socket& socket, const Status& status) {
  if (!status.ok()) {
    return Fail(socket, status.error().With("the driver could not be told that it is registered"));
  }
  socket.state = RegistrationState::kRegistered;
  socket.reason.clear();
  socket.refusal.clear();
  parts_.drivers.RegistrarFailed(PlaceOf(socket).Display(), "");
  backoff_.Reset(socket.name);
  socket.link->Hangup();  // as kubelet does
  parts_.log.Info("CSI driver is registered", {{"driver", socket.driver},
                                               {"socket", PlaceOf(socket).Display()},
                                               {"endpoint", socket.endpoint.Display()}});
  if (hooks_.ended) hooks_.ended(socket.driver, true);
}

void CsiRegistration::Notify(Socket& socket, const std::string& error,
                             std::function<void(Status)> done) {
  const std::shared_ptr<CsiCaller> caller = socket.link->caller();
  if (caller == nullptr) {
    // Whoever is told expects it later.
    parts_.scheduler.Post([done = std::move(done)] {
      done(Error::NotApplied(Code::kUnavailable, "the registration's connection was broken off"));
    });
    return;
  }
  ::pluginregistration::RegistrationStatus status;
  status.set_plugin_registered(error.empty());
  status.set_error(error);
  AskOnControl<::pluginregistration::RegistrationStatusResponse>(
      parts_.scheduler, caller, status,
      {Deadline::After(parts_.scheduler.clock(), settings_.notify)},
      [done = std::move(done)](const auto& answer) {
        done(answer.ok() ? OkStatus() : Status(answer.error()));
      });
}

void CsiRegistration::NotifyRefusal(Socket& socket, const std::string& error) {
  Notify(socket, error,
         [this, watched = alive_.watch(), name = socket.name, turn = socket.turn](const Status&) {
           Socket* const found = watched.alive() ? Find(name, turn) : nullptr;
           if (found != nullptr) found->link->Hangup();
         });
}

void CsiRegistration::FailAndNotify(Socket& socket, const Error& error) {
  NotifyRefusal(socket, error.message());
  Fail(socket, error);
}

std::string CsiRegistration::NameToTell(const Socket& socket) {
  if (!socket.driver.empty()) return socket.driver;
  const std::string& said = socket.info.name();
  return CheckCsiDriverName(said).ok() ? said : "";
}

void CsiRegistration::Fail(Socket& socket, const Error& error) {
  // Of what the driver's own socket is refused for, somebody else may be the cause.
  const bool is_asking = socket.state == RegistrationState::kAsking;
  // What is left of a registrar that ended asks for nothing.
  const bool nobody_asks = is_asking && error.code() == Code::kUnavailable;
  const std::string driver = NameToTell(socket);
  const bool is_refusal = IsRefusal(error);
  socket.reason = error.message();
  if (is_refusal) {
    socket.refusal = socket.reason;
    socket.refusal_unix_ms = parts_.scheduler.clock().WallUnixMillis();
  }
  parts_.drivers.RegistrarFailed(PlaceOf(socket).Display(), socket.reason, is_refusal);
  EndAttempt(socket);
  GiveUpName(socket);
  if (is_asking && error.IsAbout(kCsiSocketRefused)) {
    socket.state = RegistrationState::kRefused;
  } else {
    Wait(socket, nobody_asks);
  }
  // Else it would be left out because nobody had listened a moment before.
  const std::string what = is_refusal ? "csi refusal " : "csi registration ";
  parts_.log.LogLimited(what + socket.name, LogLevel::kWarning, "CSI driver is not registered",
                        {{"socket", PlaceOf(socket).Display()},
                         {"driver", socket.info.name()},
                         {"state", RegistrationStateName(socket.state)},
                         {"error", error}});
  if (hooks_.ended && !nobody_asks) hooks_.ended(driver, false);
}

void CsiRegistration::Wait(Socket& socket, bool nobody_listens) {
  socket.state = RegistrationState::kWaiting;
  // A socket is made a moment before somebody listens at it, of which nobody is told.
  const bool is_quick = nobody_listens && socket.quick_tries++ < kQuickTries;
  const Duration delay = is_quick ? kQuickWait : backoff_.RecordFailure(socket.name, kRegister, "");
  socket.next_try = parts_.scheduler.clock().Now() + delay;
  socket.timer = parts_.scheduler.PostAfter(
      delay, [this, watched = alive_.watch(), name = socket.name, turn = socket.turn] {
        Socket* const found = watched.alive() ? Find(name, turn) : nullptr;
        if (found != nullptr && found->state == RegistrationState::kWaiting) Begin(*found);
      });
}

void CsiRegistration::RetryNow(Socket& socket) {
  backoff_.Reset(socket.name);
  Begin(socket);
}

void CsiRegistration::GiveUpName(Socket& socket) {
  const std::string driver = std::exchange(socket.driver, "");
  if (driver.empty()) return;
  owners_.erase(driver);
  parts_.drivers.Unregister(driver);
  RetryBlockedBy(driver);
}

void CsiRegistration::EndAttempt(Socket& socket) {
  parts_.scheduler.Cancel(socket.timer);
  socket.timer = 0;
  socket.next_try.reset();
}

}  // namespace volumed
