// The operation on the directories of a pod that has no volume of its own to make them for.
#pragma once

#include <optional>
#include <utility>

#include "base/ids.h"
#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// Makes the directories of the pod; it is idempotent. Threads: one at a time per pod. Blocks: until
// they are made, or the deadline passes. Errors: those of the kernel.
struct MakeDirectoriesOfPod : OperationOf<Unit> {
  explicit MakeDirectoriesOfPod(PodUid of_pod) : pod(std::move(of_pod)) {}

  OperationKey key() const { return {pod, SpecName()}; }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  PodUid pod;
};

}  // namespace volumed
