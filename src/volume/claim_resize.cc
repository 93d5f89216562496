#include "volume/claim_resize.h"

#include <algorithm>

namespace volumed {
namespace {

const std::string kStorage = "storage";
constexpr const char* kTrue = "True";

std::optional<Quantity> StorageIn(const ResourceList& amounts) {
  const auto found = amounts.find(kStorage);
  if (found == amounts.end()) return std::nullopt;
  return found->second;
}

std::string StatusIn(const PersistentVolumeClaimStatus& status) {
  const auto found = status.allocated_resource_statuses.find(kStorage);
  return found == status.allocated_resource_statuses.end() ? "" : found->second;
}

// "1Gi//NodeResizePending".
std::string SizeText(const PersistentVolumeClaimStatus& status) {
  const std::optional<Quantity> capacity = StorageIn(status.capacity);
  const std::optional<Quantity> allocated = StorageIn(status.allocated_resources);
  return (capacity ? capacity->String() : "") + "/" + (allocated ? allocated->String() : "") + "/" +
         StatusIn(status);
}

bool IsOfResize(const ClaimCondition& condition) {
  return condition.type == kResizing || condition.type == kFileSystemResizePending ||
         condition.type == kControllerResizeError || condition.type == kNodeResizeError;
}

void DropConditions(ClaimResize& resize) { std::erase_if(resize.conditions, IsOfResize); }

// Keeps the time at which it became true.
void SetCondition(std::string_view type, const std::string& message, int64_t now,
                  ClaimResize& resize) {
  for (ClaimCondition& condition : resize.conditions) {
    if (condition.type != type) continue;
    if (condition.status != kTrue) condition.last_transition_unix_millis = now;
    condition.status = kTrue;
    condition.message = message;
    return;
  }
  ClaimCondition added;
  added.type = type;
  added.status = kTrue;
  added.message = message;
  added.last_transition_unix_millis = now;
  resize.conditions.push_back(std::move(added));
}

// The storage has the size, and it is the node's turn.
void AwaitNode(const Quantity& size, int64_t now, ClaimResize& resize) {
  resize.allocated = size;
  resize.status = kNodeResizePending;
  DropConditions(resize);
  SetCondition(kFileSystemResizePending, "waiting for the node to grow the volume", now, resize);
}

}  // namespace

Quantity EffectiveCapacity(const Quantity& volume_capacity, const ClaimResize& resize) {
  return std::max(volume_capacity, resize.volume_capacity.value_or(volume_capacity));
}

bool IsOfStorage(const std::string& resize_status) {
  return resize_status == kControllerResizeInProgress ||
         resize_status == kControllerResizeInfeasible;
}

bool IsOfUnfinishedGrowth(const PersistentVolumeClaimStatus& status) {
  const bool was_growing =
      !status.allocated_resource_statuses.empty() || !status.conditions.empty();
  return !status.phase && !status.capacity.empty() && was_growing;
}

bool IsKeptByAgent(const ClaimResize& resize) { return resize.seen.starts_with("/"); }

ClaimResize FollowClaim(const std::optional<ClaimResize>& recorded,
                        const PersistentVolumeClaim* object, const Quantity& volume_capacity) {
  const PersistentVolumeClaimStatus none;
  if (object == nullptr && recorded) return *recorded;
  const bool was_growing = object != nullptr && IsOfUnfinishedGrowth(object->status);
  const PersistentVolumeClaimStatus& status =
      object == nullptr || was_growing ? none : object->status;
  const std::string seen = SizeText(status);
  if (recorded && recorded->seen == seen) return *recorded;
  ClaimResize resize;
  resize.capacity = StorageIn(status.capacity).value_or(volume_capacity);
  if (was_growing) {
    const Quantity before = StorageIn(object->status.capacity).value_or(volume_capacity);
    if (!before.IsZero()) resize.capacity = std::min(before, volume_capacity);
  }
  // What the agent has proven stays true, whatever an old manifest says.
  if (recorded) {
    resize.capacity = std::max(resize.capacity, recorded->capacity);
    resize.volume_capacity = recorded->volume_capacity;
  }
  resize.allocated = StorageIn(status.allocated_resources);
  resize.status = StatusIn(status);
  resize.conditions = status.conditions;
  resize.seen = seen;
  return resize;
}

void FollowVolume(const Quantity& capacity_of_object, int64_t now, ClaimResize& resize) {
  if (!IsKeptByAgent(resize)) return;
  const Quantity volume_capacity = EffectiveCapacity(capacity_of_object, resize);
  const bool is_of_storage = IsOfStorage(resize.status);
  // While the storage grows, or was found unable to, that stands, unless it was given the size by
  // somebody else.
  if (is_of_storage && volume_capacity < resize.allocated.value_or(volume_capacity)) return;
  if (volume_capacity <= resize.capacity) {
    if (resize.status.empty()) return;
    resize.status.clear();
    resize.allocated = resize.capacity;
    DropConditions(resize);
    return;
  }
  const bool is_nodes_turn = !resize.status.empty() && !is_of_storage;
  if (is_nodes_turn && resize.allocated == volume_capacity) return;
  AwaitNode(volume_capacity, now, resize);
}

void MarkStorageGrows(const Quantity& size, int64_t now, ClaimResize& resize) {
  resize.allocated = size;
  resize.status = kControllerResizeInProgress;
  DropConditions(resize);
  SetCondition(kResizing, "", now, resize);
}

void MarkStorageGrowthFailed(bool infeasible, const std::string& message, int64_t now,
                             ClaimResize& resize) {
  if (infeasible) {
    resize.status = kControllerResizeInfeasible;
    std::erase_if(resize.conditions, [](const ClaimCondition& c) { return c.type == kResizing; });
  }
  SetCondition(kControllerResizeError, message, now, resize);
}

void MarkStorageGrown(const Quantity& size, bool needs_node, int64_t now, ClaimResize& resize) {
  resize.volume_capacity = std::max(resize.volume_capacity.value_or(size), size);
  if (needs_node) return AwaitNode(*resize.volume_capacity, now, resize);
  resize.allocated = resize.volume_capacity;
  MarkNodeResizeFinished(*resize.volume_capacity, resize);
}

void MarkStorageGrowthTakenBack(ClaimResize& resize) {
  resize.status.clear();
  resize.allocated = resize.capacity;
  DropConditions(resize);
}

void MarkNodeResizeInProgress(int64_t now, ClaimResize& resize) {
  resize.status = kNodeResizeInProgress;
  SetCondition(kResizing, "", now, resize);
}

void MarkNodeResizeFailed(bool infeasible, const std::string& message, int64_t now,
                          ClaimResize& resize) {
  if (infeasible) {
    resize.status = kNodeResizeInfeasible;
    std::erase_if(resize.conditions, [](const ClaimCondition& c) { return c.type == kResizing; });
  }
  SetCondition(kNodeResizeError, message, now, resize);
}

void MarkNodeResizeFinished(const Quantity& size, ClaimResize& resize) {
  resize.capacity = std::max(resize.capacity, size);
  resize.status.clear();
  DropConditions(resize);
}

void ShowIn(const ClaimResize& resize, PersistentVolumeClaimStatus& status) {
  status.capacity[kStorage] = resize.capacity;
  if (resize.allocated) {
    status.allocated_resources[kStorage] = *resize.allocated;
  } else {
    status.allocated_resources.erase(kStorage);
  }
  if (resize.status.empty()) {
    status.allocated_resource_statuses.erase(kStorage);
  } else {
    status.allocated_resource_statuses[kStorage] = resize.status;
  }
  status.conditions = resize.conditions;
}

}  // namespace volumed
