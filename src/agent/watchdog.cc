#include "agent/watchdog.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <cstdint>
#include <utility>

namespace volumed {
namespace {

std::string MonotonicUsec() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::to_string(int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1'000);
}

}  // namespace

Watchdog::Watchdog(Scheduler& scheduler) : scheduler_(scheduler) {
  uint64_t usec = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &usec) > 0) {
    period_ = std::chrono::microseconds(usec / 2);
  }
}

void Watchdog::Ready(const std::string& status) {
  sd_notify(0, ("READY=1\nSTATUS=" + status).c_str());
  // This is also the end of a reload, which must not start a second chain of pings.
  if (!std::exchange(pinging_, true)) Ping();
}

void Watchdog::Status(const std::string& status) { sd_notify(0, ("STATUS=" + status).c_str()); }

void Watchdog::Reloading() {
  sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + MonotonicUsec()).c_str());
}

void Watchdog::Stopping() { sd_notify(0, "STOPPING=1"); }

void Watchdog::Ping() {
  if (!period_) return;
  sd_notify(0, "WATCHDOG=1");
  scheduler_.PostAfter(*period_, [this] { Ping(); });
}

}  // namespace volumed
