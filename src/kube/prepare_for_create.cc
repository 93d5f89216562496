#include "kube/prepare_for_create.h"

#include <utility>
#include <variant>

namespace volumed {
namespace {

// Whoever finishes the growth has to know from which size.
PersistentVolumeClaimStatus UnfinishedGrowthIn(PersistentVolumeClaimStatus& status) {
  PersistentVolumeClaimStatus growth;
  std::erase_if(status.conditions, [](const ClaimCondition& condition) {
    return condition.type != kFileSystemResizePending;
  });
  const bool is_growing = !status.allocated_resource_statuses.empty() || !status.conditions.empty();
  if (!is_growing || status.capacity.empty()) return growth;
  growth.capacity = std::move(status.capacity);
  growth.allocated_resource_statuses = std::move(status.allocated_resource_statuses);
  growth.conditions = std::move(status.conditions);
  return growth;
}

}  // namespace

void PrepareForCreate(Object& object) {
  ObjectMeta& metadata = MetaOf(object);
  metadata.creation_unix_millis.reset();
  metadata.deletion_unix_millis.reset();
  metadata.deletion_grace_period_seconds.reset();
  if (Pod* pod = std::get_if<Pod>(&object)) pod->status.phase = PodStatus().phase;
  if (auto* volume = std::get_if<PersistentVolume>(&object)) volume->status = {};
  if (auto* claim = std::get_if<PersistentVolumeClaim>(&object)) {
    claim->status = UnfinishedGrowthIn(claim->status);
  }
  if (auto* snapshot = std::get_if<VolumeSnapshot>(&object)) snapshot->status = {};
  if (auto* content = std::get_if<VolumeSnapshotContent>(&object)) content->status = {};
}

}  // namespace volumed
