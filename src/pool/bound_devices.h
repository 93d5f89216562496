// Whether the devices that a pool makes for its volumes show anywhere but in /dev. Private to the
// pool.
//
// A bind of a device's node holds nothing: the device can be taken away below it, and the bind then
// shows whatever gets its number next, which may be another pod's volume.
//
// Threads: any. Blocks: as ListMounts. Errors, not applied: FailedPrecondition, with the place, if
// one shows; those of ListMounts, and of Stat.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "os/kernel.h"

namespace volumed {

// That no node of a device ("/dev/loop3") is bound anywhere.
Status CheckNotBound(Kernel& kernel, const std::vector<std::string>& devices,
                     const CallOptions& call);

// That, and that none is mounted. A btrfs has a number of its own, and is not found by its device:
// whoever opens that for himself is told of it.
Status CheckNotShown(Kernel& kernel, const std::vector<std::string>& devices,
                     const CallOptions& call);

}  // namespace volumed
