// The event for a pod of whose volumes some cannot even be tried, because of the way they are
// written.
// Source: kubernetes pkg/kubelet/volumemanager/volume_manager.go@v1.36.2 (WaitForAttachAndMount),
// pkg/kubelet/kubelet.go@v1.36.2 (SyncPod), which emits it; not after a mere time-out.
#pragma once

#include <optional>
#include <string>

#include "volumemanager/actual_state_of_world.h"
#include "volumemanager/desired_state_of_world.h"

namespace volumed {

// Source: kubernetes pkg/kubelet/events/event.go@v1.36.2 (FailedMountVolume).
inline constexpr const char* kFailedMount = "FailedMount";

// "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[], failed to
// process volumes=[a]: ..."; nullopt if every volume can be tried.
// Threads: the control thread. Blocks: never.
std::optional<std::string> FailedMountText(const WantedPod& wanted, const ActualPod& actual);

}  // namespace volumed
