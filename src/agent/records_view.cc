#include "agent/records_view.h"

namespace volumed {

void EncodePendingStep(const PendingStep& step, v1::PendingStep* out) {
  out->set_step(std::string(IrreversibleStepName(step.step)));
  out->set_volume(step.volume);
  out->set_since_unix_ms(step.since_unix_ms);
}

v1::RecordsStatus DescribeRecords(const RecoveryGate& gate) {
  const RecordsRecovery recovery = gate.recovery();
  v1::RecordsStatus status;
  status.set_recovery(recovery.active);
  status.set_reason(recovery.reason);
  status.set_since_unix_ms(recovery.since_unix_ms);
  status.set_number(recovery.number);
  for (const std::string& volume : recovery.accepted) status.add_accepted(volume);
  for (const PendingStep& step : gate.Pending()) EncodePendingStep(step, status.add_held());
  status.set_not_compared(recovery.not_compared);
  status.set_number_problem(recovery.number_problem);
  if (recovery.active) status.set_mounts(gate.MountsText());
  return status;
}

}  // namespace volumed
