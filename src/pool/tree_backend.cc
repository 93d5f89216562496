#include "pool/tree_backend.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "mounter/mount_refs.h"
#include "pool/artefact_directory.h"

namespace volumed {
namespace {

// In one round trip to a worker; there are two requests for each.
constexpr size_t kTreesMeasuredAtOnce = 128;

// Projects that are not this program's are small numbers in general (/etc/projid). One that is
// taken is met, and passed over, when it is set.
constexpr uint32_t kFirstProject = 0x40000000;
constexpr uint32_t kProjects = 0x3fffffff;
constexpr uint32_t kProjectsTried = 64;

// FNV-1a, so that volumes begin to look at different places.
uint32_t HashOfId(const std::string& text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// Another one is whoever's who gave the pool's directory to it, and so is its limit.
bool IsOwnProject(const TreeQuota& quota) {
  return quota.kind == TreeQuotaKind::kProject && quota.id >= kFirstProject &&
         quota.id - kFirstProject < kProjects;
}

bool IsUnsupported(const Error& error) { return error.code() == Code::kUnimplemented; }

}  // namespace

// ---- limits -------------------------------------------------------------------------------------

Result<bool> TreeBackend::IsOfForeignProject(const PoolId& id, const CallOptions& call) {
  const Result<TreeQuota> now = kernel_.Call(ReadTreeQuota{layout_.Data(id)}, call);
  if (!now.ok()) return IsUnsupported(now.error()) ? Result<bool>(false) : now.error();
  return now->kind == TreeQuotaKind::kProject && !IsOwnProject(*now);
}

// The project is on the directory, where it is found again. The kernel refuses one that the
// directory has from the pool's. What is in a directory before it has its project is of none, so
// that the limit would bound only what comes later, and the figures would be wrong.
Status TreeBackend::SetQuota(const PoolId& id, const StorageObject& recorded, int64_t bytes,
                             const CallOptions& call) {
  const SafePath data = layout_.Data(id);
  ASSIGN_OR_RETURN(const TreeQuota now, kernel_.Call(ReadTreeQuota{data}, call));
  SetTreeQuota set{.path = data, .expected = recorded};
  set.bytes = bytes;
  if (kind() == PoolBackendKind::kSubvolume || IsOwnProject(now)) {
    RETURN_IF_ERROR(kernel_.Call(set, call));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const DirectoryListing there, kernel_.Call(ListDirectory{data}, call));
  if (!there.entries.empty()) {
    return Error::NotApplied(Code::kUnimplemented,
                             "there are files in " + data.Display() +
                                 " already, and project quota counts only what is made later");
  }
  const uint32_t first = HashOfId(id.ToString()) % kProjects;
  for (uint32_t i = 0; i < kProjectsTried; ++i) {
    set.project_id = kFirstProject + (first + i) % kProjects;
    const Result<TreeQuota> done = kernel_.Call(set, call);
    if (done.ok()) return OkStatus();
    if (done.error().code() != Code::kAlreadyExists) return done.error();
  }
  return Error::NotApplied(Code::kResourceExhausted,
                           "no number is free for the project of " + data.Display());
}

// The limit of a project outlives the files: without this the filesystem would keep it for ever,
// and whoever looks at its projects would see those of all volumes that there have been.
Status TreeBackend::FreeQuota(const PoolId& id, const StorageObject& there,
                              const CallOptions& call) {
  const SafePath data = layout_.Data(id);
  const Result<TreeQuota> quota = kernel_.Call(ReadTreeQuota{data}, call);
  if (!quota.ok()) return IsUnsupported(quota.error()) ? OkStatus() : Status(quota.error());
  if (!IsOwnProject(*quota) || quota->limit_bytes == 0) return OkStatus();
  RETURN_IF_ERROR(kernel_.Call(SetTreeQuota{.path = data, .expected = there}, call));
  return OkStatus();
}

Status TreeBackend::Bound(const PoolVolumeRecord& volume, int64_t bytes,
                          const PoolParameters& parameters, const CallOptions& call) {
  const Result<PoolTuning> tuning = ParsePoolTuning(volume.mutable_parameters);
  if (!tuning.ok()) return tuning.error();
  const int64_t most = std::min(bytes, tuning->quota_bytes.value_or(bytes));
  const Status set = SetQuota(TreeIdOf(volume.id), volume.object, most, call);
  if (set.ok() || !IsUnsupported(set.error())) return set;
  if (parameters.quota == PoolQuota::kBestEffort) return OkStatus();
  return Error::FromParts(Code::kFailedPrecondition, set.error().outcome(), 0,
                          "the size of a volume of backend " +
                              std::string(PoolBackendName(kind())) +
                              " cannot be bounded here, and its class does not say \"quota\": "
                              "\"best-effort\": " +
                              set.error().message());
}

Status TreeBackend::Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                         const CallOptions& call) {
  if (!tuning.quota_bytes) return OkStatus();
  if (*tuning.quota_bytes > volume.capacity_bytes) {
    return Error::NotApplied(Code::kInvalidArgument,
                             "quotaBytes is more than the size of volume " + volume.id + ", " +
                                 std::to_string(volume.capacity_bytes) + " bytes");
  }
  const Status set = SetQuota(TreeIdOf(volume.id), volume.object, *tuning.quota_bytes, call);
  if (set.ok() || !IsUnsupported(set.error())) return set;
  return Error::NotApplied(Code::kInvalidArgument, set.error().message());
}

// CheckTuning lets none of it in.
Result<bool> TreeBackend::Throttle(const PoolVolumeRecord& volume, const IoLimits&,
                                   const std::vector<std::string>&, const CallOptions&) {
  return Error::NotApplied(Code::kFailedPrecondition, "volume " + volume.id + " has no device");
}

Result<MadeArtefact> TreeBackend::Grow(const PoolVolumeRecord& volume, int64_t bytes,
                                       const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  RETURN_IF_ERROR(CheckObject(id, volume.object, call));
  RETURN_IF_ERROR(Bound(volume, bytes, parameters, call));
  return Look(id, bytes, call);
}

// ---- making and discarding ----------------------------------------------------------------------

Status TreeBackend::CheckObject(const PoolId& id, const StorageObject& recorded,
                                const CallOptions& call) {
  if (recorded.inode == 0) return OkStatus();
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   kernel_.Call(IdentifyStorage{.path = layout_.Data(id)}, call));
  if (there.type == FileType::kMissing) return OkStatus();
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
    made.allocated_bytes = quota->used_bytes;
  } else if (!IsUnsupported(quota.error())) {
    return quota.error().AsMaybeApplied();
  }
  return made;
}

Status TreeBackend::DiscardTree(const PoolId& id, const StorageObject& recorded,
                                const CallOptions& call) {
  const SafePath data = layout_.Data(id);
  ASSIGN_OR_RETURN(const StorageIdentity there, kernel_.Call(IdentifyStorage{.path = data}, call));
  if (there.type != FileType::kMissing) {
    RETURN_IF_ERROR(CheckObject(id, recorded, call));
    // Whoever has it bound would have it under his hands.
    ASSIGN_OR_RETURN(const std::vector<std::string> places,
                     FindMountRefs(kernel_, data.Display(), call));
    if (!places.empty()) {
      return Error::NotApplied(Code::kFailedPrecondition,
                               data.Display() + " is mounted at " + places.front());
    }
    if (there.type == FileType::kDirectory) RETURN_IF_ERROR(FreeQuota(id, there.object, call));
    RETURN_IF_ERROR(RemoveData(data, there.object, call));
  }
  return RemoveArtefactDirectory(kernel_, layout_, id, {}, call);
}

// A pool that is full must be free to say so for certain: what was made goes again. What an earlier
// call has made stays, since records of an earlier moment may not know that it has content by now.
Error TreeBackend::TakenBack(const PoolId& id, bool made, const Error& error,
                             const CallOptions& call) {
  if (error.maybe_applied()) return error;
  if (!made || !DiscardTree(id, {}, call).ok()) return error.AsMaybeApplied();
  return error;
}

Status TreeBackend::Discard(const PoolVolumeRecord& volume, const CallOptions& call) {
  return DiscardTree(TreeIdOf(volume.id), volume.object, call);
}

Status TreeBackend::DiscardCut(const PoolCutRecord& cut, const CallOptions& call) {
  return DiscardTree(TreeIdOf(cut.id), cut.object, call);
}

// The description comes after the directory, whose name is on the disk by that.
Result<MadeArtefact> TreeBackend::Make(const PoolVolumeRecord& volume,
                                       const PoolParameters& parameters, const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const bool is_new, MakeArtefactDirectory(kernel_, layout_, id, call));
  Status made = MakeData(layout_.Data(id), call);
  if (made.ok()) {
    made = DescribeArtefact(kernel_, layout_, id, DescriptionOf(volume, pool_uuid_), call);
  }
  if (made.ok()) made = Bound(volume, volume.capacity_bytes, parameters, call);
  if (!made.ok()) return TakenBack(id, is_new, made.error(), call);
  return Look(id, volume.capacity_bytes, call);
}

Result<OpenedVolume> TreeBackend::Open(const PoolVolumeRecord& volume, const PoolTuning&,
                                       bool /*read_only*/, const BeforeOpen& /*before*/,
                                       const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  ASSIGN_OR_RETURN(const StorageIdentity there,
                   kernel_.Call(IdentifyStorage{.path = layout_.Data(id)}, call));
  if (there.type != FileType::kDirectory) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             layout_.Data(id).Display() + " is not there, or no directory");
  }
  RETURN_IF_ERROR(CheckObject(id, volume.object, call));
  OpenedVolume opened;
  opened.directory = layout_.Data(id);
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
    if (!read.ok() && !IsUnsupported(read.error())) {
      if (damaged == OfDamaged::kError) return read.error().With(volumes[at].ToString());
      continue;
    }
    const auto* quota = read.ok() ? std::get_if<TreeQuota>(&read.value()) : nullptr;
    MadeArtefact& there = measured[volumes[at]];
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
    RETURN_IF_ERROR(
        DescribeArtefact(kernel_, layout_, id, DescriptionOf(wish.cut, pool_uuid_), call));
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
  RETURN_IF_ERROR(DescribeArtefact(kernel_, layout_, id, DescriptionOf(volume, pool_uuid_), call));
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
