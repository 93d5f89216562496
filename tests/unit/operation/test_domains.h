// TestDomains: fault domains that are as a test says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "os/fault_domain.h"

namespace volumed {

// Threads: one, as a simulation has.
class TestDomains final : public FaultDomains {
 public:
  FaultDomain Locate(const std::string& domain) override {
    ++located;
    const auto found = lanes.find(domain);
    if (found == lanes.end()) return {domain, domain};
    return {found->second, found->second + " (test at /mnt)"};
  }
  LaneHealth HealthOf(const std::string& lane) const override {
    const auto found = health.find(lane);
    if (found != health.end()) return found->second;
    return {.lost = 0, .silent_since = std::nullopt, .has_answered = true};
  }

  std::string WhyClosed(const std::string& lane) const override {
    const auto found = why_closed.find(lane);
    return found == why_closed.end() ? "" : found->second;
  }

  std::string WhenTakenAwayWithout(const std::string& lane) const override {
    const auto found = taken_away_without.find(lane);
    return found == taken_away_without.end() ? "" : found->second;
  }

  std::vector<KnownMount> MountsAround(const std::string& /*directory*/) const override {
    return mounts;
  }

  std::vector<KnownMount> mounts;
  std::map<std::string, std::string> lanes;       // by domain
  std::map<std::string, LaneHealth> health;       // by lane
  std::map<std::string, std::string> why_closed;  // likewise
  std::map<std::string, std::string> taken_away_without;
  int located = 0;
};

}  // namespace volumed
