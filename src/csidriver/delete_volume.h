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
#include "pool/pool_operations.h"

namespace volumed {

// As DeletePoolVolume, whose key it has. A volume with files that is staged by its row, published
// nowhere, and whose mount somebody has taken away, is unstaged first: nobody has it any more.
// Errors: those of DeletePoolVolume and of UnstageNodeVolume.
struct DeleteServedVolume : OperationOf<Unit> {
  DeleteServedVolume(PoolServed& of, std::string volume, std::string this_node)
      : deletion(of, std::move(volume)), node(std::move(this_node)) {}
  OperationKey key() const { return deletion.key(); }
  OperationTraits Traits(const OperationParts& parts) const { return deletion.Traits(parts); }
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  DeletePoolVolume deletion;
  std::string node;
};

}  // namespace volumed
