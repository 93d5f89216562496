// ClaimResize: what a claim's status says of its size, and how that changes while a volume is made
// larger. A claim from a manifest has nobody who would keep its status: the agent keeps it for as
// long as the claim has its volume, and shows it in place of the object's.
// Source: kubernetes pkg/volume/util/resize_util.go@v1.36.2; core/v1 types.go
// (ClaimResourceStatus, PersistentVolumeClaimConditionType).
//
// Values and pure functions. Threads: any. Blocks: never. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"
#include "kube/objects.h"

namespace volumed {

// status.allocatedResourceStatuses["storage"].
inline constexpr std::string_view kControllerResizeInProgress = "ControllerResizeInProgress";
inline constexpr std::string_view kControllerResizeInfeasible = "ControllerResizeInfeasible";
inline constexpr std::string_view kNodeResizePending = "NodeResizePending";
inline constexpr std::string_view kNodeResizeInProgress = "NodeResizeInProgress";
inline constexpr std::string_view kNodeResizeInfeasible = "NodeResizeInfeasible";
// Types of conditions.
inline constexpr std::string_view kResizing = "Resizing";
// And kFileSystemResizePending (kube/storage_objects.h).
inline constexpr std::string_view kControllerResizeError = "ControllerResizeError";
inline constexpr std::string_view kNodeResizeError = "NodeResizeError";

// What stands, or is to stand, in a claim's status about its size.
struct ClaimResize {
  Quantity capacity;                  // status.capacity
  std::optional<Quantity> allocated;  // status.allocatedResources
  std::string status;                 // status.allocatedResourceStatuses; "" if there is none
  std::vector<ClaimCondition> conditions;
  // What the object's own status said of its size when this was taken from it, as
  // "capacity/allocated/status", each of which may be empty: once it says something else, somebody
  // else has moved on, and this follows.
  std::string seen;
  // The capacity that the volume has since its storage was made larger here; nullopt: that of its
  // object. The object may be a manifest, which nobody changes.
  std::optional<Quantity> volume_capacity;
  friend bool operator==(const ClaimResize&, const ClaimResize&) = default;
};

// The larger one of the volume's own capacity and the one that its storage was proven to have
// since.
Quantity EffectiveCapacity(const Quantity& volume_capacity, const ClaimResize& resize);

// Whether a growth of the storage is under way, or was found impossible: ControllerResize...
bool IsOfStorage(const std::string& resize_status);

// Whether the status is what kube/prepare_for_create.h leaves of a growth that was not finished. An
// API server's has a phase always.
bool IsOfUnfinishedGrowth(const PersistentVolumeClaimStatus& status);

// Whether the object's own status had no capacity: then nobody but the agent keeps it.
bool IsKeptByAgent(const ClaimResize& resize);

// What is to be on record for a claim that is bound. `object` is null if only the binding is known:
// then what is on record stays. `volume_capacity` is the volume's, as it was when the claim got it;
// it counts if nobody has said the claim's. A capacity on record never becomes smaller. Of a growth
// that a cluster had begun, the size from before it counts for a claim that is on no record yet: it
// is grown anew, which does nothing if it was finished.
ClaimResize FollowClaim(const std::optional<ClaimResize>& recorded,
                        const PersistentVolumeClaim* object, const Quantity& volume_capacity);

// The part of a controller, for a claim that none cares for: a volume that is larger than the claim
// says is to be grown on the node; a wish that was taken back is forgotten. Nothing changes for
// other claims. Source: external-resizer pkg/controller/resize_status.go
// (markForPendingNodeExpansion).
void FollowVolume(const Quantity& volume_capacity, int64_t now_unix_ms, ClaimResize& resize);

// The next four write down how a growth of the storage goes; a call is made between the first and
// the others. This one sets the status ControllerResizeInProgress and the condition Resizing.
void MarkStorageGrows(const Quantity& size, int64_t now_unix_ms, ClaimResize& resize);
// Sets the condition ControllerResizeError with `message`; and, if it cannot succeed, the status
// ControllerResizeInfeasible in place of the condition Resizing.
void MarkStorageGrowthFailed(bool infeasible, const std::string& message, int64_t now_unix_ms,
                             ClaimResize& resize);
// The storage has this size: the volume's capacity is that. Then it is the node's turn, or with
// `needs_node` false nobody's.
void MarkStorageGrown(const Quantity& size, bool needs_node, int64_t now_unix_ms,
                      ClaimResize& resize);
// The claim asks for no more than it has: what stands of a growth of the storage goes.
void MarkStorageGrowthTakenBack(ClaimResize& resize);

// The next three write down how a node's call goes. A condition keeps the time at which it first
// became true.
// This one sets the status NodeResizeInProgress and the condition Resizing.
void MarkNodeResizeInProgress(int64_t now_unix_ms, ClaimResize& resize);
// Sets the condition NodeResizeError with `message`; and, if it cannot succeed, the status
// NodeResizeInfeasible in place of the condition Resizing.
void MarkNodeResizeFailed(bool infeasible, const std::string& message, int64_t now_unix_ms,
                          ClaimResize& resize);
// The capacity becomes `size`, unless it is larger already; status and conditions of the resize go,
// and `allocated` stays.
void MarkNodeResizeFinished(const Quantity& size, ClaimResize& resize);

// Writes it over what the object's status says of its size and its conditions, for whoever shows
// the object.
void ShowIn(const ClaimResize& resize, PersistentVolumeClaimStatus& status);

}  // namespace volumed
