// OperationObserver: what the operation layer reports for metrics.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "operation/volume_operations.h"
#include "operation/volume_state.h"

namespace volumed {

struct FinishedOperation {
  OperationKey key;
  std::string plugin_name;  // "" if no plugin is concerned
  // Kubelet's operation_name: "volume_mount", "volume_unmount", "unmount_device"; or this program's
  // own "mount_device" (a part of kubelet's "volume_mount") and "pod_remove".
  std::string operation;
  Duration elapsed{};
  std::optional<OperationFailure> failure;
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
