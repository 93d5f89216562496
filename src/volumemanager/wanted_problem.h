// WantedProblem: a part of a pod that cannot be had as it is written; the rest of the pod goes on.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "operation/operation.h"

namespace volumed {

// The step of a volume that its node affinity keeps from this node.
inline constexpr char kCheckNodeAffinityStep[] = "CheckNodeAffinity";

// This is a value. A problem whose error has the code Unavailable passes by itself, and is no
// failure yet.
struct WantedProblem {
  std::string step;  // "FindPlugin", "ExpandSubPath", "CheckVolumeMounts"
  Error error;
  std::string who_must_act = {};  // "": the owner of the pod
  // The operation that is to end it; if that waits for its driver, this is what there is to say.
  std::optional<OperationKey> operation = std::nullopt;
  uint64_t attempts = 0;  // of that operation that have failed
};

}  // namespace volumed
