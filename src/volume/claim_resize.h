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
inline constexpr std::string_view kFileSystemResizePending = "FileSystemResizePending";
inline constexpr std::string_view kControllerResizeError = "ControllerResizeError";
inline constexpr std::string_view kNodeResizeError = "NodeResizeError";

struct ClaimResize {
  Quantity capacity;                  // status.capacity
  std::optional<Quantity> allocated;  // status.allocatedResources
  std::string status;                 // status.allocatedResourceStatuses; "" where there is none
  std::vector<ClaimCondition> conditions;
  // What the object's own status said of its size when this was taken from it: once it says
  // something else, somebody else has moved on, and this follows.
  std::string seen;
  friend bool operator==(const ClaimResize&, const ClaimResize&) = default;
};

// The object's own status has no size: nobody but the agent keeps it.
bool IsKeptByAgent(const ClaimResize& resize);

// What is to be on record for a claim that is bound. `object` is null where only the binding is
// known. `volume_capacity` is the volume's, as it was when the claim got it.
ClaimResize FollowClaim(const std::optional<ClaimResize>& recorded,
                        const PersistentVolumeClaim* object, const Quantity& volume_capacity);

// The part of a controller, for a claim that none cares for: a volume that is larger than the claim
// says is to be grown on the node; a wish that was taken back is forgotten. Nothing changes for
// other claims. Source: external-resizer pkg/controller/resize_status.go
// (markForPendingNodeExpansion).
void FollowVolume(const Quantity& volume_capacity, int64_t now_unix_ms, ClaimResize& resize);

void MarkNodeResizeInProgress(int64_t now_unix_ms, ClaimResize& resize);
// The condition NodeResizeError; and, if it cannot succeed, the status NodeResizeInfeasible.
void MarkNodeResizeFailed(bool infeasible, const std::string& message, int64_t now_unix_ms,
                          ClaimResize& resize);
// Capacity becomes `size`, unless it is larger already; nothing is left of the resize.
void MarkNodeResizeFinished(const Quantity& size, ClaimResize& resize);

// The object's status as it is to be shown.
void ShowIn(const ClaimResize& resize, PersistentVolumeClaimStatus& status);

}  // namespace volumed
