// The operations on block volumes, as lists of steps: a device is set up once for the node, given
// to pods as it is, and torn down when no pod has it any more.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMapVolumeFunc, GenerateUnmapVolumeFunc, GenerateUnmapDeviceFunc),
// pkg/volume/util/util.go@v1.36.2 (MapBlockVolume, UnmapBlockVolume).
//
// Only a pod's mapper can tell which device a volume is. The device is then identified, held
// (blockmapper/device_pins.h) and recorded, before the first pod gets its device node; from then
// on every pod gets that device and no other, until the last pod has left.
#pragma once

#include <optional>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_record.h"
#include "operation/volume_requests.h"

namespace volumed {

inline constexpr const char* kMapVolumeOperation = "map_volume";
inline constexpr const char* kUnmapVolumeOperation = "unmap_volume";
// The name is this program's: in kubelet the operation is a part of "map_volume" and has no name.
inline constexpr const char* kMapDeviceOperation = "map_device";
inline constexpr const char* kUnmapDeviceOperation = "unmap_device";

// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

// Errors: Unimplemented, not applied, if the plugin has no block volumes; as MountDevice has it of
// a device that is at another place; those of the steps.
std::optional<OperationFailure> RunSetUpDevice(const OperationParts& parts,
                                               const MountDeviceRequest& request,
                                               OperationProgress& progress, MountedDevice& result);

// Errors: FailedPrecondition, not applied, if the device is not set up, is not a block device, or
// differs from the one that pods already have; those of the steps.
struct MapVolume : OperationOf<MountedVolume> {
  // Sub-paths and nested mount points have no meaning here. REQUIRES: the device is set up
  // (MountDevice).
  explicit MapVolume(MountRequest map) : request(std::move(map)) {}

  OperationKey key() const { return request.key(); }
  // It uses its device exclusively.
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      MountedVolume& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<MountedVolume>& outcome) const;

  MountRequest request;
};

// Takes the device from a pod; the node keeps it set up. Errors: Unimplemented, not applied, if the
// plugin has no block volumes; those of the steps.
struct UnmapVolume : OperationOf<Unit> {
  explicit UnmapVolume(UnmountRequest unmap) : request(std::move(unmap)) {}

  OperationKey key() const { return request.key(); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  UnmountRequest request;
};

// `facts` are what is known of the device. Errors: FailedPrecondition, not applied, while a pod's
// record says that it has some of the volume, or a pod's device node is in the global map
// directory.
std::optional<OperationFailure> RunUnmapDevice(const OperationParts& parts,
                                               const DeviceRecord& facts,
                                               OperationProgress& progress);

}  // namespace volumed
