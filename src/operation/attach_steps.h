// What other operations do about the attached volume of a device. For the operations' own source
// files alone; attach_operations.cc has it.
#pragma once

#include <string>

#include "operation/operation_parts.h"
#include "operation/step_runner.h"
#include "operation/volume_requests.h"

namespace volumed {

// The step of "mount_device" that waits for the device of an attached volume. `device_path` begins
// as the record has it; what the plugin answers is put there, and on record.
// Errors: Unimplemented, not applied, when the plugin attaches nothing; those of NewAttacher.
// `parts`, `request` and `device_path` outlive the step.
Result<Step> MakeWaitForAttachStep(const OperationParts& parts, VolumePlugin& plugin,
                                   const MountDeviceRequest& request, std::string& device_path);

// Whether nothing on this node uses the device of an attached volume any more: no pod by its
// record, no mount at its place, and nobody who has the device for himself (CheckDeviceLetGo).
// Errors: FailedPrecondition, not applied, naming who uses it; those of ListMounts.
Status CheckDeviceUnused(const OperationParts& parts, const DeviceRecord& device,
                         const CallOptions& call);

}  // namespace volumed
