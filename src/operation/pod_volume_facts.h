// What is known of a pod's volume before a call on it is made: the facts of its record, whether it
// is mounted or mapped. For the operations' own source files alone.
#pragma once

#include <string>

#include "operation/volume_record.h"
#include "operation/volume_record_keeper.h"
#include "operation/volume_requests.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never.

PodVolumeRecord FactsOf(const MountRequest& request, const VolumePlugin& plugin);
// Of a volume that is to be taken away: by its record, or else by the request.
PodVolumeRecord FactsOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper);
// What the calls of that operation have as CallOptions::domain.
std::string FaultDomainOf(const UnmountRequest& request, const VolumeRecordKeeper& keeper);

// FailedPrecondition, not applied, unless the device of that name is mounted, or set up; success
// for an empty name.
Status CheckDevice(const DeviceRecordKeeper& devices, const UniqueVolumeName& device);

}  // namespace volumed
