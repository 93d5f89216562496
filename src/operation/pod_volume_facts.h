// What is known of a pod's volume before a call on it is made: the facts of its record, and whether
// it is mounted or mapped. Only the operations' own source files include this.
#pragma once

#include <string>

#include "operation/volume_record.h"
#include "operation/volume_record_keeper.h"
#include "operation/volume_requests.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never.

PodVolumeRecord FactsOf(const MountRequest& request, const VolumePlugin& plugin);
// The facts of a volume that is to be taken away, from its record, or else from the request.
PodVolumeRecord FactsOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper);
// The CallOptions::domain of the calls of that operation.
std::string FaultDomainOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper);

// Errors: FailedPrecondition, not applied, unless the device of the volume is mounted or, with a
// map directory, set up there: for a volume at a target at a place that a CO gave, and for one of a
// pod at the plugin's own. A volume without a device is success.
Status CheckDevice(const DeviceRecordKeeper& devices, const MountRequest& request,
                   const SafePath* map_path = nullptr);

}  // namespace volumed
