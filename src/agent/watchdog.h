// Watchdog: tells systemd how the agent is. WATCHDOG=1 comes from a timer on the control thread and
// from nowhere else, so it says that the control loop turns; a hung volume never stops it.
// Source: sd_notify(3), sd_watchdog_enabled(3).
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/scheduler.h"

namespace volumed {

// Threads: the control thread. Blocks: never. Without systemd (no NOTIFY_SOCKET) every method does
// nothing. The scheduler outlives this object, and this object outlives its timer. `status` is one
// line for people, as `systemctl status` shows it.
class Watchdog {
 public:
  explicit Watchdog(Scheduler& scheduler);

  // Sends READY=1, also after a reload. From the first call on, WATCHDOG=1 is sent too, at half the
  // time that systemd allows.
  void Ready(const std::string& status);
  void Status(const std::string& status);
  // Says that a reload has begun; it ends with the next Ready().
  void Reloading();
  // Says that the agent ends by intention.
  void Stopping();

 private:
  void Ping();

  Scheduler& scheduler_;
  std::optional<Duration> period_;
  bool pinging_ = false;
};

}  // namespace volumed
