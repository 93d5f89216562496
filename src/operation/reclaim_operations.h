// The operation on a volume that its claim has left: its storage is deleted, or scrubbed for the
// next claim. Its intent is the record of the binding, which says "released" until it is done; so
// it can be repeated. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (recycleVolumeOperation,
// deleteVolumeOperation).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// The key "reclaim/<volume>".
OperationKey ReclaimKey(const std::string& volume_name);

// Calls `empty` while nobody else has the storage of the volume, or gets it meanwhile; if it
// succeeds the storage is nobody's from then on. For the operations that delete. Blocks: as
// `empty`, and until the call's deadline. Errors: those of the StorageGuard; those of `empty`.
Status WithReclaimedStorage(const OperationParts& parts, const ReclaimRequest& request,
                            const CallOptions& call,
                            const std::function<Status(const CallOptions&)>& empty);

// Deletes or recycles a volume that nobody uses. REQUIRES: the request has an action.
// Run: Threads: one at a time per volume. Blocks: until the volume is reclaimed.
// Errors: FailedPrecondition, not applied, of the StorageGuard, if other data may be there; if no
// plugin can do it, not applied, in the words of the controller's event; those of the plugin.
// Events of the PersistentVolume: RecyclerPod, VolumeRecycled, VolumeFailedRecycle,
// VolumeFailedDelete, and VolumeDelete while it is in use.
struct ReclaimVolume : OperationOf<Unit> {
  explicit ReclaimVolume(ReclaimRequest reclaim) : request(std::move(reclaim)) {}

  OperationKey key() const { return ReclaimKey(request.volume->metadata.name); }
  OperationTraits Traits(const OperationParts& parts) const;
  // Whoever came meanwhile may have data in the same place.
  void Waited() {
    if (request.look_again) request.look_again(request);
  }
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  ReclaimRequest request;
};

// The volume is to be retained: what earlier tries have reserved is free once no worker is at it
// (StorageGuard::EndReclaims). Has the key of a try, so none begins meanwhile. Errors: the store's.
// Run: Threads: any. Blocks: until the store and the worker have answered.
struct EndReclaim : OperationOf<Unit> {
  explicit EndReclaim(std::string of_volume) : volume_name(std::move(of_volume)) {}

  OperationKey key() const { return ReclaimKey(volume_name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  std::string volume_name;
};

}  // namespace volumed
