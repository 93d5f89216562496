// The operations on a volume that its claim has left: its storage is deleted, or scrubbed for the
// next claim. The record of the binding is their intent: it says "released" until they are done,
// and both may be repeated. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (recycleVolumeOperation,
// deleteVolumeOperation).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

OperationKey ReclaimKey(const std::string& volume_name);

// Deletes or recycles a volume that nobody uses. REQUIRES: an action.
// Run: Threads: one at a time per volume. Blocks: until the volume is reclaimed.
// Errors: FailedPrecondition, not applied, of the StorageGuard: somebody else's data may be there;
// when no plugin can do it, not applied, in the words of the controller's event; those of
// the plugin. Events go to the PersistentVolume: RecyclerPod, VolumeRecycled, VolumeFailedRecycle,
// VolumeFailedDelete, and VolumeDelete while it is in use.
struct ReclaimVolume : OperationOf<Unit> {
  explicit ReclaimVolume(ReclaimRequest reclaim) : request(std::move(reclaim)) {}

  OperationKey key() const { return ReclaimKey(request.volume->metadata.name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  ReclaimRequest request;
};

}  // namespace volumed
