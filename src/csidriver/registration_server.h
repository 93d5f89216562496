// RegistrationServer: how a kubelet gets to know the driver: a socket in its directory of plugins,
// at which it asks what is there, and tells what came of it.
//
// The socket appears in the directory only when it can be connected to and so can the driver, and
// goes when the driver cannot, or the agent stops: a kubelet takes a driver to be there as long as
// its socket is. What another program has at the place stays.
// Source: kubernetes pkg/kubelet/pluginmanager@v1.36; node-driver-registrar v2.17.0.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csidriver/served_socket.h"

namespace volumed {

struct RegistrationServerSettings {
  std::string directory;  // the kubelet's; absolute
  std::string driver;
  std::string endpoint;  // the socket of the driver, by the path that the kubelet sees
  // A kubelet asks as soon as it sees the socket; after this time there is none that does.
  Duration silent_for = std::chrono::seconds(30);
};

// Threads: control.
class RegistrationServer {
 public:
  // They outlive this object, and what it posts.
  struct Parts {
    Scheduler& scheduler;
    EventLoop& loop;  // the control thread's
    Logger& log;
  };
  // Called on the control thread, whenever something has changed: OK as long as the socket is in
  // its place and no registration has failed. Errors: those of the socket's file; Unavailable, if a
  // kubelet has said that it did not take the driver, until one says that it has, or if none has
  // said anything for `silent_for`; the driver's own, while it does not serve.
  using State = std::function<void(const Status&)>;

  RegistrationServer(const Parts& parts, const RegistrationServerSettings& settings, State state);
  // The socket's file stays: Remove() is for a stop. Blocks: for a second at most.
  ~RegistrationServer();
  RegistrationServer(const RegistrationServer&) = delete;
  RegistrationServer& operator=(const RegistrationServer&) = delete;

  // "<directory>/<driver>-reg.sock". Pure.
  static std::string SocketPath(const RegistrationServerSettings& settings);
  // Removes the socket of an agent that is gone without having removed it, and what it may have
  // begun to make. Errors: as RemoveDeadSocket() and LockSocketFile(). Blocks: as these two.
  static Status RemoveDead(const RegistrationServerSettings& settings);

  // Registers from now on, while the driver serves. Blocks: as long as the directory takes to
  // answer. REQUIRES: it is called once.
  void Serve();
  // Whether the driver can be called at its socket, which counts as true until this is called; the
  // error says why not. Blocks: as Serve().
  void DriverServes(const Status& state);
  // Takes the socket away, so that the driver counts as gone. Errors: errno's code, not applied.
  Status Remove();

 private:
  class Service;

  void Follow();
  void TakeFileState(const Status& state);
  // What a kubelet said: an empty text if it has taken the driver.
  void TakeTold(const std::string& why_not);
  void TellState();

  void AwaitKubelet();

  const Parts parts_;
  const std::string directory_;
  const Duration silent_for_;
  const State state_;
  bool is_begun_ = false;  // by Serve()
  bool is_shown_ = false;  // as far as the socket can be made
  Status driver_;
  Status file_state_;
  std::string why_not_;  // empty: nobody has refused the driver
  bool was_told_ = false;
  bool has_waited_ = false;  // `silent_for` has passed
  std::unique_ptr<Service> service_;
  std::unique_ptr<ServedSocket> socket_;
  AliveGuard alive_;
};

}  // namespace volumed
