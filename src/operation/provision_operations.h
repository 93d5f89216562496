// The operations on a volume that this node makes for a claim. Their intent is the record that the
// volume manager has written before: it names the volume and its place, so both can be repeated,
// and make or take away only that volume. Source: kubernetes
// pkg/controller/volume/persistentvolume/pv_controller.go@v1.36.2 (provisionClaimOperation).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "operation/operation.h"
#include "operation/volume_requests.h"

namespace volumed {

// The key "provision/<volume>", for both operations.
OperationKey ProvisionKey(const std::string& volume_name);

// Makes exactly what was planned, whatever the configuration says by now. Errors: those of the
// plugin; FailedPrecondition, not applied, for a plan that the plugin would not make any more (its
// directory was configured differently since), or for a place in, or around, the agent's own
// directories. What a driver has made is the volume's from its answer on (StorageGuard::TakeMade),
// whatever becomes of the claim meanwhile; an answer that names what somebody has by then is the
// plugin's error.
//
// It uses the device of a volume that is cloned exclusively
// (ProvisionableVolumePlugin::DeviceOfContent).
//
// Of both Runs: Threads: one at a time per volume. Blocks: until the volume is made or undone, or
// the deadline.
struct ProvisionVolume : OperationOf<PersistentVolume> {
  explicit ProvisionVolume(ProvisionRequest provision) : request(std::move(provision)) {}

  OperationKey key() const { return ProvisionKey(request.planned.metadata.name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      PersistentVolume& result) const;

  ProvisionRequest request;
};

// Takes back what ProvisionVolume may have left, before anybody has used it. Storage that is known
// only once it is made is taken as for a reclaim (reclaim_operations.h), so nothing goes that
// anybody has. Errors: those of IrreversibleSteps, not applied, if the records are in doubt; those
// of the StorageGuard; those of the plugin.
struct UndoProvision : OperationOf<Unit> {
  explicit UndoProvision(ProvisionRequest provision) : request(std::move(provision)) {}

  OperationKey key() const { return ProvisionKey(request.planned.metadata.name); }
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;

  ProvisionRequest request;
};

}  // namespace volumed
