#include "csi/csi_attach_limits.h"

#include <algorithm>
#include <utility>

#include "kube/digest.h"
#include "kube/objects.h"

namespace volumed {
namespace {

// Source: attach_limit.go@v1.36.2 (CSIAttachLimitPrefix, ResourceNameLengthLimit).
constexpr char kPrefix[] = "attachable-volumes-csi-";
constexpr size_t kLongestKey = 63;
constexpr size_t kKeptOfDriver = 23;
constexpr size_t kDigestDigits = 16;

Duration PeriodOf(const KubeletHost::CsiDriverPtr& driver) {
  if (driver == nullptr || !driver->node_allocatable_update_period_seconds) return Duration::zero();
  // Kubernetes takes none below 10; zero would be no pause at all.
  const int64_t seconds = std::max<int64_t>(1, *driver->node_allocatable_update_period_seconds);
  return std::chrono::seconds(seconds);
}

}  // namespace

std::string CsiAttachLimitKey(const std::string& driver) {
  const std::string key = kPrefix + driver;
  // As in Kubernetes, a key of exactly the longest length is cut, too.
  if (key.size() < kLongestKey) return key;
  return kPrefix + driver.substr(0, kKeptOfDriver) + Sha1Hex(driver).substr(0, kDigestDigits);
}

std::string CsiVolumeLimitKey(const VolumeSpec& spec) {
  const auto* source = spec.SourceAs<CsiPersistentVolumeSource>();
  return source == nullptr ? "" : CsiAttachLimitKey(source->driver);
}

std::map<std::string, int64_t> CsiVolumeLimits(const CsiDrivers& drivers) {
  std::map<std::string, int64_t> limits;
  for (const DriverView& driver : drivers.List()) {
    const int64_t most = driver.facts.max_volumes;
    if (most > 0) limits[CsiAttachLimitKey(driver.facts.name)] = most;
  }
  return limits;
}

CsiAllocatableTicker::CsiAllocatableTicker(Scheduler& scheduler, CsiDrivers& drivers,
                                           KubeletHost& kubelet)
    : scheduler_(scheduler), drivers_(drivers) {
  // A listener cannot be taken back, and hears of a change on whichever thread made it.
  kubelet.AddCsiDriverListener([&scheduler = scheduler_, this, watch = alive_.watch()](
                                   const std::string& name, KubeletHost::CsiDriverPtr driver) {
    scheduler.Post([this, watch, name, period = PeriodOf(driver)] {
      if (watch.alive()) Set(name, period);
    });
  });
  for (const KubeletHost::CsiDriverPtr& driver : kubelet.ListCsiDrivers()) {
    Set(driver->metadata.name, PeriodOf(driver));
  }
}

CsiAllocatableTicker::~CsiAllocatableTicker() {
  for (const auto& [driver, ticking] : ticking_) scheduler_.Cancel(ticking.timer);
}

void CsiAllocatableTicker::Set(const std::string& driver, Duration period) {
  const auto found = ticking_.find(driver);
  if (found != ticking_.end()) {
    // Any other change of the object leaves the rhythm as it is.
    if (found->second.period == period) return;
    scheduler_.Cancel(found->second.timer);
    ticking_.erase(found);
  }
  if (period == Duration::zero()) return;
  ticking_[driver].period = period;
  Arm(driver);
}

void CsiAllocatableTicker::Arm(const std::string& driver) {
  Ticking& ticking = ticking_.at(driver);
  ticking.timer = scheduler_.PostAfter(ticking.period, alive_.Guarded([this, driver] {
    drivers_.Refresh(driver);
    Arm(driver);
  }));
}

}  // namespace volumed
