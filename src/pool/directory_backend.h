// The directory backend: a volume is a directory of the pool, whatever its filesystem; a cut of it
// is a copy, which needs that nobody writes meanwhile, and so is a volume that is made of a cut.
//
// Trees are copied by cp(1), which follows paths: nobody else may change what it reads, or it could
// be led out of the tree. So a volume that somebody has mounted for writing is never cut.
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
  // Begins anew whatever was copied, and is not held to `bytes_per_second`. A cancel kills it.
  Result<MadeArtefact> CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord& source,
                               int64_t bytes_per_second, const CallOptions& call) override;

 protected:
  Status MakeData(const SafePath& data, const CallOptions& call) override;
  Status RemoveData(const SafePath& data, const StorageObject& recorded,
                    const CallOptions& call) override;
  Result<bool> FillData(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                        const PoolCutRecord& cut, const CallOptions& call) override;
  Status ImportData(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                    const ImportedFile& source, const CallOptions& call) override;
  Result<MadeCut> CutOne(const CutWish& wish, const CallOptions& call) override;

 private:
  Status CopyTree(const SafePath& from, const SafePath& to, const CallOptions& call);
  Status Run(const std::vector<std::string>& command, const CallOptions& call);
};

// Why no directory becomes a volume without being copied. Pure.
Error DirectoryNotImported(const std::string& directory);

}  // namespace volumed
