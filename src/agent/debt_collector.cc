#include "agent/debt_collector.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace volumed {
namespace {

// While an operation is at the volume; that one may make the calls itself.
constexpr Duration kAfterOperation = std::chrono::seconds(1);
// The limit has certainly passed when the timer runs.
constexpr Duration kPastLimit = std::chrono::milliseconds(1);

}  // namespace

DebtCollector::DebtCollector(Parts parts) : parts_(std::move(parts)) {
  parts_.context.parts.debts->SetListener(
      [&scheduler = parts_.scheduler, watch = alive_.watch(), this](const CsiVolumeId& volume) {
        // The driver may have come while it was being done without.
        scheduler.Post([watch, this, volume] {
          if (watch.alive() && IsConnected(volume.driver)) Deliver(volume);
        });
      });
}

DebtCollector::~DebtCollector() { parts_.context.parts.debts->SetListener({}); }

void DebtCollector::Start() {
  for (const DriverView& driver : parts_.context.parts.drivers.List()) Happened(driver.facts.name);
}

void DebtCollector::Happened(const std::string& driver) {
  Watch(driver);
  if (!IsConnected(driver)) return;
  for (const CsiVolumeId& volume : parts_.context.parts.debts->VolumesOf(driver)) Deliver(volume);
}

void DebtCollector::SettingsChanged() {
  for (const DriverView& driver : parts_.context.parts.drivers.List()) Watch(driver.facts.name);
  parts_.lanes_changed();
}

bool DebtCollector::IsConnected(const std::string& driver) const {
  const std::shared_ptr<CsiDriver> found = parts_.context.parts.drivers.Find(driver);
  return found != nullptr && found->connected();
}

// One timer for each driver that is absent, however often it comes and goes.
void DebtCollector::Watch(const std::string& driver) {
  if (const auto old = watches_.extract(driver)) parts_.scheduler.Cancel(old.mapped());
  const Duration limit = parts_.context.parts.settings.Get().absent_limit;
  const std::shared_ptr<CsiDriver> found = parts_.context.parts.drivers.Find(driver);
  if (limit <= Duration::zero() || found == nullptr) return;
  const std::optional<TimePoint> since = found->health().absent_since;
  if (!since) return;
  const Duration left = limit - (parts_.scheduler.clock().Now() - *since);
  watches_[driver] = parts_.scheduler.PostAfter(std::max(left, Duration::zero()) + kPastLimit,
                                                alive_.Guarded([this, driver] {
                                                  watches_.erase(driver);
                                                  parts_.lanes_changed();
                                                }));
}

void DebtCollector::Deliver(const CsiVolumeId& volume) {
  const Result<std::vector<CsiDebt>> owed = parts_.context.parts.debts->Of(volume);
  if (!owed.ok() || owed->empty() || !IsConnected(volume.driver)) return;
  const DeliverDebts deliver(parts_.context, volume);
  const StartResult started = parts_.operations.Start(
      deliver, [this, watch = alive_.watch(), volume](const OperationOutcome<Unit>& outcome) {
        if (!watch.alive()) return;
        if (outcome.failure) return DeliverAfter(volume, Duration::zero());
        if (parts_.paid) parts_.paid(volume.driver);
      });
  if (started == StartResult::kPending) return DeliverAfter(volume, kAfterOperation);
  if (started == StartResult::kBackoff) DeliverAfter(volume, Duration::zero());
}

void DebtCollector::DeliverAfter(const CsiVolumeId& volume, Duration delay) {
  const TimePoint now = parts_.scheduler.clock().Now();
  const DeliverDebts deliver(parts_.context, volume);
  const TimePoint next = parts_.operations.NextTry(deliver.key()).value_or(now + kAfterOperation);
  parts_.scheduler.PostAfter(std::max(delay, next - now),
                             alive_.Guarded([this, volume] { Deliver(volume); }));
}

}  // namespace volumed
