#include "volumemanager/failure_history.h"

namespace volumed {

void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure,
                 const Clock& clock) {
  if (!history || history->last.operation != failure.operation) {
    history = FailureHistory{failure, clock.WallUnixMillis(), 0};
  }
  history->last = failure;
  ++history->attempts;
}

}  // namespace volumed
