// IrreversibleSteps: asked before data can be lost for good, or from sight. Code that formats a
// device, recycles a volume, deletes storage or makes a new volume for a claim asks right before
// the effect, each time again.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

// The steps after which data is gone, whatever the records say; and the one after which a claim has
// an empty volume, though it may have had one of which the records that were lost knew.
enum class IrreversibleStep { kFormat, kRecycle, kDelete, kProvision };
// "mkfs", "recycle", "delete", "provision".
std::string_view IrreversibleStepName(IrreversibleStep step);

// Threads: any. Blocks: never.
class IrreversibleSteps {
 public:
  virtual ~IrreversibleSteps() = default;
  // `volume` is the name of the PersistentVolume, or the unique volume name of an inline volume.
  // Errors: FailedPrecondition, not applied: the step is held back. The text says why, and what a
  // person has to do.
  virtual Status Admit(IrreversibleStep step, const std::string& volume) = 0;
  // Whether the records may be older than the disks, and no person has accepted all of them yet.
  // What Admit() would say of one volume may be otherwise.
  virtual bool InDoubt() const = 0;
};

}  // namespace volumed
