// The operations on the device of a volume, as lists of steps: mounted once for all pods of the
// node, and unmounted when none of them has the volume any more.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMountVolumeFunc, GenerateUnmountDeviceFunc).
#pragma once

#include <optional>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// Ours: in kubelet it is a part of "volume_mount" and has no name.
inline constexpr const char* kMountDeviceOperation = "mount_device";
inline constexpr const char* kUnmountDeviceOperation = "unmount_device";
inline constexpr const char* kForgetDeviceOperation = "forget_device";  // ours

// The device of a volume, mounted once for all pods of the node; of a block volume, set up, and no
// more than that (map_operations.h does it). Neither runs beside the other, nor beside a mount or
// unmount of a pod's volume that names the device.
// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, when the plugin mounts no devices; those of the steps.
struct MountDevice : OperationOf<MountedDevice> {
  explicit MountDevice(MountDeviceRequest mount) : request(std::move(mount)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      MountedDevice& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<MountedDevice>& outcome) const;

  MountDeviceRequest request;
};

// The caller has made sure that no pod has the volume.
// Errors: FailedPrecondition, not applied, while a pod's record, or the mount table, says that
// somebody has the volume; maybe applied, when it is unmounted, and its plugin is to detach a
// device that somebody still has (where nothing is detached, that is a line in the log); those of
// the steps.
struct UnmountDevice : OperationOf<Unit> {
  explicit UnmountDevice(UnmountDeviceRequest unmount) : request(std::move(unmount)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  UnmountDeviceRequest request;
};

// The volume is no more, and what its record says of its filesystem may go. Success when there is
// no record. Errors: FailedPrecondition, for a device that is mounted.
struct ForgetDevice : OperationOf<Unit> {
  explicit ForgetDevice(UniqueVolumeName of_device) : device(std::move(of_device)) {}

  OperationKey key() const { return OperationKey(device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  UniqueVolumeName device;
};

}  // namespace volumed
