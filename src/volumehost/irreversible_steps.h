// IrreversibleSteps: who has to be asked before data can be lost for good. Whoever formats a
// device, recycles a volume or deletes storage asks right before the effect, each time anew.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace volumed {

enum class IrreversibleStep { kFormat, kRecycle, kDelete };
// "mkfs", "recycle", "delete".
std::string_view IrreversibleStepName(IrreversibleStep step);

// Threads: any. Blocks: never.
class IrreversibleSteps {
 public:
  virtual ~IrreversibleSteps() = default;
  // `volume`: the name of the PersistentVolume; the unique volume name of an inline volume.
  // Errors: FailedPrecondition, not applied: the step is held back. The text says why, and what a
  // person has to do.
  virtual Status Admit(IrreversibleStep step, const std::string& volume) = 0;
  // The records may be older than the world, and no person has accepted all of them yet.
  virtual bool InDoubt() const = 0;
};

}  // namespace volumed
