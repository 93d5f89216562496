// TreeBackend: what its volumes may have at most.
//
// Whoever owns a directory can give it to another project, also to that of another volume. So the
// number that a directory has says nothing by itself: it has to be the one on record, or, of a
// volume that has none on record, one of those that are chosen for its id.
#include <algorithm>
#include <string>
#include <utility>

#include "pool/tree_backend.h"

namespace volumed {
namespace {

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

// The one that is tried for the volume as number `i`.
uint32_t ProjectFor(const PoolId& id, uint32_t i) {
  return kFirstProject + (HashOfId(id.ToString()) % kProjects + i) % kProjects;
}

// Filesystems round limits up to their own units.
bool IsLimit(int64_t there, int64_t bytes) {
  return there >= bytes && there < bytes + kPoolBlockBytes;
}

std::string ShownProject(const TreeQuota& quota) {
  return quota.kind == TreeQuotaKind::kProject ? "project " + std::to_string(quota.id)
                                               : std::string("no project");
}

// The outcome, the errno and the rest of the text stay.
Error WithCode(Code code, const std::string& why, const Error& error) {
  return Error::FromParts(code, error.outcome(), error.sys_errno(), why + error.message());
}

}  // namespace

uint32_t OwnProjectOf(const PoolId& id, const TreeQuota& quota) {
  if (quota.kind != TreeQuotaKind::kProject) return 0;
  for (uint32_t i = 0; i < kProjectsTried; ++i) {
    if (quota.id == ProjectFor(id, i)) return ProjectFor(id, i);
  }
  return 0;
}

bool IsOwnAccount(const PoolId& id, const TreeQuota& quota) {
  return quota.kind != TreeQuotaKind::kProject || OwnProjectOf(id, quota) != 0;
}

Result<bool> TreeBackend::IsOfForeignProject(const PoolId& id, const CallOptions& call) {
  const Result<TreeQuota> now = kernel_.Call(ReadTreeQuota{layout_.Data(id)}, call);
  if (!now.ok()) return IsNoQuota(now.error()) ? Result<bool>(false) : now.error();
  return !IsOwnAccount(id, *now);
}

// The kernel refuses a project that the directory has from the pool's. What is in a directory
// before it has its project is of none, so that the limit would bound only what comes later, and
// the figures would be wrong.
Result<TreeQuota> TreeBackend::SetQuota(const PoolVolumeRecord& volume, const TreeQuota& now,
                                        int64_t bytes, const CallOptions& call) {
  const PoolId id = TreeIdOf(volume.id);
  const SafePath data = layout_.Data(id);
  SetTreeQuota set{.path = data, .expected = volume.object};
  set.bytes = bytes;
  if (kind() == PoolBackendKind::kSubvolume) return kernel_.Call(set, call);
  const uint32_t has =
      now.kind == TreeQuotaKind::kProject ? static_cast<uint32_t>(now.id) : uint32_t{0};
  if (const std::string why = OtherProject(volume, has); !why.empty()) {
    return Error::NotApplied(Code::kFailedPrecondition, data.Display() + ": " + why);
  }
  // By its number, so that it is never the limit of one that somebody gives it meanwhile.
  set.project_id = volume.project_id != 0 ? volume.project_id : OwnProjectOf(id, now);
  if (set.project_id != 0) return kernel_.Call(set, call);
  ASSIGN_OR_RETURN(const DirectoryListing there, kernel_.Call(ListDirectory{data}, call));
  if (!there.entries.empty()) {
    return Error::NotApplied(Code::kUnimplemented,
                             "there are files in " + data.Display() + " already, it is of " +
                                 ShownProject(now) +
                                 ", and project quota counts only what is made later");
  }
  for (uint32_t i = 0; i < kProjectsTried; ++i) {
    set.project_id = ProjectFor(id, i);
    Result<TreeQuota> done = kernel_.Call(set, call);
    if (done.ok() || done.error().code() != Code::kAlreadyExists) return done;
  }
  return Error::NotApplied(Code::kResourceExhausted,
                           "no number is free for the project of " + data.Display());
}

Result<TreeQuota> TreeBackend::ReadAndSetQuota(const PoolVolumeRecord& volume, int64_t bytes,
                                               const CallOptions& call) {
  ASSIGN_OR_RETURN(const TreeQuota now,
                   kernel_.Call(ReadTreeQuota{layout_.Data(TreeIdOf(volume.id))}, call));
  return SetQuota(volume, now, bytes, call);
}

// The limit of a project outlives the files: without this the filesystem would keep it for ever,
// and whoever looks at its projects would see those of all volumes that there have been.
Status TreeBackend::FreeQuota(const PoolId& id, const StorageObject& there, uint32_t project,
                              const CallOptions& call) {
  const SafePath data = layout_.Data(id);
  if (project == 0) {
    const Result<TreeQuota> quota = kernel_.Call(ReadTreeQuota{data}, call);
    if (!quota.ok()) return IsNoQuota(quota.error()) ? OkStatus() : Status(quota.error());
    project = OwnProjectOf(id, *quota);
    if (project == 0) return OkStatus();
  }
  SetTreeQuota none{.path = data, .expected = there};
  none.project_id = project;
  none.limit_alone = true;
  const Result<TreeQuota> freed = kernel_.Call(none, call);
  return freed.ok() || IsNoQuota(freed.error()) ? OkStatus() : Status(freed.error());
}

Error TreeBackend::WhyNotBounded(const Error& error) const {
  if (!IsNoQuota(error)) return error;
  return WithCode(Code::kFailedPrecondition,
                  "the size of a volume of backend " + std::string(PoolBackendName(kind())) +
                      " cannot be bounded here, and its class does not say \"quota\": "
                      "\"best-effort\": ",
                  error);
}

Status TreeBackend::Bound(const PoolVolumeRecord& volume, int64_t bytes,
                          const PoolParameters& parameters, const CallOptions& call) {
  const Result<PoolTuning> tuning = ParsePoolTuning(volume.mutable_parameters);
  if (!tuning.ok()) return tuning.error();
  const int64_t most = std::min(bytes, tuning->quota_bytes.value_or(bytes));
  const Result<TreeQuota> set = ReadAndSetQuota(volume, most, call);
  if (set.ok()) return OkStatus();
  if (!IsNoQuota(set.error())) return set.error();
  if (parameters.quota != PoolQuota::kBestEffort) return WhyNotBounded(set.error());
  // Who asks for a limit by its number is told that there is none, as long as nothing is made.
  const bool is_asked = volume.state == PoolVolumeState::kMaking && tuning->quota_bytes;
  if (!is_asked) return OkStatus();
  return WithCode(Code::kInvalidArgument, "quotaBytes cannot be set: ", set.error());
}

// Whoever has switched the accounts of a btrfs off has taken all limits away. What a growth that is
// not finished may have set is no less.
Status TreeBackend::KeepBounded(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                                OpenedVolume& opened, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolParameters parameters, ParsePoolParameters(volume.parameters));
  const PoolId id = TreeIdOf(volume.id);
  const int64_t size = std::max(volume.capacity_bytes, volume.target_bytes);
  const int64_t most = std::min(size, tuning.quota_bytes.value_or(size));
  Result<TreeQuota> quota = kernel_.Call(ReadTreeQuota{layout_.Data(id)}, call);
  if (quota.ok()) {
    const bool is_own = quota->kind == TreeQuotaKind::kQgroup
                            ? kind() == PoolBackendKind::kSubvolume
                            : OwnProjectOf(id, *quota) != 0 &&
                                  OtherProject(volume, OwnProjectOf(id, *quota)).empty();
    if (!is_own || !IsLimit(quota->limit_bytes, most)) quota = SetQuota(volume, *quota, most, call);
  }
  if (quota.ok()) {
    opened.project_id = OwnProjectOf(id, *quota);
    return OkStatus();
  }
  if (parameters.quota != PoolQuota::kBestEffort) return WhyNotBounded(quota.error());
  opened.why_unbounded = quota.error().message();
  return OkStatus();
}

// ---- changes ------------------------------------------------------------------------------------

Status TreeBackend::Tune(const PoolVolumeRecord& volume, const PoolTuning& tuning,
                         const CallOptions& call) {
  if (!tuning.quota_bytes) return OkStatus();
  RETURN_IF_ERROR(CheckQuotaFits(tuning, volume.capacity_bytes));
  const Result<TreeQuota> set = ReadAndSetQuota(volume, *tuning.quota_bytes, call);
  if (set.ok()) return OkStatus();
  if (!IsNoQuota(set.error())) return set.error();
  return WithCode(Code::kInvalidArgument, "quotaBytes cannot be set: ", set.error());
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

}  // namespace volumed
