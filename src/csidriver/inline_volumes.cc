#include "csidriver/inline_volumes.h"

#include <memory>

#include "csidriver/csi_inline_wish.h"
#include "csidriver/node_mounts.h"
#include "csidriver/node_specs.h"
#include "csidriver/node_targets.h"
#include "csidriver/node_volumes.h"
#include "mounter/volume_places.h"
#include "operation/call_options.h"
#include "operation/operation_executor.h"
#include "os/place_names.h"
#include "pool/pool_id.h"
#include "pool/pool_operations.h"
#include "pool/pool_plugin.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;

constexpr const char* kPublishInlineOperation = "inline_volume_publish";
constexpr const char* kUnpublishInlineOperation = "inline_volume_unpublish";
constexpr const char* kCheckInlineStep = "CheckCsiCall";
constexpr const char* kMakeStagingStep = "MakeStagingPlace";
constexpr const char* kRemoveStagingStep = "RemoveStagingPlace";
constexpr const char* kFindRestsStep = "FindRests";
constexpr const char* kDeleteInlineStep = "Delete";
constexpr const char* kInlineDirectory = "inline";

OperationKey InlineKey(const std::string& name) {
  return OperationKey(UniqueVolumeName("pool-inline/" + name));
}

// An empty `id`: no volume is there.
OperationTraits InlineTraits(OperationKey key, const char* name, const std::string& id,
                             const std::string& target, std::string domain) {
  return {.key = std::move(key),
          .name = name,
          .plugin_name = kPoolPluginName,
          .pod_display_name = target,
          .device = id.empty() ? UniqueVolumeName() : PoolDeviceName(id),
          .use = id.empty() ? DeviceUse::kNone : DeviceUse::kExclusive,
          .domain = {std::move(domain), ""}};
}

// Of an effect on the agent's own directories.
CallOptions OwnCall(const OperationParts& parts) {
  CallOptions call;
  call.deadline = Deadline::After(parts.host.clock, parts.settings.make_pod_directories);
  return call;
}

SafePath RestsOf(const OperationParts& parts, const std::string& handle) {
  return parts.host.paths.GetPluginDir(kPoolPluginName).Below(kInlineDirectory).Below(handle);
}

// ---- publish ------------------------------------------------------------------------------------

Status CheckInlineTarget(const PublishInlineVolume& publish,
                         const std::optional<PoolVolumeRecord>& there) {
  const std::string target = publish.request.target.Display();
  if (!there || there->inline_use.target == target) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "inline volume " + InlineHandleOf(*there) + " is published at " +
                               ShownPath(there->inline_use.target) + ", and has no second target");
}

VolumeSpec InlineSpecOf(const InlineServing& serving, const PoolVolumeRecord& volume,
                        const CsiCapabilityWish& capability, bool read_only) {
  return NodeSpecOf(PoolPvOf(volume, serving.driver, serving.node), volume.id, capability,
                    read_only);
}

NodeStage InlineStageOf(const InlinePublish& request, const PoolVolumeRecord& volume,
                        SafePath place) {
  const bool only_reads = IsReadOnlyMode(request.capability.access_mode);
  return {.id = volume.id,
          .place = std::move(place),
          .capability = request.capability,
          .spec = InlineSpecOf(request.serving, volume, request.capability, only_reads),
          .size_bytes = volume.capacity_bytes,
          .lease = {request.serving.node, only_reads, request.capability.access_mode,
                    /*by_stage=*/true},
          .most_volumes = request.serving.most_volumes};
}

NodePublish InlineTargetOf(const InlinePublish& request, const PoolVolumeRecord& volume,
                           SafePath staging) {
  return {
      .id = volume.id,
      .staging = std::move(staging),
      .target = request.target,
      .wanted = PublicationWanted(request.target.Display(), request.capability, request.read_only),
      .spec = InlineSpecOf(request.serving, volume, request.capability, request.read_only),
      .pod = volume.inline_use.pod_uid};
}

// Makes the volume, and has it published.
Failure PublishWhole(const OperationParts& parts, const PublishInlineVolume& publish,
                     OperationProgress& progress) {
  const InlinePublish& request = publish.request;
  PoolServed pools{*publish.volumes, request.serving.driver};
  PoolVolumeRecord volume;
  if (Failure failure = CreatePoolVolume(pools, request.volume).Run(parts, progress, volume)) {
    return failure;
  }
  progress.EnterStep(kMakeStagingStep);
  const SafePath staging = RestsOf(parts, InlineHandleOf(volume)).Below(volume.id);
  if (const Status made = MakePlace(parts.host.kernel, staging, OwnCall(parts)); !made.ok()) {
    return OperationFailure{kPublishInlineOperation, kMakeStagingStep, made.error()};
  }
  Unit done;
  if (Failure failure = StageNodeVolume(*publish.volumes, InlineStageOf(request, volume, staging))
                            .Run(parts, progress, done)) {
    return failure;
  }
  return PublishNodeVolume(*publish.volumes, InlineTargetOf(request, volume, staging))
      .Run(parts, progress, done);
}

// ---- unpublish ----------------------------------------------------------------------------------

Failure UnmountInline(const OperationParts& parts, const UnpublishInlineVolume& unpublish,
                      const PoolVolumeRecord& volume, OperationProgress& progress) {
  const InlineUnpublish& request = unpublish.request;
  const VolumeSpec spec =
      InlineSpecOf(request.serving, volume, CsiCapabilityWish(), /*read_only=*/false);
  Unit done;
  if (Failure failure = UnpublishNodeVolume(*unpublish.volumes, {volume.id, request.target, spec})
                            .Run(parts, progress, done)) {
    return failure;
  }
  const SafePath staging = RestsOf(parts, request.handle).Below(volume.id);
  return UnstageNodeVolume(*unpublish.volumes, {volume.id, staging, spec})
      .Run(parts, progress, done);
}

// The ids of volumes with this handle that an earlier call may have ended amid. A name that is no
// id is none of this program's.
Result<std::vector<std::string>> FindRests(const OperationParts& parts, const SafePath& rests) {
  std::vector<std::string> ids;
  const Result<DirectoryListing> listing =
      parts.host.kernel.Call(ListDirectory{rests}, OwnCall(parts));
  if (!listing.ok()) {
    if (listing.error().code() == Code::kNotFound) return ids;
    return listing.error();
  }
  for (const DirectoryEntry& entry : listing->entries) {
    const std::optional<PoolId> id = ParsePoolId(entry.name);
    if (id && id->object == PoolObject::kVolume) ids.push_back(entry.name);
  }
  return ids;
}

Status RemoveIfThere(const OperationParts& parts, const SafePath& directory) {
  const Result<Changed> removed =
      parts.host.kernel.Call(RemoveDirectory{directory}, OwnCall(parts));
  return removed.ok() ? OkStatus() : Status(removed.error().AsMaybeApplied());
}

// The place is the last to go, as it alone says what the id of the handle was.
Failure DeleteWhole(const OperationParts& parts, const UnpublishInlineVolume& unpublish,
                    const std::string& id, OperationProgress& progress) {
  PoolServed pools{*unpublish.volumes, unpublish.request.serving.driver};
  Unit done;
  Failure failure = DeletePoolVolume(pools, id).Run(parts, progress, done);
  if (failure) {
    // Its mounts are gone already.
    failure->error = failure->error.AsMaybeApplied();
    return failure;
  }
  progress.EnterStep(kRemoveStagingStep);
  const Status removed = RemoveIfThere(parts, RestsOf(parts, unpublish.request.handle).Below(id));
  if (removed.ok()) return std::nullopt;
  return OperationFailure{kUnpublishInlineOperation, kRemoveStagingStep, removed.error()};
}

Failure FailedUnpublish(const char* step, const Error& error) {
  return OperationFailure{kUnpublishInlineOperation, step, error};
}

// The volume, and what an earlier call has left.
Failure DeleteAll(const OperationParts& parts, const UnpublishInlineVolume& unpublish,
                  OperationProgress& progress) {
  const InlineUnpublish& request = unpublish.request;
  progress.EnterStep(kFindRestsStep);
  const SafePath rests = RestsOf(parts, request.handle);
  Result<std::vector<std::string>> found = FindRests(parts, rests);
  if (!found.ok()) return FailedUnpublish(kFindRestsStep, found.error());
  std::vector<std::string> ids = *std::move(found);
  // Its place may not have been made yet.
  std::erase(ids, request.id);
  if (!request.id.empty()) ids.push_back(request.id);
  progress.EnterStep(kDeleteInlineStep);
  if (!ids.empty() && !request.held_up.empty()) {
    return FailedUnpublish(kDeleteInlineStep,
                           Error::MaybeApplied(Code::kUnavailable, request.held_up));
  }
  for (const std::string& id : ids) {
    if (Failure failure = DeleteWhole(parts, unpublish, id, progress)) return failure;
  }
  progress.EnterStep(kRemoveStagingStep);
  const Status removed = RemoveIfThere(parts, rests);
  return removed.ok() ? std::nullopt : FailedUnpublish(kRemoveStagingStep, removed.error());
}

// Takes back a volume that was never published. Success if nothing is left.
bool IsTakenBack(const OperationParts& parts, const PublishInlineVolume& publish,
                 OperationProgress& progress) {
  const InlinePublish& request = publish.request;
  const std::optional<PoolVolumeRecord> volume = publish.volumes->FindByName(request.volume.name);
  if (!volume) return true;
  const UnpublishInlineVolume inverse(
      *publish.volumes,
      {volume->id, InlineHandleOf(*volume), request.target, /*held_up=*/"", request.serving});
  return !UnmountInline(parts, inverse, *volume, progress) && !DeleteAll(parts, inverse, progress);
}

// ---- what is left behind ------------------------------------------------------------------------

bool IsLeftBehind(const PoolVolumeRecord& volume, Kernel& kernel, const CallOptions& call) {
  const std::string& root = volume.inline_use.target_root;
  // A disk that is away has taken the directory along for a while.
  const Result<FileInfo> there = kernel.Call(Stat{.path = {root, ""}}, OnPath(call, {root, ""}));
  if (!there.ok() || there->type != FileType::kDirectory) return false;
  const SafePath target = {root, volume.inline_use.target.substr(root.size() + 1),
                           Resolve::kNoSymlinks};
  const Result<FileInfo> parent =
      kernel.Call(Stat{.path = ParentOf(target)}, OnPlace(call, target));
  return parent.ok() ? parent->type == FileType::kMissing
                     : parent.error().code() == Code::kNotFound;
}

}  // namespace

OperationKey PublishInlineVolume::key() const { return InlineKey(request.volume.name); }

OperationTraits PublishInlineVolume::Traits(const OperationParts&) const {
  return InlineTraits(key(), kPublishInlineOperation, request.id, request.target.Display(),
                      volumes->DomainFor(request.volume.parameters));
}

Failure PublishInlineVolume::Run(const OperationParts& parts, OperationProgress& progress,
                                 Unit&) const {
  progress.EnterStep(kCheckInlineStep);
  const std::optional<PoolVolumeRecord> there = volumes->FindByName(request.volume.name);
  Status may = CheckInlineTarget(*this, there);
  if (may.ok()) {
    may = CheckCallerSees(parts.host.kernel, request.caller, request.target, OwnCall(parts));
  }
  if (!may.ok()) return OperationFailure{kPublishInlineOperation, kCheckInlineStep, may.error()};
  Failure failure = PublishWhole(parts, *this, progress);
  if (!failure || failure->error.maybe_applied()) return failure;
  if (!volumes->FindByName(request.volume.name)) return failure;
  // What was opened before this call may have been published, and have a pod's data; one that an
  // earlier call has begun to delete has not, and no kubelet calls the inverse before its pod ends.
  const bool was_used = there && there->used && there->state != PoolVolumeState::kDeleting;
  const OperationFailure why = *failure;
  if (!was_used && IsTakenBack(parts, *this, progress)) return why;
  failure->error = why.error.AsMaybeApplied();
  return failure;
}

OperationKey UnpublishInlineVolume::key() const {
  return InlineKey(PoolNameOfInline(request.handle));
}

OperationTraits UnpublishInlineVolume::Traits(const OperationParts&) const {
  OperationTraits traits = InlineTraits(key(), kUnpublishInlineOperation, request.id,
                                        request.target.Display(), volumes->DomainOf(request.id));
  traits.takes_away = true;
  return traits;
}

Failure UnpublishInlineVolume::Run(const OperationParts& parts, OperationProgress& progress,
                                   Unit&) const {
  progress.EnterStep(kCheckInlineStep);
  const std::optional<PoolVolumeRecord> volume =
      volumes->FindByName(PoolNameOfInline(request.handle));
  if (volume && volume->id != request.id) {
    return FailedUnpublish(kCheckInlineStep,
                           Error::NotApplied(Code::kAborted, "inline volume " + request.handle +
                                                                 " is being published: try again"));
  }
  if (!volume) {
    const Status known = volumes->CheckNamesKnown(OwnCall(parts));
    if (!known.ok()) return FailedUnpublish(kCheckInlineStep, known.error());
    return DeleteAll(parts, *this, progress);
  }
  if (volume->inline_use.target != request.target.Display()) return std::nullopt;
  if (Failure failure = UnmountInline(parts, *this, *volume, progress)) return failure;
  return DeleteAll(parts, *this, progress);
}

std::vector<std::string> FindLeftInlineVolumes(const PoolVolumes& volumes, Kernel& kernel,
                                               const CallOptions& call) {
  std::vector<std::string> left;
  for (const PoolVolumeRecord& volume : volumes.InlineVolumes()) {
    if (!IsLeftBehind(volume, kernel, call)) continue;
    const PoolInline& use = volume.inline_use;
    left.push_back("inline volume " + InlineHandleOf(volume) + " of pod " + use.pod_namespace +
                   "/" + use.pod_name + " (" + use.pod_uid + ") has data in pool " + volume.pool +
                   ", volume " + volume.id + ", and its pod's directory is gone: call " +
                   "NodeUnpublishVolume with this handle and the target path " +
                   ShownPath(use.target));
  }
  return left;
}

}  // namespace volumed
