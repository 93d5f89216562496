// Ways to wait for a device's link, and what they are measured with. A bench that cannot go on ends
// with a message.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "integration/attacher/waiter_on_node.h"
#include "os/udev.h"

namespace volumed {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void Die(const std::string& what);
void Check(bool ok, const std::string& what);

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "device_wait_bench: %s\n", result.error().ToString().c_str());
    std::exit(1);
  }
  return std::move(result).value();
}

double Millis(SteadyClock::duration time);

// An agent's control thread never rests: what was announced before a measurement is no part of it.
void Drain(WaiterOnNode& node);

struct Samples {
  std::vector<double> values;
  double At(double share);
};

// The program's wait status.
int Run(std::vector<std::string> words);

void WaitUntilGone(const std::string& path);

// Returns when the link is there.
void Poll(const std::string& link, std::chrono::milliseconds period, SteadyClock::time_point next);

// Hears of devices by udevd's events.
class Listener {
 public:
  Listener();
  // The next link of a volume that is new, and when it was heard of.
  std::pair<std::string, SteadyClock::time_point> Next();
  // When a device with this link was heard of.
  SteadyClock::time_point Await(const std::string& link);

 private:
  std::pair<std::string, SteadyClock::time_point> Await(
      const std::function<bool(const std::string& link)>& wanted);

  UdevContext context_;
  UdevMonitor monitor_;
  std::set<std::string> heard_;
};

}  // namespace volumed
