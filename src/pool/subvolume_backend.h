// The subvolume backend: a volume is a subvolume of a pool that lies on a btrfs; a cut of it is a
// read-only snapshot, made while it is used, of one moment as after a crash of the node; a volume
// that is made of a cut is a snapshot of that. Nothing is ever frozen or copied.
//
// Private to subvolume_backend.cc.
#pragma once

#include <string>
#include <utility>

#include "pool/tree_backend.h"

namespace volumed {

// Threads and blocking: as PoolBackend says.
class SubvolumeBackend final : public TreeBackend {
 public:
  SubvolumeBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid)
      : TreeBackend(kernel, std::move(layout), std::move(pool_uuid)) {}

  PoolBackendKind kind() const override { return PoolBackendKind::kSubvolume; }
  // As a snapshot of another subvolume.
  Result<MadeArtefact> Import(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                              const ImportedFile& source, const CallOptions& call) override;
  // No cut is a copy. Errors: Internal, not applied.
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
  // Fills the volume with a snapshot of a subvolume, and bounds it.
  Status Snapshot(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                  const ImportedFile& source, const CallOptions& call);
};

}  // namespace volumed
