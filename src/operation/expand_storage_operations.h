// The operation that makes the storage of a volume larger, where no controller of a cluster does:
// first this, and then the growth on the node (expand_operations.h), if the storage needs that.
//
// Its intent is the status of the volume's claim, which says ControllerResizeInProgress and the
// size, on record, before the plugin is called. So it can be repeated, to the same size.
// Source: kubernetes pkg/volume/util/operationexecutor/operation_generator.go@v1.36.2
// (GenerateExpandVolumeFunc); external-resizer@v2.1 pkg/controller/resize_status.go.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/quantity.h"
#include "operation/operation.h"
#include "operation/volume_requests.h"
#include "pluginmgr/expandable_volume_plugin.h"

namespace volumed {

// The operation_name of Kubernetes' controller.
inline constexpr const char* kExpandStorageOperation = "expand_volume";

// What is to be made larger. The sizes are in bytes, as quantities.
struct ExpandStorageRequest {
  UniqueVolumeName volume;
  VolumeSpec spec;
  std::string claim;  // "namespace/name", for events
  Quantity new_size;
  Quantity old_size;
};

// The key "expand-storage/<unique name>", which no other operation has.
OperationKey ExpandStorageKey(const UniqueVolumeName& volume);

// Uses the device exclusively, as the growth on the node does: nothing is mounted or unmounted
// meanwhile, and the driver is asked one thing at a time about a volume.
// Run: Threads: one at a time per volume. Blocks: until the plugin's answer or the deadline.
// Errors, not applied: Unimplemented, if no plugin does it here; FailedPrecondition, if the volume
// is in use, be it by a mount on no record, and its storage grows only unused; those of ListMounts
// and of the plugin. Internal, maybe applied, for an answer that is smaller than what was asked
// for. Events of the claim: VolumeResizeSuccessful, FileSystemResizeRequired if it is the node's
// turn, VolumeResizeFailed.
struct ExpandStorage : OperationOf<ExpandedStorage> {
  explicit ExpandStorage(ExpandStorageRequest expand) : request(std::move(expand)) {}

  OperationKey key() const { return ExpandStorageKey(request.volume); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      ExpandedStorage& result) const;
  void Tell(const OperationParts& parts, const OperationOutcome<ExpandedStorage>& outcome) const;

  ExpandStorageRequest request;
};

}  // namespace volumed
