#include "csi/registration.h"

#include <sys/epoll.h>

#include <set>
#include <utility>

namespace volumed {
namespace {

constexpr char kLook[] = "look";
constexpr char kNoSocket[] = "it is not there";

}  // namespace

std::string_view RegistrationStateName(RegistrationState state) {
  switch (state) {
    case RegistrationState::kAsking:
      return "asking";
    case RegistrationState::kConnecting:
      return "connecting";
    case RegistrationState::kNotifying:
      return "notifying";
    case RegistrationState::kRegistered:
      return "registered";
    case RegistrationState::kRefused:
      return "refused";
    case RegistrationState::kWaiting:
      return "waiting";
    case RegistrationState::kEnded:
      return "ended";
  }
  return "ended";
}

CsiRegistration::CsiRegistration(Parts parts, std::shared_ptr<RegistryWatch> watch,
                                 CsiRegistrationSettings settings, Hooks hooks)
    : parts_(parts),
      watch_(std::move(watch)),
      settings_(std::move(settings)),
      hooks_(std::move(hooks)),
      backoff_(parts.scheduler.clock(), settings_.backoff) {
  parts_.drivers.AddListener(
      [this, watched = alive_.watch()](const std::string& driver, DriverEvent event) {
        if (watched.alive()) DriverHappened(driver, event);
      });
}

CsiRegistration::~CsiRegistration() {
  alive_.Renew();
  if (watching_) parts_.loop->UnwatchFd(watch_->fd());
  parts_.scheduler.Cancel(look_timer_);
  for (const auto& [name, socket] : sockets_) parts_.scheduler.Cancel(socket->timer);
}

void CsiRegistration::Start() { LookAgain(); }

void CsiRegistration::LookAgain() {
  if (std::exchange(looking_, true)) {
    look_again_ = true;
    return;
  }
  parts_.scheduler.Cancel(look_timer_);
  parts_.scheduler.RunBlocking([this, watched = alive_.watch(), watch = watch_,
                                endpoints = Endpoints(), &scheduler = parts_.scheduler] {
    const RegistryLook look = watch->Look(endpoints);
    scheduler.Post([this, watched, look] {
      if (watched.alive()) TakeLook(look);
    });
  });
}

void CsiRegistration::TakeLook(const RegistryLook& look) {
  looking_ = false;
  for (const RegistryChange& change : look.changes) {
    switch (change.what) {
      case RegistryChange::What::kCame:
        Came(change.name);
        break;
      case RegistryChange::What::kChanged:
        Changed(change.name);
        break;
      case RegistryChange::What::kWent:
        Went(change.name);
        break;
      case RegistryChange::What::kEndpoint:
        EndpointChanged(change.name);
        break;
    }
  }
  const bool is_first = !std::exchange(looked_, true);
  if (is_first) NameMissingSockets();
  const bool is_news = is_first || look_error_.has_value() != look.error.has_value();
  look_error_ = look.error;
  if (look.error) {
    const Duration delay = backoff_.RecordFailure(settings_.directory, kLook, "");
    look_timer_ = parts_.scheduler.PostAfter(delay, alive_.Guarded([this] { LookAgain(); }));
  } else {
    backoff_.Reset(settings_.directory);
  }
  if (is_news && hooks_.directory_changed) hooks_.directory_changed(look.error);
  WatchLoop();
  if (std::exchange(look_again_, false)) LookAgain();
}

// Nobody will tell of the sockets by which drivers of earlier runs registered, if they are gone.
void CsiRegistration::NameMissingSockets() {
  std::set<std::string> there;
  for (const auto& [name, socket] : sockets_) there.insert(PlaceOf(*socket).Display());
  for (const DriverView& driver : parts_.drivers.List()) {
    if (!there.contains(driver.socket)) parts_.drivers.RegistrarFailed(driver.socket, kNoSocket);
  }
}

// Those of drivers that could not be registered too: else they were watched anew at each try.
std::vector<SafePath> CsiRegistration::Endpoints() const {
  std::vector<SafePath> places = parts_.drivers.Endpoints();
  for (const auto& [name, socket] : sockets_) {
    if (!socket->endpoint.root.empty()) places.push_back(socket->endpoint);
  }
  return places;
}

void CsiRegistration::WatchLoop() {
  if (parts_.loop == nullptr || watching_) return;
  const Status watched = parts_.loop->WatchFd(watch_->fd(), EPOLLIN, [this](uint32_t) {
    watching_ = false;
    parts_.loop->UnwatchFd(watch_->fd());
    LookAgain();
  });
  watching_ = watched.ok();
  if (!watched.ok()) {
    parts_.log.Error("registrations of CSI drivers are not watched any more",
                     {{"error", watched.error()}});
  }
}

void CsiRegistration::Came(const std::string& name) {
  Went(name);
  auto made = std::make_unique<Socket>();
  Socket& socket = *made;
  socket.name = name;
  socket.turn = ++last_turn_;
  socket.link = std::make_unique<CsiLink>(CsiLink::Parts{parts_.scheduler, parts_.dialer},
                                          CsiLink::Settings{.driver = name, .dial = settings_.dial},
                                          LinkHooks(name, socket.turn));
  sockets_[name] = std::move(made);
  Begin(socket);
}

void CsiRegistration::Changed(const std::string& name) {
  const auto found = sockets_.find(name);
  if (found == sockets_.end()) return;
  const RegistrationState state = found->second->state;
  if (state == RegistrationState::kRefused || state == RegistrationState::kWaiting) {
    RetryNow(*found->second);
  }
}

void CsiRegistration::Went(const std::string& name) {
  const auto found = sockets_.find(name);
  if (found == sockets_.end()) return;
  const std::unique_ptr<Socket> socket = std::move(found->second);
  sockets_.erase(found);
  parts_.drivers.RegistrarFailed(PlaceOf(*socket).Display(), kNoSocket);
  backoff_.Reset(name);
  parts_.scheduler.Cancel(socket->timer);
  if (socket->state == RegistrationState::kRegistered) {
    parts_.log.Info("CSI driver is not registered any more",
                    {{"driver", socket->driver}, {"socket", PlaceOf(*socket).Display()}});
  }
  GiveUpName(*socket);
}

void CsiRegistration::EndpointChanged(const std::string& display) {
  parts_.drivers.EndpointChanged(display);
  for (const auto& [name, socket] : sockets_) {
    if (socket->state == RegistrationState::kWaiting && socket->endpoint.Display() == display) {
      RetryNow(*socket);
    }
  }
}

void CsiRegistration::DriverHappened(const std::string& driver, DriverEvent event) {
  if (event != DriverEvent::kAway || parts_.drivers.IsConnected(driver)) return;
  RetryBlockedBy(driver);
}

// Those that wait for the name, and those that have lost it: theirs is the driver that is left.
void CsiRegistration::RetryBlockedBy(const std::string& driver) {
  for (const auto& [name, socket] : sockets_) {
    if (socket->blocked_by == driver) RetryNow(*socket);
  }
}

void CsiRegistration::Retry(const std::string& driver) {
  for (const auto& [name, socket] : sockets_) {
    if (socket->state == RegistrationState::kWaiting && socket->info.name() == driver) {
      RetryNow(*socket);
    }
  }
}

void CsiRegistration::OwnersChanged() {
  for (const auto& [name, socket] : sockets_) {
    if (socket->state == RegistrationState::kRefused) RetryNow(*socket);
  }
}

}  // namespace volumed
