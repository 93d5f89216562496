// The storage of a volume as its driver names it (StorageName::driver): as long as a device of the
// node is attached or mounted, or may be, nobody deletes the volume. The device itself, once the
// node shows it, has an identity and a holder of its own (storage_steps.h). Only the operations'
// own source files include this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operation/operation_parts.h"
#include "operation/step_runner.h"
#include "operation/storage_guard.h"
#include "operation/volume_record.h"

namespace volumed {

// Threads: any. Blocks: never, unless the comment says otherwise.

// The holder: "driver/<unique name>".
std::string DriverStorageId(const UniqueVolumeName& device);

// What the device has by its record, which outlives a reboot: a volume stays attached, and a driver
// keeps what it has staged. Nullopt if nothing of it is there, or no driver names it.
std::optional<KnownStorage> DriverStorageOf(const DeviceRecord& record);

// Adds the step "ReserveStorage", which takes the storage for the device; nothing if no driver
// names it. Its error, not applied, says who has it: FailedPrecondition.
void AddReserveDriverStorage(const OperationParts& parts, const UniqueVolumeName& device,
                             const VolumeSpec& spec, std::vector<Step>& steps);

// What the device has had is released once it is unmounted; the name that its driver has for it
// only if it was not attached, since else a detach follows. A failure is one of the operation,
// whose effect is done.
std::optional<OperationFailure> ReleaseDeviceStorage(const OperationParts& parts,
                                                     const DeviceRecord& facts,
                                                     const char* operation);

// After an operation that has failed: releases the storage if its record says that nothing of the
// device is there.
void ReleaseDriverStorageIfGone(const OperationParts& parts, const UniqueVolumeName& device);

}  // namespace volumed
