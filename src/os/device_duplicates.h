// Whether another device with the same filesystem UUID is mounted now (a clone or a snapshot).
//
// Threads: any. Blocks: see each.
#pragma once

#include <string>

#include "base/result.h"
#include "os/device_requests.h"

namespace volumed {

// The device and where it is mounted, for display; empty when there is none.
//
// btrfs: the kernel's own list, in sysfs. Blocks: never.
Result<std::string> FindMountedBtrfs(const DeviceIdentity& identity);
// Whether the kernel has the device in a mounted btrfs with the identity's UUID. Blocks: never.
bool IsInMountedBtrfs(const DeviceIdentity& identity);
// XFS: reads the superblock of each device that is mounted as XFS. Blocks: as these devices do.
// One that cannot be read is passed over.
Result<std::string> FindMountedXfs(const DeviceIdentity& identity);

}  // namespace volumed
