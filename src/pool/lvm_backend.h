// The lvm backend: a volume is a thin logical volume that is called by its id, and a cut of it a
// thin snapshot that takes no writes. Each bears a tag with its id, and has its UUID on record:
// what lacks the one, or has not the other, is somebody else's and left as it is. In the pool's
// directory each has a directory with its description, so that one whose row was lost is noticed.
//
// None is ever active by itself: it is activated when it is opened, and deactivated when it is
// closed. LVM does not know what one that is not active has of the thin pool; so that is in a file
// beside the description as long as it is not active. Without that file it counts as having nothing
// yet, so that all of it is outstanding.
//
// Whoever writes to a volume is held up by device-mapper while it is cut, after that has flushed
// the filesystem that is on it: the agent freezes nothing.
//
// Private to lvm_backend.cc and lvm_backend_cuts.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pool/lvm_tools.h"
#include "pool/pool_backend.h"

namespace volumed {

// As records have it. Pure.
StorageObject LogicalVolumeObject(const LogicalVolume& volume);

// Threads and blocking: as PoolBackend says.
class LvmBackend final : public PoolBackend {
 public:
  LvmBackend(Kernel& kernel, PoolLayout layout, std::string pool_uuid, LvmNames names)
      : kernel_(kernel),
        layout_(std::move(layout)),
        pool_uuid_(std::move(pool_uuid)),
        tools_(kernel, std::move(names)) {}

  PoolBackendKind kind() const override { return PoolBackendKind::kLvm; }
  Result<MadeArtefact> Make(const PoolVolumeRecord& volume, const PoolParameters& parameters,
                            const CallOptions& call) override;
  Status PrepareDiscard(const PoolId& artefact, const StorageObject& recorded,
                        const CallOptions& call) override;
  Status Discard(const PoolVolumeRecord& volume, const CallOptions& call) override;
  Result<MadeArtefact> Grow(const PoolVolumeRecord& volume, int64_t bytes,
                            const PoolParameters& parameters, const CallOptions& call) override;
  Result<OpenedVolume> Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                            bool read_only, const BeforeOpen& before,
                            const CallOptions& call) override;
  // CheckTuning lets only a throttle in, which is no tuning of the device.
  Status Tune(const PoolVolumeRecord&, const PoolTuning&, const CallOptions&) override {
    return OkStatus();
  }
  Result<bool> Throttle(const PoolVolumeRecord& volume, const IoLimits& limits,
                        const std::vector<std::string>& cgroups, const CallOptions& call) override;
  Status Close(const PoolId& volume, const CallOptions& call) override;
  Result<std::vector<PoolId>> ListOpen(const CallOptions& call) override;
  Result<std::vector<std::string>> ListDevices(const PoolId& volume,
                                               const CallOptions& call) override;
  Status EndHalfDone(const CallOptions& call) override;
  Result<std::optional<PoolRoom>> MeasureRoom(const CallOptions& call) override;
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
  using Found = std::map<std::string, LogicalVolume>;
  using MakeIt = std::function<Result<LvmTools::Complaint>()>;

  // The logical volume of an id, if it is there. Whoever was held up by it is not any more. Errors,
  // not applied: FailedPrecondition for another one than the recorded one, or somebody else's.
  Result<std::optional<LogicalVolume>> Look(const std::string& id, const StorageObject& recorded,
                                            const CallOptions& call) const;
  // Errors also: FailedPrecondition, not applied, if it is not there.
  Result<LogicalVolume> Need(const std::string& id, const StorageObject& recorded,
                             const CallOptions& call) const;
  Status CheckIsOurs(const LogicalVolume& there, const std::string& id,
                     const StorageObject& recorded) const;
  Status Resume(const LogicalVolume& suspended, const CallOptions& call) const;
  // Those of these names, and the thin pool, which is resumed first if it is suspended: whatever
  // uses it waits for that, a tool of LVM too.
  Result<Found> FindWithPool(std::vector<std::string> names, const CallOptions& call) const;
  // Why the thin pool takes nothing more; OK if it does.
  Status CheckThinPool(const Found& found) const;
  // Makes what is called by the id, with its directory, unless an earlier call has. `call` has to
  // be answered by what is there afterwards.
  Result<LogicalVolume> MakeOne(const PoolId& id, const std::string& description,
                                const MakeIt& make_it, const CallOptions& call);
  Result<LogicalVolume> MakeNow(const std::string& id, const MakeIt& make_it,
                                const CallOptions& call);
  // `error`, which is not applied if everything of it is gone again.
  Error TakenBack(const PoolId& id, bool is_new, const Error& error, const CallOptions& call);
  Result<LogicalVolume> ExtendTo(const LogicalVolume& there, int64_t bytes,
                                 const CallOptions& call) const;
  // Errors, not applied: FailedPrecondition if somebody has its device open, mounted or bound.
  Status CheckNobodyHas(const LogicalVolume& there, const CallOptions& call) const;
  Status DiscardOne(const PoolId& id, const StorageObject& recorded, const CallOptions& call);
  // It has a device from then on, which takes writes or not.
  Result<LogicalVolume> Activated(const LogicalVolume& there, bool read_only,
                                  const CallOptions& call) const;
  Status Deactivate(const LogicalVolume& there, const CallOptions& call) const;
  Status RunBefore(const PoolVolumeRecord& volume, const LogicalVolume& there,
                   const BeforeOpen& before, const CallOptions& call) const;
  Result<IdentifiedDevice> Identify(const LogicalVolume& there, const CallOptions& call) const;

  SafePath MappedFile(const PoolId& id) const;
  // Notes what one that is not active has of the thin pool. That it cannot be written down is no
  // error: what is not known counts as nothing, which is the careful way.
  void NoteMapped(const PoolId& id, int64_t bytes, const CallOptions& call) const;
  // What each of those that are not active has of the thin pool, if that is known.
  Result<std::map<PoolId, int64_t>> ReadMapped(const std::vector<PoolId>& ids,
                                               const CallOptions& call) const;
  Result<MadeCut> CutOne(const CutWish& wish, const CallOptions& call);
  // What the source has for certain, and may have at most.
  Result<std::pair<int64_t, int64_t>> MappedOf(const LogicalVolume& source, const PoolId& id,
                                               const CallOptions& call) const;

  Kernel& kernel_;
  const PoolLayout layout_;
  const std::string pool_uuid_;
  const LvmTools tools_;
};

// A record was decoded, or made, with an id.
inline PoolId LvmIdOf(const std::string& id) { return ParsePoolId(id).value(); }

}  // namespace volumed
