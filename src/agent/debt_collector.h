// DebtCollector: lets operations do without a driver once it is absent for too long, and has what
// it is owed made up for when it is there again (csi/csi_debts.h).
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/alive_guard.h"
#include "base/scheduler.h"
#include "csi/csi_context.h"
#include "csi/csi_debts.h"
#include "csi/csi_drivers.h"
#include "operation/volume_operations.h"

namespace volumed {

// Threads: control. Blocks: never.
class DebtCollector {
 public:
  // All that they refer to outlives this object, and the operations.
  struct Parts {
    Scheduler& scheduler;
    const CsiContext& context;  // with debts
    VolumeOperations& operations;
    // A driver may be done without from now on, or not any more.
    std::function<void()> lanes_changed;
    // The driver was paid what it was owed about a volume, for which others may have waited. May be
    // empty.
    std::function<void(const std::string& driver)> paid = {};
  };
  explicit DebtCollector(Parts parts);
  ~DebtCollector();
  DebtCollector(const DebtCollector&) = delete;
  DebtCollector& operator=(const DebtCollector&) = delete;

  // What earlier runs owe is known, and their drivers are.
  void Start();
  void Happened(const std::string& driver);
  // driver-absent-limit may be another one.
  void SettingsChanged();

 private:
  void Watch(const std::string& driver);
  void Deliver(const CsiVolumeId& volume);
  // Nothing happens if the driver is not there: then its return is the event.
  void DeliverAfter(const CsiVolumeId& volume, Duration delay);
  bool IsConnected(const std::string& driver) const;

  const Parts parts_;
  std::map<std::string, TimerId> watches_;  // by driver
  AliveGuard alive_;
};

}  // namespace volumed
