// The operations on block volumes, as lists of steps: a device is set up once for the node, given
// to pods as it is, and torn down when none of them has it any more. Used by PodVolumeOperations.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMapVolumeFunc, GenerateUnmapVolumeFunc, GenerateUnmapDeviceFunc),
// pkg/volume/util/util.go@v1.36.2 (MapBlockVolume, UnmapBlockVolume).
//
// Which device a volume is, is known once a pod's mapper has named it. It is identified then, held
// (blockmapper/device_holds.h) and recorded, before the first pod has its node; from then on every
// pod gets that device and no other, until the last one has left.
#pragma once

#include <optional>

#include "blockmapper/device_holds.h"
#include "operation/device_operations.h"
#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"

namespace volumed {

inline constexpr const char* kMapVolumeOperation = "map_volume";
inline constexpr const char* kUnmapVolumeOperation = "unmap_volume";
// Ours: in kubelet it is a part of "map_volume" and has no name.
inline constexpr const char* kMapDeviceOperation = "map_device";
inline constexpr const char* kUnmapDeviceOperation = "unmap_device";

// All outlive the call.
struct MapOperationParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  const OperationSettings& settings;
  DeviceRecordKeeper& devices;
  StorageGuard& storage;
  VolumeRecordKeeper& volumes;
  DeviceHolds& holds;
};

// All: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, when the plugin has no block volumes; those of the steps.
std::optional<OperationFailure> RunSetUpDevice(const DeviceOperationParts& parts,
                                               const MountDeviceRequest& request,
                                               MountedDevice& result, OperationProgress& progress);

// Errors: FailedPrecondition, not applied, for a device that is not set up, is no block device, or
// is another one than pods have already; those of the steps.
std::optional<OperationFailure> RunMapVolume(const MapOperationParts& parts,
                                             const MountRequest& request, MountedVolume& result,
                                             OperationProgress& progress);
std::optional<OperationFailure> RunUnmapVolume(const MapOperationParts& parts,
                                               const UnmountRequest& request,
                                               OperationProgress& progress);

// `facts`: what is known of the device. Errors: FailedPrecondition, not applied, while a pod's
// record says that it has something of the volume, or a pod's node is in the global map directory.
std::optional<OperationFailure> RunUnmapDevice(const DeviceOperationParts& parts,
                                               DeviceRecord facts, OperationProgress& progress);

}  // namespace volumed
