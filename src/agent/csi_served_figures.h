// CsiServedFigures: what is counted of the calls that the agent has as a CSI driver.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "csidriver/csi_call.h"
#include "metrics/exported_families.h"

namespace volumed {

// Threads: any. Blocks: never.
class CsiServedFigures final : public CsiServedObserver {
 public:
  // The families outlive this object. `driver` is the agent's own name as a driver.
  CsiServedFigures(ExportedFamilies& families, std::string driver)
      : families_(families), driver_(std::move(driver)) {}

  // Has the labels of whatever is made with csi-lib-utils, so that the boards for sidecars and
  // other drivers show this one.
  void CallAnswered(const CsiMethod& method, std::optional<Code> refused, Duration took) override;

 private:
  ExportedFamilies& families_;
  const std::string driver_;
};

}  // namespace volumed
