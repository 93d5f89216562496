// What the operations on a device (device_operations.h) do if its volume is a block volume: the
// device is set up once for the node, before pods get it as it is (map_operations.h), and torn down
// when no pod has it any more. Only the operations' own source files include this. Source:
// kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMapVolumeFunc, GenerateUnmapDeviceFunc).
#pragma once

#include <optional>

#include "operation/operation.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"

namespace volumed {

// The name is this program's: in kubelet the operation is a part of "map_volume" and has no name.
inline constexpr const char* kMapDeviceOperation = "map_device";
inline constexpr const char* kUnmapDeviceOperation = "unmap_device";

// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, if the plugin has no block volumes; as MountDevice has it of
// a device that is at another place; those of the steps.
std::optional<OperationFailure> RunSetUpDevice(const OperationParts& parts,
                                               const MountDeviceRequest& request,
                                               OperationProgress& progress, MountedDevice& result);

// `facts` are what is known of the device. Errors: FailedPrecondition, not applied, while a pod's
// record says that it has some of the volume, or a pod's device node is in the global map
// directory.
std::optional<OperationFailure> RunUnmapDevice(const OperationParts& parts,
                                               const DeviceRecord& facts,
                                               OperationProgress& progress);

}  // namespace volumed
