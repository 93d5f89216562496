// The operations on volumes that are directories, of pods and of others that are given one: a
// volume is set up at its target, brought up to date, and torn down; in the end the pod's own
// directories and its record are removed. Block volumes are in map_operations.h; group_operations.h
// makes several volumes at once.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateMountVolumeFunc, GenerateUnmountVolumeFunc).
//
// Of each Run: Threads: one at a time per key. Blocks: until the steps' deadlines and the store.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// Sets a volume up, or brings the content of one up to date. Errors: FailedPrecondition, not
// applied, if its device is not mounted, if something is mounted over the pod's directories, or if
// the StorageGuard refuses its storage; those of CheckTarget (place_steps.h) for a place that a CO
// gave; those of the plugin and of the steps. A failure is an event of the pod.
struct MountVolume : OperationOf<MountedVolume> {
  explicit MountVolume(MountRequest mount) : request(std::move(mount)) {}

  OperationKey key() const { return request.key(); }
  // It uses its device exclusively: the device must not be unmounted while it is bound.
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      MountedVolume& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<MountedVolume>& outcome) const;

  // Set for a volume that CanBeGrouped(), and for one that is handed out as it is if the others'
  // request may look at it.
  std::optional<VolumePlace> PlaceInGroup(const OperationParts& parts) const;
  static OperationFailures RunTogether(const OperationParts& parts,
                                       const std::vector<const MountVolume*>& all,
                                       const std::vector<MountedVolume*>& results,
                                       OperationProgress& progress);

  MountRequest request;
};

// Takes a volume of a pod away, with its sub-paths. It needs no object: the record, or else the
// request, says what it is. Errors: FailedPrecondition, not applied, if something is mounted over
// the pod's directories; those of the plugin and of the steps. A disk that takes no writes does not
// stop it if the volume has a record.
struct UnmountVolume : OperationOf<Unit> {
  explicit UnmountVolume(UnmountRequest unmount) : request(std::move(unmount)) {}

  OperationKey key() const { return request.key(); }
  // It may run beside others that share its device.
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::optional<VolumePlace> PlaceInGroup(const OperationParts& parts) const;
  static OperationFailures RunTogether(const OperationParts& parts,
                                       const std::vector<const UnmountVolume*>& all,
                                       const std::vector<Unit*>& results,
                                       OperationProgress& progress);

  UnmountRequest request;
};

// Removes the directories of a pod that has no volume left, and handles its record as requested. It
// never removes what it does not know: a directory with foreign content stays and is named in the
// error. Errors: FailedPrecondition, not applied, while a volume of the pod has a record; those of
// RemovePodDirectories; the store's, maybe applied, since the directories are gone by then.
struct RemovePod : OperationOf<Unit> {
  RemovePod(PodUid of_pod, std::string of_display_name, PodRecordEnd record_end)
      : pod(std::move(of_pod)), pod_display_name(std::move(of_display_name)), record(record_end) {}

  OperationKey key() const { return {pod, SpecName()}; }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  PodUid pod;
  std::string pod_display_name;
  PodRecordEnd record;
  bool with_many = false;  // see OperationLanes::Enter
};

}  // namespace volumed
