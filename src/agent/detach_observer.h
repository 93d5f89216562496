// DetachObserver: hears of operations for others, and says when a volume was detached.
#pragma once

#include <functional>
#include <utility>

#include "operation/attach_operations.h"
#include "operation/operation_observer.h"

namespace volumed {

// Threads and blocking: as OperationObserver.
class DetachObserver final : public OperationObserver {
 public:
  // `next` outlives this object and is told everything. `detached` is called on the control thread.
  DetachObserver(OperationObserver& next, std::function<void()> detached)
      : next_(next), detached_(std::move(detached)) {}

  void OperationFinished(const FinishedOperation& finished) override {
    next_.OperationFinished(finished);
    if (finished.operation == kDetachOperation && !finished.failure) detached_();
  }
  void StateAssigned(const OperationKey& key, VolumeState state, bool uncertain) override {
    next_.StateAssigned(key, state, uncertain);
  }

 private:
  OperationObserver& next_;
  const std::function<void()> detached_;
};

}  // namespace volumed
