// Decides the next step for a device that is attached before it is mounted. It is a pure function
// of what is known and wanted, with neither clock nor effect.
//
//   Detached -Attach-> Attached -MountDevice-> DeviceMounted -UnmountDevice-> Attached -Detach->
//
// A device that was found at the start is mounted, or mounted again, only when its plugin has said
// that it is attached. A device that is to leave needs no such answer: unmount and detach have no
// effect if the device is not there. A device that turns out to be missing is left as it is while a
// pod has it, since nothing is ever unmounted under a pod; after that it is unmounted and attached
// again. Source: kubernetes pkg/controller/volume/attachdetach@v1.36.2 (what VolumesAreAttached
// denies is marked as detached and attached again) and the kubelet's
// pkg/kubelet/volumemanager/cache/actual_state_of_world.go@v1.36.2 (DeleteVolume refuses that while
// pods have it).
#pragma once

#include "volumemanager/actual_state_of_world.h"

namespace volumed {

// kVerify: the plugin has to say first whether the device is attached. kForget: nothing of the
// device is on the node, and it need not be known any more.
enum class AttachStep { kNothing, kVerify, kAttach, kMount, kUnmount, kDetach, kForget };

struct AttachSituation {
  // Null if the device is not known. REQUIRES: no operation on it runs, and its record can be read.
  const ActualDevice* device = nullptr;
  bool wanted = false;     // by a pod
  bool may_begin = false;  // the record of such a pod is written
  bool used = false;       // a pod may have some of it
  bool may_leave = false;  // every source has delivered, so absence means something
};

// Threads: any. Blocks: never. Errors: none; kNothing also means that an event has to come first.
AttachStep NextAttachStep(const AttachSituation& now);

}  // namespace volumed
