// What the operations on devices share: the facts of a device's record, and the question whether a
// pod may have any of the device.
#pragma once

#include <string>

#include "base/result.h"
#include "operation/volume_operations.h"
#include "operation/volume_record.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin.h"

namespace volumed {

// Threads: any. Blocks: never.

// What a call on the device records besides its state (RecordKeeper::BeginCall): names, place,
// fault domain and the volume as JSON.
DeviceRecord DeviceFactsOf(const UniqueVolumeName& device, const VolumePlugin& plugin,
                           const VolumeSpec& spec, const SafePath& device_mount_path);

// The CallOptions::domain of the calls that unmount a device. A device that no record knows has a
// domain of its own, "found:<unique name>", since it may hang with anything.
std::string FaultDomainOf(const UnmountDeviceRequest& request, const DeviceRecordKeeper& devices);

// Errors: FailedPrecondition, not applied, naming a pod that has the device by its record.
Status CheckNoPodHas(const VolumeRecordKeeper& volumes, const UniqueVolumeName& device);

}  // namespace volumed
