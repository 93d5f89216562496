// OperationObserver: what the operation layer tells to whoever counts and measures.
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
  std::string plugin_name;  // "" where none is concerned
  // Kubelet's operation_name: "volume_mount", "volume_unmount", "unmount_device"; and
  // our own "mount_device" (a part of kubelet's "volume_mount") and "pod_remove".
  std::string operation;
  Duration elapsed{};
  std::optional<OperationFailure> failure;
};

// Blocks: never.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  // Threads: the control thread. Before the operation's own completion is called.
  virtual void OperationFinished(const FinishedOperation& finished) = 0;
  // A volume's state was assigned and is as durable as it has to be. Threads: any.
  virtual void StateAssigned(const OperationKey&, VolumeState, bool /*uncertain*/) {}
};

}  // namespace volumed
