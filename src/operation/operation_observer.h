// OperationObserver: what the operation layer reports for metrics.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"

namespace volumed {

// An operation that has ended, whatever the result. One that was given up while it waited, or that
// was left out of a group, is not reported.
struct FinishedOperation {
  OperationKey key;
  std::string plugin_name;  // as in OperationTraits; "" if no plugin is concerned
  // Kubelet's operation_name, as "volume_mount" or "volume_unmount"; or this program's own for what
  // has none there, as "mount_device" (a part of kubelet's "volume_mount") and "pod_remove".
  std::string operation;
  // This includes the time for which it waited for its lane.
  Duration elapsed{};
  std::optional<OperationFailure> failure;
  bool migrated = false;  // as in OperationTraits
};

// Blocks: never.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  // Called before the operation's own completion. Threads: the control thread.
  virtual void OperationFinished(const FinishedOperation& finished) = 0;
  // The state of a volume was assigned, and is as durable as it has to be. Threads: any.
  virtual void StateAssigned(const OperationKey&, VolumeState, bool /*uncertain*/) {}
};

}  // namespace volumed
