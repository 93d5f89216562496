// CsiLink: keeps one connection to whatever process listens at a driver's socket. It sees at once
// that the connection is gone, and dials anew when something changes at the socket's path, and
// after times that grow, for a process may listen some time after it has made the socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/alive_guard.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/scheduler.h"
#include "csi/csi_caller.h"

namespace volumed {

// Whether a link that is down dials by itself.
enum class CsiRedial {
  kNever,       // its owner says when
  kOnceWaited,  // until the longest wait has passed, and whenever something changes at the socket
  kAlways,
};

// Threads: control; the hooks are called there. Blocks: never.
class CsiLink {
 public:
  struct Parts {
    Scheduler& scheduler;
    CsiDialer& dialer;
  };
  struct Settings {
    std::string driver;                        // for texts
    Duration dial = std::chrono::seconds(10);  // until a process has taken the connection
    Duration first_wait = std::chrono::milliseconds(50);
    Duration longest_wait = std::chrono::seconds(5);
    // A connection that lasted so long is dialled anew at once, and the waits begin anew.
    Duration steady = std::chrono::seconds(1);
  };
  struct Hooks {
    // A connection was made, and is used once the driver has been greeted over it. `done` is called
    // once on the control thread. The caller is ended if the greeting is of no use any more.
    std::function<void(const std::shared_ptr<CsiCaller>& caller, std::function<void(Status)> done)>
        greet;
    // caller() is another one now.
    std::function<void()> up;
    // There was a caller(), and there is none now.
    std::function<void(const Error& why)> lost;
    // An attempt has failed; the connection that was there before is there still.
    std::function<void(const Error& why)> failed;
  };
  CsiLink(Parts parts, Settings settings, Hooks hooks);
  ~CsiLink();
  CsiLink(const CsiLink&) = delete;
  CsiLink& operator=(const CsiLink&) = delete;

  // Dials this place now, in place of any attempt that is under way; a connection that is there is
  // kept until the new one is greeted, also if both are to the same socket.
  void Dial(const SafePath& place);
  // What is dialled from now on; nothing is now.
  void SetPlace(const SafePath& place) { place_ = place; }
  // Something may have changed at the socket: if it is another file now, it is dialled.
  void LookAgain();
  void SetRedial(CsiRedial redial);

  // Drops the connection; nobody is told.
  void Hangup() { caller_.reset(); }

  // Null while there is none.
  const std::shared_ptr<CsiCaller>& caller() const { return caller_; }
  const SafePath& place() const { return place_; }
  bool busy() const { return busy_; }
  // The uid of the socket that was opened last, or refused because of it; nullopt if it could not
  // be looked at.
  std::optional<uint32_t> owner() const { return owner_; }
  // When it dials by itself; nullopt: not before something happens.
  std::optional<TimePoint> next_try() const;

 private:
  struct Opened {
    bool is_same = false;
    SocketIdentity identity;
    uint32_t owner = 0;
    std::shared_ptr<CsiCaller> caller;
  };
  void Begin(bool is_forced);
  // On an executor thread.
  static Result<Opened> Open(Parts parts, const Settings& settings, const SafePath& place,
                             std::optional<SocketIdentity> but, CsiDialer::StateSeen state_seen);
  void TakeOpened(uint64_t attempt, const Result<Opened>& opened);
  void StateSeen(uint64_t attempt, CsiConnectionState state);
  void Greet();
  void TakeGreeted(uint64_t attempt, const Status& greeted);
  void Lost();
  void Fail(const Error& error);
  // Leaves the attempt that is under way, if there is one.
  void Abandon();
  void EndAttempt();
  void WaitAndDial();

  const Parts parts_;
  const Settings settings_;
  const Hooks hooks_;
  SafePath place_;
  CsiRedial redial_ = CsiRedial::kNever;

  std::shared_ptr<CsiCaller> caller_;
  uint64_t caller_attempt_ = 0;  // by which it was made
  SocketIdentity identity_;      // of its socket
  TimePoint up_since_;
  std::optional<uint32_t> owner_;

  uint64_t attempt_ = 0;  // counts them
  bool busy_ = false;     // an attempt is under way
  bool again_ = false;    // something has changed since it began
  bool greeting_ = false;
  bool is_broken_ = false;  // the connection went while the driver was greeted
  Opened candidate_;
  std::optional<CsiConnectionState> seen_early_;  // before the candidate was known
  TimerId dial_timer_ = 0;

  Duration wait_;
  TimerId wait_timer_ = 0;
  TimePoint wait_until_;

  AliveGuard alive_;
};

}  // namespace volumed
