// The directory backend: a volume is a directory of the pool, whatever its filesystem; a cut of it
// is a copy, which needs that nobody writes meanwhile, and so is a volume that is made of a cut.
//
// A copy follows no path (CopyTree), so that whoever has the directory leads it nowhere. But it is
// of no moment if somebody writes: so a volume that is mounted for writing is cut only if its class
// says "consistency": "best-effort". And no copy is larger than what it was promised, whatever he
// writes.
//
// A directory that was elsewhere on the pool's filesystem becomes a volume by being moved, and is
// moved back if that volume is deleted before it was ready: nothing of it is ever deleted then.
//
// Private to directory_backend.cc.
#pragma once

#include <string>
#include <utility>

#include "pool/tree_backend.h"

namespace volumed {

// Threads and blocking: as PoolBackend says.
class DirectoryBackend final : public TreeBackend {
 public:
  DirectoryBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid)
      : TreeBackend(kernel, std::move(layout), std::move(pool_uuid)) {}

  PoolBackendKind kind() const override { return PoolBackendKind::kDirectory; }
  // By a move of the source. Errors besides: AlreadyExists, if something else is where it is to go.
  Result<MadeArtefact> Import(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                              const ImportedFile& source, const CallOptions& call) override;
  // What was moved and was never ready is moved back. Errors besides: FailedPrecondition, not
  // applied, if it cannot be given back: something else is there, or its directory is missing.
  Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) override;
  // Begins anew whatever was copied. A cancel ends it.
  Result<MadeArtefact> CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord& source,
                               int64_t bytes_per_second, const CallOptions& call) override;

 protected:
  Status MakeData(const SafePath& data, const CallOptions& call) override;
  Status RemoveData(const SafePath& data, const StorageObject& recorded,
                    const CallOptions& call) override;
  Result<bool> FillData(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                        const PoolCutRecord& cut, const CallOptions& call) override;
  Result<MadeCut> CutOne(const CutWish& wish, const CallOptions& call) override;

 private:
  // Answers what the copy has. Errors besides those of CopyTree, likewise maybe applied:
  // ResourceExhausted, with `advice` behind it, beyond its bound.
  Result<TreeCopied> Copy(const CopyTree& copy, const std::string& advice, const CallOptions& call);
};

}  // namespace volumed
