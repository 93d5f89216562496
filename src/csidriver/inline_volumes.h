// The operations by which a kubelet has an inline volume of a pod, and what a kubelet has left
// behind.
//
// A publication is the whole life of the volume: it is made, staged at a place of the agent's own,
// <root>/plugins/volumed.io/pool/inline/<handle>/<id>, and bound at the target; and the inverse.
// Each is made of the operations that other volumes have for that (node_volumes.h,
// pool_operations.h), one after the other. The volume's row, which is written first and removed
// last but for the place, has the target: so a call that is repeated after an end of the agent
// anywhere in between finds what there is, and goes on.
//
// A kubelet does not call the inverse after each failure. So a failure after which something is
// left has an outcome after which it does (maybe applied), and a volume that was certainly never
// published is taken back.
// Source: kubernetes pkg/volume/csi/csi_mounter.go@v1.36.2 (SetUpAt, isFinalError).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "csidriver/csi_capability_wish.h"
#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "os/kernel.h"
#include "os/safe_path.h"
#include "pool/pool_volumes.h"

namespace volumed {

// What the calls of all inline volumes have in common.
struct InlineServing {
  std::string driver;        // by which PersistentVolumes name the pools
  std::string node;          // the lease's
  int64_t most_volumes = 0;  // of the node, as PoolVolumes::TakeLease has it
};

struct InlinePublish {
  std::string id;         // of the volume that has the name of the wish, or PlanId()
  PoolVolumeWish volume;  // ParseCsiInlineWish(), with this id
  CsiCapabilityWish capability;
  SafePath target;
  bool read_only = false;
  InlineServing serving;
  pid_t caller = 0;  // as CheckCallerSees() has it
};
// The key is "pool-inline/<name>"; it uses the volume's device exclusively. Success if the volume
// is there as it is asked for. Errors: FailedPrecondition, not applied, if it is published at
// another target; those of CreatePoolVolume, StageNodeVolume and PublishNodeVolume.
// Threads: one at a time per key. Blocks: as these.
struct PublishInlineVolume : OperationOf<Unit> {
  PublishInlineVolume(PoolVolumes& of, InlinePublish publish)
      : volumes(&of), request(std::move(publish)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  InlinePublish request;
};

struct InlineUnpublish {
  std::string id;  // of the volume that has this handle; empty: there is none
  std::string handle;
  SafePath target;
  // Why nothing may be deleted yet, for people; empty if it may. What is mounted goes before.
  std::string held_up;
  InlineServing serving;
};
// The inverse, with the same key, and all of the volume's data is deleted. Success if the volume is
// not there, or is published at another target. Errors: Unavailable, maybe applied, if the deletion
// is held up; of a handle without a volume those of PoolVolumes::CheckNamesKnown; those of
// UnpublishNodeVolume, UnstageNodeVolume and DeletePoolVolume.
// Threads: one at a time per key. Blocks: as these.
struct UnpublishInlineVolume : OperationOf<Unit> {
  UnpublishInlineVolume(PoolVolumes& of, InlineUnpublish unpublish)
      : volumes(&of), request(std::move(unpublish)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  PoolVolumes* volumes;
  InlineUnpublish request;
};

// The inline volumes that no kubelet will take away any more, each with the reason for people: the
// directory that it makes for the pod's volume, in which the target is, is gone, and it removes
// that after its NodeUnpublishVolume alone. Their data stays until that is called by hand. One of
// which this cannot be told, as nothing answers, is none of them.
// Threads: any. Blocks: for each until the call's deadline.
std::vector<std::string> FindLeftInlineVolumes(const PoolVolumes& volumes, Kernel& kernel,
                                               const CallOptions& call);

}  // namespace volumed
