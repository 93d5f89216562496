// CsiRegistration: kubelet's part of a plugin's registration, for CSI drivers: a socket appears in
// a directory, is asked who it belongs to, and is told what came of it.
//
// It does what kubelet does, and some things that kubelet does not: a registration that failed is
// tried again, whatever it failed by; sockets are seen at once, and opened without trust in their
// paths; a second driver of a name waits for the first to go.
// Source: kubernetes pkg/kubelet/pluginmanager and pkg/volume/csi/csi_plugin.go@v1.36.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/alive_guard.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_caller.h"
#include "csi/csi_drivers.h"
#include "csi/csi_link.h"
#include "csi/plugin_info.h"
#include "csi/registry_watch.h"
#include "pluginregistration.pb.h"

namespace volumed {

struct CsiRegistrationSettings {
  std::string directory;                     // absolute and clean
  Duration dial = std::chrono::seconds(10);  // the four are kubelet's
  Duration get_info = std::chrono::seconds(1);
  Duration notify = std::chrono::seconds(5);
  Backoff::Options backoff = {};
};

enum class RegistrationState {
  kAsking,      // it is opened, dialled, and asked what it is
  kConnecting,  // its driver is dialled and asked what it can do
  kNotifying,   // it is told that it is registered
  kRegistered,
  kRefused,  // until the socket changes, or OwnersChanged()
  kWaiting,  // it failed, and is tried again
  kEnded,    // until it is made anew
};
// "asking", "registered", ...
std::string_view RegistrationStateName(RegistrationState state);

// A socket of the directory, for people.
struct RegisteredSocket {
  std::string path;
  RegistrationState state = RegistrationState::kAsking;
  std::string driver = {};             // empty: it has not said
  std::optional<uint32_t> owner = {};  // uid; nullopt: it could not be looked at
  std::string reason = {};             // why it is not registered, by the last try
  std::optional<TimePoint> next_try = {};
};

// Threads: control. Blocks: never; what may is done by Scheduler::RunBlocking.
class CsiRegistration {
 public:
  // They outlive this, and the tasks that it posts.
  struct Parts {
    Scheduler& scheduler;
    EventLoop* loop;  // watches the directory; null: the owner calls LookAgain()
    CsiDialer& dialer;
    CsiDrivers& drivers;
    Logger& log;
  };
  // Any may be empty.
  struct Hooks {
    // After each look at the directory that went otherwise than the one before, and after the
    // first: nullopt if it is seen what happens there.
    std::function<void(const std::optional<Error>&)> directory_changed;
    // A registration has ended, well or not; without a name if the plugin gave none that is one.
    // Not of a socket at which nobody listens.
    std::function<void(const std::string& driver, bool registered)> ended;
  };
  CsiRegistration(Parts parts, std::shared_ptr<RegistryWatch> watch,
                  CsiRegistrationSettings settings, Hooks hooks);
  ~CsiRegistration();
  CsiRegistration(const CsiRegistration&) = delete;
  CsiRegistration& operator=(const CsiRegistration&) = delete;

  // Looks at the directory for the first time, and watches it from then on.
  void Start();
  // Something may have changed.
  void LookAgain();
  // What failed is tried now.
  void Retry(const std::string& driver);
  // What was refused may be allowed now: it is looked at again.
  void OwnersChanged();

  // By path.
  std::vector<RegisteredSocket> Sockets() const;

 private:
  struct Socket {
    std::string name;   // below the directory
    uint64_t turn = 0;  // one number for each time that it came
    RegistrationState state = RegistrationState::kAsking;
    std::string reason;
    std::string refusal;  // the last one since it came; kept if nobody listens afterwards
    int64_t refusal_unix_ms = 0;
    ::pluginregistration::PluginInfo info;  // of the last answer
    std::string driver;                     // that it registers; empty: none yet
    PluginVersion version;
    SafePath endpoint;       // of the driver; empty: it has not said
    int quick_tries = 0;     // since it came
    std::string blocked_by;  // the name that another socket has, since it came or died
    TimerId timer = 0;
    std::optional<TimePoint> next_try;
    std::unique_ptr<CsiLink> link;
  };

  // ---- The directory ----
  void TakeLook(const RegistryLook& look);
  void NameMissingSockets();
  void WatchLoop();
  void Came(const std::string& name);
  void Changed(const std::string& name);
  void Went(const std::string& name);
  void EndpointChanged(const std::string& display);
  std::vector<SafePath> Endpoints() const;
  void DriverHappened(const std::string& driver, DriverEvent event);
  void RetryBlockedBy(const std::string& driver);

  // ---- registration_socket.cc: one socket; null is what has gone meanwhile ----
  Socket* Find(const std::string& name, uint64_t turn);
  // The driver's, or the one that the plugin has said; "" if that is none.
  static std::string NameToTell(const Socket& socket);
  SafePath PlaceOf(const Socket& socket) const { return {settings_.directory, socket.name}; }
  void Begin(Socket& socket);
  CsiLink::Hooks LinkHooks(const std::string& name, uint64_t turn);
  void AskInfo(const std::string& name, uint64_t turn, const std::shared_ptr<CsiCaller>& caller,
               std::function<void(Status)> done);
  void TakeInfo(Socket& socket);
  // Whose name it is, what it registers, and where; Errors, not applied.
  Result<CsiRegister> Check(Socket& socket);
  Status TakeName(Socket& socket);
  void Connect(Socket& socket, const CsiRegister& registration);
  void TakeConnected(Socket& socket, const Status& status);
  void TakeNotified(Socket& socket, const Status& status);
  void Notify(Socket& socket, const std::string& error, std::function<void(Status)> done);
  // Tells it that it is not registered, whether or not anybody hears it.
  void NotifyRefusal(Socket& socket, const std::string& error);
  void Fail(Socket& socket, const Error& error);
  void FailAndNotify(Socket& socket, const Error& error);
  void Wait(Socket& socket, bool nobody_listens);
  void RetryNow(Socket& socket);
  // Its driver's name is free.
  void GiveUpName(Socket& socket);
  void EndAttempt(Socket& socket);

  const Parts parts_;
  const std::shared_ptr<RegistryWatch> watch_;
  const CsiRegistrationSettings settings_;
  const Hooks hooks_;

  std::map<std::string, std::unique_ptr<Socket>> sockets_;  // by name
  std::map<std::string, std::string> owners_;               // driver -> the socket's name
  uint64_t last_turn_ = 0;
  Backoff backoff_;

  bool looking_ = false;
  bool look_again_ = false;
  bool watching_ = false;
  bool looked_ = false;
  std::optional<Error> look_error_;
  TimerId look_timer_ = 0;

  AliveGuard alive_;
};

}  // namespace volumed
