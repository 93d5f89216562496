// FailureHistory: how an operation has failed, since when and how often.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

// ProblemView::who_must_act, if the next try comes by itself, and if the node or its settings have
// to be put in order.
inline constexpr const char* kNobodyMustAct = "nobody: retried";
inline constexpr const char* kAdministratorMustAct = "an administrator";
// If a driver is away, or silent, or has said what is not so: then it stands well, and its calls
// alone show that.
inline constexpr const char* kWhoeverRunsTheDriver =
    "whoever runs the driver: `volumectl get drivers` tells how it stands, `volumectl csi NAME "
    "--trace` what it has answered";

// Who must act on what has failed without fault of a pod's manifest. A failure that nobody has
// explained passes by itself at first; after several tries it hardly does. Threads: any. Blocks:
// never.
std::string WhoActsForNode(const FailureHistory& failure);
// Who must act on what an operation waits for before it begins. Pure; threads: any.
std::string WhoEndsTheWait(const LaneWait& wait);
// Whether whoever runs the node has to act, whatever the code says and whoever waits: the fault of
// a disk, a mount of which no record tells. Pure; threads: any.
bool IsForNode(const Error& error);

}  // namespace volumed
