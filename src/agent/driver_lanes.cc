#include "agent/driver_lanes.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/log.h"
#include "volume/driver_domain.h"

namespace volumed {
namespace {

std::string DriverOf(const std::string& lane) { return lane.substr(kDriverDomainPrefix.size()); }

}  // namespace

FaultDomain DriverLanes::Locate(const std::string& domain) {
  if (IsDriverDomain(domain)) return {domain, DriverDomainName(domain)};
  return kernel_.Locate(domain);
}

LaneHealth DriverLanes::HealthOf(const std::string& lane) const {
  if (!IsDriverDomain(lane)) return kernel_.HealthOf(lane);
  const CsiLane driver = drivers_.LaneOf(DriverOf(lane));
  LaneHealth health = driver.health;
  // A width of zero would stand for that of any other lane.
  health.width = std::max(1, driver.width);
  health.closed = driver.closed;
  const bool may_do_without =
      driver.closed_to_teardown && debts_ != nullptr && debts_->MayOwe(DriverOf(lane));
  health.closed_to_teardown = driver.closed_to_teardown && !may_do_without;
  return health;
}

std::string DriverLanes::WhyClosed(const std::string& lane) const {
  return IsDriverDomain(lane) ? drivers_.WhyAway(DriverOf(lane)) : kernel_.WhyClosed(lane);
}

std::string DriverLanes::WhenTakenAwayWithout(const std::string& lane) const {
  if (!IsDriverDomain(lane) || debts_ == nullptr) return "";
  const std::optional<int64_t> from = debts_->MayOweFromUnixMillis(DriverOf(lane));
  if (!from) return "";
  return "a plain mount of a disk is unmounted without it after " + WallTimeText(*from) +
         " (driver-absent-limit)";
}

}  // namespace volumed
