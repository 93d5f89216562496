// DeleteServedVolume: the deletion that a CO asks for, also of a volume that it never unstages.
//
// A kubelet that is killed between NodeUnpublishVolume and NodeUnstageVolume never unstages: after
// its start it knows of volumes by the directories of pods alone, and there is none any more.
// Source: kubernetes pkg/kubelet/volumemanager/reconciler/reconstruct.go@v1.36.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "operation/volume_record_keeper.h"
#include "os/safe_path.h"
#include "pool/pool_operations.h"

namespace volumed {

// Where a CO has staged the volume, as its row has it; nullopt: nowhere, or for pods of the agent's
// own. Threads: any. Blocks: never.
std::optional<SafePath> StagedByRow(const DeviceRecordKeeper& devices, const std::string& id);

// As DeletePoolVolume, whose key it has. A volume that is staged by its row alone, published
// nowhere, and of which somebody has taken away what the node had, its mount, or a block volume's
// device, is unstaged first: nobody has it any more. So goes the lease of a staging that did not
// live to give it back. REQUIRES: the filesystem of StagedByRow() has answered (PlaceLooks), as an
// unstaging works there. Errors: those of DeletePoolVolume and of UnstageNodeVolume.
struct DeleteServedVolume : OperationOf<Unit> {
  DeleteServedVolume(PoolServed& of, std::string volume) : deletion(of, std::move(volume)) {}
  OperationKey key() const { return deletion.key(); }
  OperationTraits Traits(const OperationParts& parts) const { return deletion.Traits(parts); }
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  DeletePoolVolume deletion;
};

}  // namespace volumed
