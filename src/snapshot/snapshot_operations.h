// The operations of the snapshot engine: a cut, which has the devices of its volumes for itself,
// and what takes long or may fail afterwards, which has not. What each does with the rows is the
// engine's business.
//
// Of each Run: Threads: one at a time per key. Blocks: until the pool's answer or the deadline,
// which a copy does not have.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "operation/operation.h"
#include "operation/operation_parts.h"
#include "pool/pool_volumes.h"

namespace volumed {

// What the engine does on the operation's thread.
using SnapshotWork = std::function<Status(const CallOptions&)>;

// The key "cut/<first cut>"; uses the devices of all volumes exclusively, so that nothing of them
// is mounted, unmounted, grown or deleted meanwhile. Right before the cut it looks where each is
// mounted, and whether a place that a CO gave is reached. Errors: those of MountedForWriting, of
// CheckAnswers and of `cut`.
struct CutVolumes : OperationOf<Unit> {
  using Requests = std::vector<PoolVolumes::CutRequest>;
  using Cut = std::function<Status(const Requests&, const CallOptions&)>;
  CutVolumes(const PoolVolumes& of, Requests all, Cut how)
      : volumes(&of), requests(std::move(all)), cut(std::move(how)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  const PoolVolumes* volumes;
  Requests requests;  // not empty
  Cut cut;
};

// The key "copy/<cut>". `cancel` is set to end it.
struct CopyCutBytes : OperationOf<Unit> {
  CopyCutBytes(const PoolVolumes& of, std::string cut, std::shared_ptr<CancelToken> token,
               SnapshotWork how)
      : volumes(&of), id(std::move(cut)), cancel(std::move(token)), copy(std::move(how)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  const PoolVolumes* volumes;
  std::string id;
  std::shared_ptr<CancelToken> cancel;
  SnapshotWork copy;
};

// The key "discard/<id>", of a cut or of a group of cuts, whose first is `cut`.
struct DiscardCut : OperationOf<Unit> {
  DiscardCut(const PoolVolumes& of, std::string what, std::string first, SnapshotWork how)
      : volumes(&of), id(std::move(what)), cut(std::move(first)), discard(std::move(how)) {}
  OperationKey key() const;
  OperationTraits Traits(const OperationParts& parts) const;
  std::optional<OperationFailure> Run(const OperationParts& parts, OperationProgress& progress,
                                      Unit& result) const;
  const PoolVolumes* volumes;
  std::string id;
  std::string cut;
  SnapshotWork discard;
};

// Says in each request where its volume is mounted for writing, and who has it so. REQUIRES: the
// caller has their devices for itself. Threads: any. Blocks and errors: as MountedForWriting.
Status FindWhereMounted(const PoolVolumes& volumes, const KubeletPaths& paths,
                        const DeviceRecordKeeper& devices, Kernel& kernel,
                        CutVolumes::Requests& requests, const CallOptions& call);

}  // namespace volumed
