// The image backend: a volume is a file with the content of a disk, at <pool>/volumes/<id>/image,
// that is used by way of a loop device; a cut of it is another such file, at
// <pool>/cuts/<id>/image. Private to image_backend.cc and image_backend_cuts.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool_backend.h"

namespace volumed {

// Threads and blocking: as PoolBackend says.
class ImageBackend final : public PoolBackend {
 public:
  ImageBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid)
      : kernel_(kernel), layout_(std::move(layout)), pool_uuid_(std::move(pool_uuid)) {}

  PoolBackendKind kind() const override { return PoolBackendKind::kImage; }
  Result<MadeArtefact> Make(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                            const CallOptions& call) override;
  Result<MadeArtefact> Import(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                              const ImportedFile& source, const CallOptions& call) override;
  Status PrepareDiscard(const PoolId& artefact, const StorageObject& recorded,
                        const CallOptions& call) override;
  Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) override;
  Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                            const PoolParameters& parameters, const CallOptions& call) override;
  Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                            bool read_only, const BeforeOpen& before,
                            const CallOptions& call) override;
  Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
              const CallOptions& call) override;
  Result<bool> Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                        const std::vector<std::string>& cgroups, const CallOptions& call) override;
  Status Close(const PoolId& volume, const CallOptions& call) override;
  Result<std::vector<PoolId>> ListOpen(const CallOptions& call) override;
  Result<std::vector<std::string>> ListDevices(const PoolId& volume,
                                               const CallOptions& call) override;
  Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>& volumes,
                                                 OfDamaged damaged,
                                                 const CallOptions& call) override;
  Result<std::vector<MadeCut>> Cut(const std::vector<CutWish>& wishes, const CutLimits& limits,
                                   const CallOptions& call) override;
  Result<MadeArtefact> CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord& source,
                               int64_t bytes_per_second, const CallOptions& call) override;
  Result<MadeArtefact> Materialize(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                                   const PoolCutRecord& cut, const CallOptions& call) override;
  Status DiscardCut(const PoolCutRecord& cut, const CallOptions& call) override;
  Result<ExtentList> ListExtentsOfCut(const PoolCutRecord& cut, int64_t from_offset, uint32_t most,
                                      const CallOptions& call) override;

 private:
  // What a call has begun to make. A directory that was there before has somebody's files, maybe
  // even of a volume that is newer than the records.
  struct Begun {
    std::vector<PoolId> made;
    bool is_all_new = true;
  };
  Status MakeDirectoryOf(const PoolId& id, const std::string& description, Begun& begun,
                         const CallOptions& call);
  // `error`, which is not applied if everything of this is gone again, or was never there.
  Error TakenBack(const Begun& begun, const Error& error, const CallOptions& call);
  Status DiscardFiles(const PoolId& id, const StorageObject& recorded, const CallOptions& call);
  Status CheckObject(const PoolId& id, const StorageObject& recorded, const CallOptions& call);
  // Errors: FailedPrecondition, not applied, of a file that is shorter than the volume.
  Status CheckFileHasItsEnd(const PoolVolumeRecord& volume, const CallOptions& call);
  Status RemoveFiles(const PoolId& id, const CallOptions& call);
  Status RefreshLoops(const PoolId& id, int64_t bytes, const CallOptions& call);
  Result<bool> HasDevice(const PoolId& id, const CallOptions& call);
  CutPart PartOf(const CutWish& wish) const;
  Status CheckTogether(const std::vector<CutWish>& wishes, const CallOptions& call);
  Result<std::vector<MadeCut>> CutAll(const std::vector<CutWish>& wishes, const CutLimits& limits,
                                      const CallOptions& call);
  Result<std::vector<MadeCut>> CutWhileFrozen(const std::vector<CutWish>& wishes,
                                              const CutLimits& limits, const CallOptions& call);
  Error WhyNotCut(const std::vector<CutWish>& wishes, const CutFrozen& request, const Error& error,
                  const CallOptions& call);
  Result<MadeCut> CutUnmounted(const CutWish& wish, const CallOptions& call);
  Result<MadeCut> PromiseCopy(const CutWish& wish, const CallOptions& call);
  Result<MadeArtefact> Fill(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                            const PoolCutRecord& cut, const CallOptions& call);
  Status Configure(const LoopEntry& loop, ConfigureLoop change, const CallOptions& call);
  Status MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged, const CallOptions& call,
                     std::map<PoolId, MadeArtefact>& measured);

  Kernel& kernel_;
  const PoolLayout layout_;
  const std::string pool_uuid_;
};

// A record was decoded, or made, with an id.
inline PoolId IdOf(const PoolVolumeRecord& volume) { return ParsePoolId(volume.id).value(); }
inline PoolId IdOf(const PoolCutRecord& cut) { return ParsePoolId(cut.id).value(); }

MadeArtefact ArtefactOf(const FileExtent& file);
// Whether the file is to have all of its blocks from the beginning.
bool Allocates(const PoolParameters& parameters);

// Root's alone: a pod sees a volume by its device, and never by its file.
inline constexpr uint32_t kPoolImageMode = 0600;

}  // namespace volumed
