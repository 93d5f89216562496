// FailureHistory: how an operation has failed, since when and how often.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "operation/volume_operations.h"

namespace volumed {

// The failures of one operation on one thing since it last succeeded. It is only shown: the times
// of the next tries are those of the operation layer.
struct FailureHistory {
  OperationFailure last;
  int64_t since_unix_ms = 0;  // of the first of these failures
  // How many tries have failed; at least 1 once NoteFailure() was called.
  uint64_t attempts = 0;
};

// Adds a failure. The history begins anew if it is nullopt, or if it is that of another operation.
// Threads: any. Blocks: never.
void NoteFailure(std::optional<FailureHistory>& history, const OperationFailure& failure,
                 const Clock& clock);

}  // namespace volumed
