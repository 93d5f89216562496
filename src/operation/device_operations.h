// The operations on the device of a volume, as lists of steps: mounted once for all pods of the
// node, and unmounted when none of them has the volume any more. Used by PodVolumeOperations.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMountVolumeFunc, GenerateUnmountDeviceFunc).
#pragma once

#include <optional>

#include "base/log.h"
#include "blockmapper/device_holds.h"
#include "operation/operation_executor.h"
#include "operation/operation_settings.h"
#include "operation/storage_guard.h"
#include "operation/volume_operations.h"
#include "operation/volume_record_keeper.h"
#include "pluginmgr/volume_plugin_mgr.h"
#include "volumehost/volume_host.h"

namespace volumed {

// Ours: in kubelet it is a part of "volume_mount" and has no name.
inline constexpr const char* kMountDeviceOperation = "mount_device";
inline constexpr const char* kUnmountDeviceOperation = "unmount_device";
inline constexpr const char* kForgetDeviceOperation = "forget_device";  // ours

// All outlive the call.
struct DeviceOperationParts {
  VolumePluginMgr& plugins;
  VolumeHost& host;
  const OperationSettings& settings;
  DeviceRecordKeeper& devices;
  StorageGuard& storage;
  const VolumeRecordKeeper& volumes;
  DeviceHolds& holds;
  Logger& logger;
};

// Of a block volume: RunSetUpDevice and RunUnmapDevice (map_operations.h) do it.
// Threads: one at a time per device. Blocks: until the steps' deadlines and the store.
// Errors: Unimplemented, not applied, when the plugin mounts no devices; those of the steps.
std::optional<OperationFailure> RunMountDevice(const DeviceOperationParts& parts,
                                               const MountDeviceRequest& request,
                                               MountedDevice& result, OperationProgress& progress);

// Errors: FailedPrecondition, not applied, while a pod's record, or the mount table, says that
// somebody has the volume; maybe applied, when it is unmounted, and its plugin is to detach a
// device that somebody still has (where nothing is detached, that is a line in the log); those of
// the steps.
std::optional<OperationFailure> RunUnmountDevice(const DeviceOperationParts& parts,
                                                 const UnmountDeviceRequest& request,
                                                 OperationProgress& progress);

}  // namespace volumed
