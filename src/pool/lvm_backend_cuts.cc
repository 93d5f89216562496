// The cuts of volumes that are thin logical volumes, and what is made of them.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/byte_text.h"
#include "pool/artefact_directory.h"
#include "pool/lvm_backend.h"

namespace volumed {

Result<std::pair<int64_t, int64_t>> LvmBackend::MappedOf(const LogicalVolume& source,
                                                         const PoolId& id,
                                                         const CallOptions& call) const {
  if (source.data_used) return std::pair(UsedAtLeast(source), UsedAtMost(source));
  ASSIGN_OR_RETURN(const auto mapped, ReadMapped({id}, call));
  const auto noted = mapped.find(id);
  if (noted == mapped.end()) return std::pair(int64_t{0}, source.size_bytes);
  // It was written down from what lvs had rounded.
  const int64_t rounding = source.size_bytes / (kWholeInHundredths / 2) + 1;
  return std::pair(noted->second, std::min(noted->second + rounding, source.size_bytes));
}

// One that was there is of an earlier moment than this call's.
Result<MadeCut> LvmBackend::CutOne(const CutWish& wish, const CallOptions& call) {
  const PoolId id = LvmIdOf(wish.cut.id);
  const PoolId source = LvmIdOf(wish.source.id);
  ASSIGN_OR_RETURN(const LogicalVolume before, Need(wish.source.id, wish.source.object, call));
  ASSIGN_OR_RETURN(const std::optional<LogicalVolume> earlier, Look(wish.cut.id, {}, call));
  if (earlier) {
    return Error::MaybeApplied(Code::kAborted, "there is a cut of an earlier call already");
  }
  ASSIGN_OR_RETURN(const auto mapped_before, MappedOf(before, source, call));
  LvmTools::Complaint complaint;
  const MakeIt make_it = [&]() -> Result<LvmTools::Complaint> {
    ASSIGN_OR_RETURN(complaint,
                     tools_.MakeSnapshot(wish.source.id, wish.cut.id, LvmTagOf(wish.cut.id),
                                         /*read_only=*/true, call));
    return complaint;
  };
  ASSIGN_OR_RETURN(const LogicalVolume made,
                   MakeOne(id, DescriptionOf(wish.cut, pool_uuid_), make_it, call));
  // LVM may have noted it, and told the thin pool later, or not yet: of no moment that is known.
  if (!complaint.empty()) {
    return Error::MaybeApplied(
        Code::kAborted, "the cut of volume " + wish.source.id + " does not count: " + complaint);
  }
  // Whoever writes to the source, or discards something of it, did so meanwhile.
  const Result<LogicalVolume> after = Need(wish.source.id, wish.source.object, call);
  if (!after.ok()) return after.error().AsMaybeApplied();
  const auto mapped_after = MappedOf(*after, source, call);
  if (!mapped_after.ok()) return mapped_after.error().AsMaybeApplied();
  NoteMapped(id, std::min(mapped_before.first, mapped_after->first), call);
  MadeCut cut;
  cut.artefact.object = LogicalVolumeObject(made);
  cut.artefact.size_bytes = wish.source.capacity_bytes;
  cut.artefact.allocated_bytes = std::max(mapped_before.second, mapped_after->second);
  cut.artefact.shares_blocks = true;
  return cut;
}

// LVM makes one snapshot after the other, and nothing holds the first one's volume still meanwhile.
Result<std::vector<MadeCut>> LvmBackend::Cut(const std::vector<CutWish>& wishes, const CutLimits&,
                                             const CallOptions& call) {
  if (wishes.size() > 1) {
    return Error::NotApplied(
        Code::kFailedPrecondition,
        "volumes of backend lvm cannot be cut at one moment with others: LVM cuts one at a time");
  }
  std::vector<MadeCut> made;
  for (const CutWish& wish : wishes) {
    ASSIGN_OR_RETURN(MadeCut one, CutOne(wish, call));
    made.push_back(std::move(one));
  }
  return made;
}

Result<MadeArtefact> LvmBackend::CopyCut(const PoolCutRecord& cut, const PoolVolumeRecord&, int64_t,
                                         const CallOptions&) {
  return Error::NotApplied(Code::kInternal,
                           "cut " + cut.id + " of a logical volume is never a copy");
}

Result<MadeArtefact> LvmBackend::Materialize(const PoolVolumeRecord& volume, const PoolParameters&,
                                             const PoolCutRecord& cut, const CallOptions& call) {
  const PoolId id = LvmIdOf(volume.id);
  ASSIGN_OR_RETURN(const LogicalVolume source,
                   Need(cut.id, cut.object, call).With("snapshot " + cut.id));
  if (source.size_bytes < cut.size_bytes) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "the logical volume of snapshot " + cut.id + " has " +
                                 BytesForPeople(source.size_bytes) + ", and had " +
                                 BytesForPeople(cut.size_bytes) + " when it was cut");
  }
  ASSIGN_OR_RETURN(const auto mapped, MappedOf(source, LvmIdOf(cut.id), call));
  const MakeIt make_it = [&] {
    return tools_.MakeSnapshot(cut.id, volume.id, LvmTagOf(volume.id), /*read_only=*/false, call);
  };
  ASSIGN_OR_RETURN(const LogicalVolume made,
                   MakeOne(id, DescriptionOf(volume, pool_uuid_), make_it, call));
  const Result<LogicalVolume> whole = ExtendTo(made, volume.capacity_bytes, call);
  if (!whole.ok()) return whole.error().AsMaybeApplied();
  NoteMapped(id, mapped.first, call);
  return MadeArtefact{.object = LogicalVolumeObject(*whole),
                      .size_bytes = whole->size_bytes,
                      .allocated_bytes = mapped.first,
                      .shares_blocks = true};
}

// A tool that was killed amid the cut may have left its source held up.
Status LvmBackend::DiscardCut(const PoolCutRecord& cut, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Found found, FindWithPool({cut.volume}, call));
  const auto source = found.find(cut.volume);
  const bool is_held_up = source != found.end() && source->second.is_suspended &&
                          CheckIsOurs(source->second, cut.volume, {}).ok();
  if (is_held_up) RETURN_IF_ERROR(Resume(source->second, call));
  return DiscardOne(LvmIdOf(cut.id), cut.object, call);
}

Result<ExtentList> LvmBackend::ListExtentsOfCut(const PoolCutRecord& cut, int64_t /*from_offset*/,
                                                uint32_t /*most*/, const CallOptions& /*call*/) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "snapshot " + cut.id +
                               " is a logical volume, of which only the thin pool knows where its "
                               "bytes lie");
}

}  // namespace volumed
