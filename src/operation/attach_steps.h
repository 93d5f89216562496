// What other operations need to know about the attached volume of a device. Only the operations'
// own source files include this; it is implemented in attach_operations.cc.
#pragma once

#include <string>
#include <vector>

#include "operation/operation_parts.h"
#include "operation/step_runner.h"
#include "operation/volume_requests.h"

namespace volumed {

// Adds the step of "mount_device" that waits for the device of an attached volume; none for any
// other volume, nor for one that is mounted as_recorded (as_recorded.h). `device_path` starts with
// the recorded path of an attached volume; the step puts the plugin's answer there and on record.
// Errors: Unimplemented, not applied, if the plugin attaches nothing; those of NewAttacher.
// `parts`, `request` and `device_path` outlive the step.
Status AddWaitForAttach(const OperationParts& parts, VolumePlugin& plugin,
                        const MountDeviceRequest& request, bool as_recorded,
                        std::string& device_path, std::vector<Step>& steps);

// Checks that nothing on this node uses the device of an attached volume any more: no pod by its
// record, no mount at its place, none of the volume that is on no record, and nobody who has the
// device exclusively (CheckDeviceLetGo).
// Errors: FailedPrecondition, not applied, naming who uses it; those of ListMounts.
Status CheckDeviceUnused(const OperationParts& parts, const DeviceRecord& device,
                         const CallOptions& call);

}  // namespace volumed
