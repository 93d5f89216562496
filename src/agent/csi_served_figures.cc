#include "agent/csi_served_figures.h"

#include "agent/csi_figures.h"
#include "metrics/family_table.h"

namespace volumed {

void CsiServedFigures::CallAnswered(const CsiMethod& method, std::optional<Code> refused,
                                    Duration took) {
  families_.Observe(Family::kCsiServed, {driver_, method.path, GoCodeName(refused)}, took);
}

}  // namespace volumed
