// TreeBackend: what the backends have in common whose volumes are directories of the pool's own
// filesystem, at <pool>/volumes/<id>/data, and whose cuts are such directories at
// <pool>/cuts/<id>/data. Nobody is shown them by a device: they are bound where they are wanted.
//
// A limit is set where the filesystem can bound a directory. A class that does not insist on one
// (quota: best-effort) has volumes without it where it cannot.
//
// Limits are in tree_backend_limits.cc. Private to directory_backend and subvolume_backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mounter/mount_refs.h"
#include "pool/pool_backend.h"

namespace volumed {

// The project that a directory has, if it is one of those that are chosen for the volume of this
// id; else 0. Pure.
uint32_t OwnProjectOf(const PoolId& id, const TreeQuota& quota);
// Whether what is counted is the volume's: not if it is of a project that was not chosen for it.
// Pure.
bool IsOwnAccount(const PoolId& id, const TreeQuota& quota);
// That the filesystem cannot bound a directory.
inline bool IsNoQuota(const Error& error) { return error.code() == Code::kUnimplemented; }

// Threads and blocking: as PoolBackend says.
class TreeBackend : public PoolBackend {
 public:
  Status PrepareDiscard(const PoolId& artefact, const StorageObject& recorded,
                        const CallOptions& call) final;
  Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) override;
  Result<MadeArtefact> Make(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                            const CallOptions& call) final;
  Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                            const PoolParameters& parameters, const CallOptions& call) final;
  Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                            bool read_only, const BeforeOpen& before,
                            const CallOptions& call) final;
  Status Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
              const CallOptions& call) final;
  Result<bool> Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                        const std::vector<std::string>& cgroups, const CallOptions& call) final;
  // Nothing is open of a directory that is bound nowhere.
  Status Close(const PoolId&, const CallOptions&) final { return OkStatus(); }
  Result<std::vector<PoolId>> ListOpen(const CallOptions&) final { return std::vector<PoolId>(); }
  Result<std::map<PoolId, MadeArtefact>> Measure(const std::vector<PoolId>& volumes,
                                                 OfDamaged damaged, const CallOptions& call) final;
  Result<std::vector<MadeCut>> Cut(const std::vector<CutWish>& wishes, const CutLimits& limits,
                                   const CallOptions& call) final;
  Result<MadeArtefact> Materialize(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                                   const PoolCutRecord& cut, const CallOptions& call) final;
  Status DiscardCut(const PoolCutRecord& cut, const CallOptions& call) final;
  // Only of one file can it be said where its bytes lie.
  Result<ExtentList> ListExtentsOfCut(const PoolCutRecord& cut, int64_t from_offset, uint32_t most,
                                      const CallOptions& call) final;

 protected:
  TreeBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid)
      : kernel_(kernel), layout_(std::move(layout)), pool_uuid_(std::move(pool_uuid)) {}

  // Makes an empty directory at `data`, or finds the one that an earlier call has made.
  virtual Status MakeData(const SafePath& data, const CallOptions& call) = 0;
  // Removes what is at `data`, if it is there. REQUIRES: it is the recorded one.
  virtual Status RemoveData(const SafePath& data, const StorageObject& recorded,
                            const CallOptions& call) = 0;
  // Fills a volume with a cut and bounds it. Whether it shares its blocks with that.
  virtual Result<bool> FillData(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                                const PoolCutRecord& cut, const CallOptions& call) = 0;
  // Cuts one; nothing is there yet but the cut's directory. Errors: as Cut.
  virtual Result<MadeCut> CutOne(const CutWish& wish, const CallOptions& call) = 0;

  // Whether somebody else has given the directory to a project, whose limit it has.
  Result<bool> IsOfForeignProject(const PoolId& id, const CallOptions& call);
  // Bounds the volume to `bytes`, or to what its tuning says. Errors: FailedPrecondition, not
  // applied, if the filesystem cannot, and the class insists, and if the directory is of another
  // project than the one on record; InvalidArgument, not applied, of one that is being made, if its
  // tuning asks for a limit that cannot be.
  Status Bound(const PoolVolumeRecord& volume, int64_t bytes, const PoolParameters& parameters,
               const CallOptions& call);
  // What is there, with its object, and of this size. Errors: maybe applied.
  Result<MadeArtefact> Look(const PoolId& id, int64_t size_bytes, const CallOptions& call);
  // Errors, not applied: FailedPrecondition for another directory than the recorded one.
  Status CheckObject(const PoolId& id, const StorageObject& recorded, const CallOptions& call);
  // CheckObject of what was identified just now.
  Status CheckIsRecorded(const PoolId& id, const StorageObject& recorded,
                         const StorageIdentity& there) const;

  Kernel& kernel_;
  const PoolLayout layout_;
  const std::string pool_uuid_;

  // Makes the directory of a volume around what `fill` makes in it, which says whether that shares
  // its blocks with others. What was made goes again if it fails for certain.
  Result<MadeArtefact> MakeAround(const PoolVolumeRecord& volume,
                                  const std::function<Result<bool>()>& fill,
                                  const CallOptions& call);

 private:
  // Sets the limit of the volume, whose directory is bounded so `now`. Errors: Unimplemented, not
  // applied, if it cannot be bounded; FailedPrecondition, not applied, if it is of another project
  // than the one on record, whose limit stays as it is.
  Result<TreeQuota> SetQuota(const PoolVolumeRecord& volume, const TreeQuota& now, int64_t bytes,
                             const CallOptions& call);
  Result<TreeQuota> ReadAndSetQuota(const PoolVolumeRecord& volume, int64_t bytes,
                                    const CallOptions& call);
  // Takes the limit of the volume's project away, which is `project`, or, if that is 0, the own one
  // that its directory has. Nobody may have the volume any more.
  Status FreeQuota(const PoolId& id, const StorageObject& there, uint32_t project,
                   const CallOptions& call);
  // Sets the limit again if it is not there any more, and says in `opened` what came of it.
  Status KeepBounded(const PoolVolumeRecord& volume, const PoolTuning& tuning, OpenedVolume& opened,
                     const CallOptions& call);
  // To whom has a class that insists on a limit.
  Error WhyNotBounded(const Error& error) const;
  Status DiscardTree(const PoolId& id, const StorageObject& recorded, uint32_t project,
                     const CallOptions& call);
  Error TakenBack(const PoolId& id, bool made, const Error& error, const CallOptions& call);
  Status MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged, const CallOptions& call,
                     std::map<PoolId, MadeArtefact>& measured);
};

// A record was decoded, or made, with an id.
inline PoolId TreeIdOf(const std::string& id) { return ParsePoolId(id).value(); }

}  // namespace volumed
