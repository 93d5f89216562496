#include "volumehost/irreversible_steps.h"

namespace volumed {

std::string_view IrreversibleStepName(IrreversibleStep step) {
  switch (step) {
    case IrreversibleStep::kFormat:
      return "mkfs";
    case IrreversibleStep::kRecycle:
      return "recycle";
    case IrreversibleStep::kDelete:
      return "delete";
    case IrreversibleStep::kProvision:
      return "provision";
  }
  return "unknown";
}

}  // namespace volumed
