#include "pool/tree_backend.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "pool/artefact_directory.h"

namespace volumed {
namespace {

// In one round trip to a worker; there are two requests for each.
constexpr size_t kTreesMeasuredAtOnce = 128;

}  // namespace

// ---- making and discarding ----------------------------------------------------------------------

Status TreeBackend::CheckObject(const PoolId& id, const StorageObject& recorded,
                                const CallOptions& call) {
  if (recorded.inode == 0) return OkStatus();
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   kernel_.Call(IdentifyStorage{.path = layout_.Data(id)}, call));
  return CheckIsRecorded(id, recorded, there);
}

Status TreeBackend::CheckIsRecorded(const PoolId& id, const StorageObject& recorded,
                                    const StorageIdentity& there) const {
  if (recorded.inode == 0 || there.type == FileType::kMissing) return OkStatus();
  const std::string difference = StorageDifference(recorded, there.object);
  if (difference.empty()) return OkStatus();
  return Error::NotApplied(
      Code::kFailedPrecondition,
      layout_.Data(id).Display() + " is another directory than the one on record: " + difference);
}

Result<MadeArtefact> TreeBackend::Look(const PoolId& id, int64_t size_bytes,
                                       const CallOptions& call) {
  const Result<StorageIdentity> there =
      kernel_.Call(IdentifyStorage{.path = layout_.Data(id)}, call);
  if (!there.ok()) return there.error().AsMaybeApplied();
  if (there->type != FileType::kDirectory) {
    return Error::MaybeApplied(Code::kInternal, layout_.Data(id).Display() + " is no directory");
  }
  MadeArtefact made{.object = there->object, .size_bytes = size_bytes, .allocated_bytes = 0};
  const Result<TreeQuota> quota = kernel_.Call(ReadTreeQuota{layout_.Data(id)}, call);
  if (quota.ok()) {
    made.project_id = OwnProjectOf(id, *quota);
    if (IsOwnAccount(id, *quota)) made.allocated_bytes = quota->used_bytes;
  } else if (!IsNoQuota(quota.error())) {
    return quota.error().AsMaybeApplied();
  }
  return made;
}

Status TreeBackend::PrepareDiscard(const PoolId& id, const StorageObject& recorded,
                                   const CallOptions& call) {
  RETURN_IF_ERROR(CheckObject(id, recorded, call));
  return CheckArtefactNotMounted(kernel_, layout_, id, call);
}

Status TreeBackend::DiscardTree(const PoolId& id, const StorageObject& recorded, uint32_t project,
                                const CallOptions& call) {
  const SafePath data = layout_.Data(id);
  ASSIGN_OR_RETURN(const StorageIdentity there, kernel_.Call(IdentifyStorage{.path = data}, call));
  if (there.type != FileType::kMissing) {
    RETURN_IF_ERROR(CheckIsRecorded(id, recorded, there));
    RETURN_IF_ERROR(CheckArtefactNotMounted(kernel_, layout_, id, call));
    if (there.type == FileType::kDirectory) {
      RETURN_IF_ERROR(FreeQuota(id, there.object, project, call));
    }
    RETURN_IF_ERROR(RemoveData(data, there.object, call));
  }
  return RemoveArtefactDirectory(kernel_, layout_, id, {}, call);
}

// A pool that is full must be free to say so for certain: what was made goes again. What an earlier
// call has made stays, since records of an earlier moment may not know that it has content by now.
Error TreeBackend::TakenBack(const PoolId& id, bool made, const Error& error,
                             const CallOptions& call) {
  if (error.maybe_applied()) return error;
  if (!made || !DiscardTree(id, {}, 0, call).ok()) return error.AsMaybeApplied();
  return error;
}

Status TreeBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  return DiscardTree(TreeIdOf(volume.id), volume.object, volume.project_id, call);
}

// No cut has a project.
Status TreeBackend::DiscardCut(const PoolCutRecord& cut, const CallOptions& call) {
  return DiscardTree(TreeIdOf(cut.id), cut.object, 0, call);
}

// The description comes after the directory, whose name is on the disk by that.
Result<MadeArtefact> TreeBackend::Make(const PoolVolumeRecord& volume,
                                       const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
  Status made = MakeData(layout_.Data(id), call);
  if (made.ok()) {
    made = DescribeArtefact(kernel_, layout_, id, DescriptionOf(volume, pool_uuid_),
                            DescriptionSync::kNow, call);
  }
  if (made.ok()) made = Bound(volume, volume.capacity_bytes, parameters, call);
  if (!made.ok()) return TakenBack(id, is_new, made.error(), call);
  return Look(id, volume.capacity_bytes, call);
}

Result<OpenedVolume> TreeBackend::Open(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                       bool /*read_only*/, const BeforeOpen& /*before*/,
                                       const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   kernel_.Call(IdentifyStorage{.path = layout_.Data(id)}, call));
  if (there.type != FileType::kDirectory) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             layout_.Data(id).Display() + " is not there, or no directory");
  }
  RETURN_IF_ERROR(CheckIsRecorded(id, volume.object, there));
  OpenedVolume opened;
  opened.directory = layout_.Data(id);
  RETURN_IF_ERROR(KeepBounded(volume, tuning, opened, call));
  return opened;
}

// ---- measuring ----------------------------------------------------------------------------------

Status TreeBackend::MeasureSome(const std::vector<PoolId>& volumes, OfDamaged damaged,
                                const CallOptions& call, std::map<PoolId, MadeArtefact>& measured) {
  Batch batch{.path = layout_.Directory(), .items = {}};
  for (const PoolId& id : volumes) {
    batch.items.push_back({.request = Stat{layout_.Data(id)}});
    batch.items.push_back({.request = ReadTreeQuota{layout_.Data(id)}});
  }
  ASSIGN_OR_RETURN(const BatchAnswer answer, kernel_.Call(batch, call));
  for (size_t at = 0; at < volumes.size() && 2 * at + 1 < answer.items.size(); ++at) {
    const Result<AnyAnswer>& stat = answer.items[2 * at].result;
    if (!stat.ok() && damaged == OfDamaged::kError) {
      return stat.error().With(volumes[at].ToString());
    }
    const auto* info = stat.ok() ? std::get_if<FileInfo>(&stat.value()) : nullptr;
    if (info == nullptr || info->type != FileType::kDirectory) continue;
    const Result<AnyAnswer>& read = answer.items[2 * at + 1].result;
    if (!read.ok() && !IsNoQuota(read.error())) {
      if (damaged == OfDamaged::kError) return read.error().With(volumes[at].ToString());
      continue;
    }
    const auto* quota = read.ok() ? std::get_if<TreeQuota>(&read.value()) : nullptr;
    MadeArtefact& there = measured[volumes[at]];
    if (quota != nullptr && quota->kind != TreeQuotaKind::kQgroup) {
      there.project_id = static_cast<uint32_t>(quota->id);
    }
    // The figures of another project are another's.
    if (quota != nullptr && !IsOwnAccount(volumes[at], *quota)) quota = nullptr;
    if (quota != nullptr) there.allocated_bytes = quota->used_bytes;
    const int64_t limit = quota == nullptr ? 0 : quota->limit_bytes;
    there.size_bytes = limit > 0 ? limit : std::max(there.allocated_bytes, kPoolBlockBytes);
  }
  return OkStatus();
}

Result<std::map<PoolId, MadeArtefact>> TreeBackend::Measure(const std::vector<PoolId>& volumes,
                                                            OfDamaged damaged,
                                                            const CallOptions& call) {
  std::map<PoolId, MadeArtefact> measured;
  for (size_t at = 0; at < volumes.size(); at += kTreesMeasuredAtOnce) {
    const auto begin = volumes.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t count = std::min(kTreesMeasuredAtOnce, volumes.size() - at);
    RETURN_IF_ERROR(
        MeasureSome({begin, begin + static_cast<std::ptrdiff_t>(count)}, damaged, call, measured));
  }
  return measured;
}

// ---- contents -----------------------------------------------------------------------------------

Result<std::vector<MadeCut>> TreeBackend::Cut(const std::vector<CutWish>& wishes,
                                              const CutLimits& /*limits*/,
                                              const CallOptions& call) {
  if (wishes.size() > 1) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volumes of backend " + std::string(PoolBackendName(kind())) +
                                 " cannot be cut at one moment with others");
  }
  std::vector<MadeCut> made;
  for (const CutWish& wish : wishes) {
    const PoolId id = TreeIdOf(wish.cut.id);
    RETURN_IF_ERROR(CheckObject(TreeIdOf(wish.source.id), wish.source.object, call));
    ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
    RETURN_IF_ERROR(DescribeArtefact(kernel_, layout_, id, DescriptionOf(wish.cut, pool_uuid_),
                                     DescriptionSync::kNow, call));
    Result<MadeCut> one = CutOne(wish, call);
    if (!one.ok()) return TakenBack(id, is_new, one.error(), call);
    made.push_back(*std::move(one));
  }
  return made;
}

Result<MadeArtefact> TreeBackend::MakeAround(const PoolVolumeRecord& volume,
                                             const std::function<Result<bool>()>& fill,
                                             const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
  RETURN_IF_ERROR(DescribeArtefact(kernel_, layout_, id, DescriptionOf(volume, pool_uuid_),
                                   DescriptionSync::kNow, call));
  const Result<bool> filled = fill();
  if (!filled.ok()) return TakenBack(id, is_new, filled.error(), call);
  ASSIGN_OR_RETURN(MadeArtefact made, Look(id, volume.capacity_bytes, call));
  made.shares_blocks = *filled;
  return made;
}

Result<MadeArtefact> TreeBackend::Materialize(const PoolVolumeRecord& volume,
                                              const PoolParameters& parameters,
                                              const PoolCutRecord& cut, const CallOptions& call) {
  return MakeAround(
      volume, [&] { return FillData(volume, parameters, cut, call); }, call);
}

Result<ExtentList> TreeBackend::ListExtentsOfCut(const PoolCutRecord& cut, int64_t /*from_offset*/,
                                                 uint32_t /*most*/, const CallOptions& /*call*/) {
  return Error::NotApplied(Code::kFailedPrecondition,
                           "snapshot " + cut.id + " is one of a " +
                               std::string(PoolBackendName(cut.backend)) +
                               ", and has no blocks that could be told apart");
}

}  // namespace volumed
