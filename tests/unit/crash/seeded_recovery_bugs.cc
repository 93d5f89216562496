// Mistakes that do harm only while the records are older than the disks.
#include <set>
#include <string>

#include "unit/crash/crash_scenarios.h"
#include "unit/crash/seeded_bugs.h"

namespace volumed {
namespace {

SeededBug NotHeld(const std::string& name, IrreversibleStep step) {
  SeededBug bug;
  bug.name = name;
  bug.steps_not_held = {step};
  return bug;
}

}  // namespace

std::vector<SeededBugCase> SeededRecoveryBugs() {
  return {
      {NotHeld("mkfs not held back in a recovery", IrreversibleStep::kFormat), DeviceScenario()},
      {NotHeld("delete not held back in a recovery", IrreversibleStep::kDelete),
       ReturnedClaimScenario()},
      {NotHeld("DeleteVolume of a CSI driver not held back in a recovery",
               IrreversibleStep::kDelete),
       CsiReturnedClaimScenario()}};
}

}  // namespace volumed
