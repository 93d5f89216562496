// Tells a pod that wants a volume for its fsGroup which other pods have, and which belongs to
// another group: what one of them gets is taken from the other.
// Source: kubernetes pkg/volume/local/local.go@v1.36.2 (SetUpAt), which does so of local volumes
// alone; pkg/kubelet/events/event.go@v1.36.2 (WarnAlreadyMountedVolume).
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/result.h"
#include "os/kernel.h"
#include "volumehost/volume_host.h"

namespace volumed {

struct GroupWish {
  SafePath shown;                   // a place at which the volume shows
  SafePath dir;                     // that of the pod, whether it is there yet or not
  std::optional<int64_t> fs_group;  // absent: there is nothing to tell
  PodUid pod;                       // which is told
  SpecName volume;
};

// Whether other pods have what is at `shown`. If so, and it belongs to another group than the one
// that is wished for, the pod gets the event AlreadyMountedVolume.
//
// Threads: any. Blocks: until the call's deadline, on the volume's filesystem. Errors: those of
// FindMountRefs and Stat, not applied.
Result<bool> WarnOfOtherGroup(VolumeHost& host, const GroupWish& wish, const CallOptions& call);

}  // namespace volumed
