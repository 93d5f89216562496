// DriverLanes: answers for the lanes of CSI drivers by the table of drivers, and for all others by
// the kernel.
#pragma once

#include <string>
#include <vector>

#include "csi/csi_debts.h"
#include "csi/csi_drivers.h"
#include "os/fault_domain.h"

namespace volumed {

// Threads: any. Blocks: as the wrapped one; never for a driver.
class DriverLanes final : public FaultDomains {
 public:
  // All outlive this object.
  // The drivers that may be done without are those that may be owed; null: none may.
  DriverLanes(FaultDomains& kernel, const CsiDrivers& drivers, const CsiDebts* debts = nullptr)
      : kernel_(kernel), drivers_(drivers), debts_(debts) {}

  FaultDomain Locate(const std::string& domain) override;
  // How wide a driver's lane is, the driver says (CsiDriver): a few at first, one after a silence,
  // and one more for each call that it has answered. The lane of a driver that was never seen here
  // is closed. A driver that may be done without keeps nothing from being taken away.
  LaneHealth HealthOf(const std::string& lane) const override;
  std::string WhyClosed(const std::string& lane) const override;
  std::string WhenTakenAwayWithout(const std::string& lane) const override;
  std::vector<KnownMount> MountsAround(const std::string& directory) const override {
    return kernel_.MountsAround(directory);
  }

 private:
  FaultDomains& kernel_;
  const CsiDrivers& drivers_;
  const CsiDebts* const debts_;
};

}  // namespace volumed
