// The operations that give block volumes to pods, as lists of steps: a device that is set up for
// the node (map_device_operations.h) is given to pods as it is. Source: kubernetes
// pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2 (GenerateMapVolumeFunc,
// GenerateUnmapVolumeFunc), pkg/volume/util/util.go@v1.36.2 (MapBlockVolume, UnmapBlockVolume).
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

// Of each Run: Threads: one at a time per device. Blocks: until the steps' deadlines and the store.

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

}  // namespace volumed
