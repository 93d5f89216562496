// What comes next for the device of a volume that is attached before it is mounted: a pure function
// of what is known and wanted, with neither clock nor effect.
//
//   Detached -Attach-> Attached -MountDevice-> DeviceMounted -UnmountDevice-> Attached -Detach->
//
// What was found at start is mounted, or mounted once more, only when its plugin has said that it
// is attached; what is to leave needs no such answer, as unmount and detach say nothing where
// nothing is. A device that is found to be missing is left as it is while a pod has it: nothing is
// ever unmounted under a pod. Then it is unmounted and attached anew. Source: kubernetes
// pkg/controller/volume/attachdetach@v1.36.2 (what VolumesAreAttached denies is marked as detached
// and attached again) and the kubelet's
// pkg/kubelet/volumemanager/cache/actual_state_of_world.go@v1.36.2 (DeleteVolume refuses that while
// pods have it).
#pragma once

#include "volumemanager/actual_state_of_world.h"

namespace volumed {

enum class AttachStep { kNothing, kVerify, kAttach, kMount, kUnmount, kDetach, kForget };

struct AttachSituation {
  // Null: nothing is known of it. REQUIRES: no operation of it runs, and its record can be read.
  const ActualDevice* device = nullptr;
  bool wanted = false;     // by a pod
  bool may_begin = false;  // the record of such a pod is written
  bool used = false;       // a pod may have something of it
  bool may_leave = false;  // every source has delivered: absence means something
};

// Threads: any. Blocks: never.
AttachStep NextAttachStep(const AttachSituation& now);

}  // namespace volumed
