// Devices that the mount table shows, and no record: plugins whose places do not name their volumes
// say which they are, before anything is decided about them.
//
// Threads: any. Blocks: on plugins, until the timeout of each call. Errors: none; a plugin that
// cannot say it is logged, and its devices stay as their places tell.
#pragma once

#include <string>

#include "os/kernel.h"
#include "volumehost/kubelet_paths.h"
#include "volumemanager/found_at_start.h"
#include "volumemanager/reconstructor.h"

namespace volumed {

// Where the device is mounted, or where its device nodes are bound. Pure.
std::string DevicePlaceOf(const KubeletPaths::DeviceMount& device, const KubeletPaths& paths);

// Fills in `device_mounts` and `device_pods` by this mount table. Blocks: never.
void FindMountedDevices(const MountListing& listing, const KubeletPaths& paths,
                        FoundAtStart& found);

// Puts into `device_mounts` what plugins know of these devices. With all_directories, all plugins
// are asked, also for devices without a mount; else those alone of which a mount is on no record.
// REQUIRES: the records and the mount table are in `found`.
void AskPluginsForDevices(const FindParts& parts, const FindOptions& options, FoundAtStart& found);

}  // namespace volumed
