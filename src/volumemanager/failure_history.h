// FailureHistory: how an operation has failed, since when and how often.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "operation/volume_operations.h"

namespace volumed {

// The failures of one thing since it last succeeded.
struct FailureHistory {
  OperationFailure last;
  int64_t since_unix_ms = 0;  // of the first of these failures
  uint64_t attempts = 0;
};

// One more failure; the history begins anew with another operation. Threads: any. Blocks: never.
void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure,
                 const Clock& clock);

}  // namespace volumed
