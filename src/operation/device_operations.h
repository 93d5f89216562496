// The operations on the device of a volume, as lists of steps: it is mounted once for all pods of
// the node, and unmounted when no pod has the volume any more.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMountVolumeFunc, GenerateUnmountDeviceFunc).
#pragma once

#include <optional>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// The name is this program's: in kubelet the operation is a part of "volume_mount" and has no name.
inline constexpr const char* kMountDeviceOperation = "mount_device";
inline constexpr const char* kUnmountDeviceOperation = "unmount_device";
inline constexpr const char* kForgetDeviceOperation = "forget_device";  // this program's name

// The step of a mount or an attach that asks whether the device is, for somebody, what it is not
// to be here. Whoever wants it in another way may be let in.
inline constexpr const char* kCheckPlaceStep = "CheckPlace";

// Mounts the device of a volume once for all pods of the node; the device of a block volume is only
// set up (map_operations.h does that). These two operations exclude each other, and each mount or
// unmount of a pod's volume that names the device.
// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: those of CheckPlaceOfDevice (place_steps.h) for a place that a CO gave; Unimplemented,
// not applied, if the plugin mounts no devices; FailedPrecondition, not applied, if by its record
// the device is at another place, or may be, or if by a pod's record or by a mount without one
// somebody has it there, or in the other volumeMode: it has to be unmounted there first; those of
// the steps.
struct MountDevice : OperationOf<MountedDevice> {
  explicit MountDevice(MountDeviceRequest mount) : request(std::move(mount)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      MountedDevice& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<MountedDevice>& outcome) const;

  MountDeviceRequest request;
};

// REQUIRES: the caller has made sure that no pod has the volume.
// Errors: FailedPrecondition, not applied, while a pod's record or the mount table says that
// somebody has the volume, and if the device is at a place that a CO gave while the request has
// none, or the other way round; maybe applied if the device was unmounted, is to be detached by its
// plugin, and somebody still has it (if it is not to be detached, that is only logged); those of
// the steps.
struct UnmountDevice : OperationOf<Unit> {
  explicit UnmountDevice(UnmountDeviceRequest unmount) : request(std::move(unmount)) {}

  OperationKey key() const { return OperationKey(request.device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  UnmountDeviceRequest request;
};

// Forgets what the record of a volume that has ended says of its filesystem. Succeeds if there is
// no record. Errors: FailedPrecondition, not applied, if the device is mounted.
struct ForgetDevice : OperationOf<Unit> {
  explicit ForgetDevice(UniqueVolumeName of_device) : device(std::move(of_device)) {}

  OperationKey key() const { return OperationKey(device); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  UniqueVolumeName device;
};

}  // namespace volumed
