#include "csidriver/node_volumes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csidriver/node_mounts.h"
#include "csidriver/node_specs.h"
#include "csidriver/node_targets.h"
#include "operation/device_operations.h"
#include "operation/expand_operations.h"
#include "operation/given_place.h"
#include "operation/map_operations.h"
#include "operation/mount_operations.h"
#include "operation/operation_executor.h"
#include "operation/recorded_volume.h"
#include "os/place_names.h"
#include "pool/pool_names.h"
#include "pool/pool_operations.h"
#include "pool/pool_places.h"
#include "pool/pool_plugin.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

using Failure = std::optional<OperationFailure>;
using Modes = ::csi::v1::VolumeCapability::AccessMode;

constexpr const char* kCheckStep = "CheckCsiCall";
constexpr const char* kTakeLeaseStep = "TakeLease";
constexpr const char* kEndLeaseStep = "EndLease";
constexpr const char* kThrottleStep = "Throttle";

Error Refusal(const std::string& why) { return Error::NotApplied(Code::kFailedPrecondition, why); }

std::string Shown(const SafePath& place) { return ShownPath(place.Display()); }

UniqueVolumeName DeviceOf(const std::string& id) {
  return GetUniqueVolumeName(kPoolPluginName, id);
}

// Of a question to the mount table and to sysfs.
CallOptions QuestionOf(const OperationParts& parts) {
  CallOptions call;
  call.deadline = Deadline::After(parts.host.clock, parts.settings.make_pod_directories);
  return call;
}

template <typename Op>
Failure FailedAt(const OperationParts& parts, const Op& operation, const char* step,
                 const Error& error) {
  return OperationFailure{operation.Traits(parts).name, step, error};
}

// To a caller these two codes are about the volume, which was found; in a step they are about a
// directory or a file.
Failure AboutTheNode(Failure failure) {
  if (!failure) return failure;
  const Error& error = failure->error;
  if (error.code() == Code::kNotFound || error.code() == Code::kAlreadyExists) {
    failure->error = Error::FromParts(Code::kFailedPrecondition, error.outcome(), error.sys_errno(),
                                      error.message());
  }
  return failure;
}

std::optional<NodePlace> StagedPlace(const OperationParts& parts, const std::string& id) {
  const std::optional<DeviceRecord> record = parts.devices.Find(DeviceOf(id));
  return record ? NodePlaceOf(*record) : std::nullopt;
}

bool HasLeaseOfStaging(const PoolVolumeRecord& volume) {
  return std::any_of(volume.leases.begin(), volume.leases.end(),
                     [](const PoolLease& lease) { return lease.by_stage || lease.is_staged; });
}

// What is mounted at the place is this volume, or nothing is.
Status CheckNothingElseAt(const OperationParts& parts, const PoolVolumes& volumes,
                          const std::string& id, const SafePath& place) {
  ASSIGN_OR_RETURN(const ShownAt shown,
                   FindShownAt(volumes, parts.host.kernel, id, place, QuestionOf(parts)));
  if (shown != ShownAt::kElse) return OkStatus();
  RETURN_IF_ERROR(CheckPoolIsThere(volumes, id, QuestionOf(parts)));
  return Refusal("something else than volume " + id + " is mounted at " + Shown(place));
}

// ---- stage --------------------------------------------------------------------------------------

MountDevice MountDeviceOf(const StageNodeVolume& stage) {
  MountDeviceRequest request{
      .device = DeviceOf(stage.request.id), .spec = stage.request.spec, .pods = {}};
  request.fs_group = stage.request.capability.fs_group;
  request.size = Quantity::FromBytes(stage.request.size_bytes);
  // It may have grown while it was nowhere, and not every ext grows once it is mounted.
  request.grow_to = request.size;
  request.place = stage.request.place;
  return MountDevice(std::move(request));
}

// That it is staged elsewhere, or that a pod has it, MountDevice finds.
Status CheckStage(const OperationParts& parts, const StageNodeVolume& stage) {
  RETURN_IF_ERROR(CheckCallerSees(parts.host.kernel, stage.request.caller, stage.request.place,
                                  QuestionOf(parts)));
  const std::optional<DeviceRecord> record = parts.devices.Find(DeviceOf(stage.request.id));
  const std::optional<NodePlace> there = record ? NodePlaceOf(*record) : std::nullopt;
  if (there && there->place.Display() == stage.request.place.Display() &&
      !IsStagedAlike(CapabilityOnRecord(record->volume_json), stage.request.capability)) {
    return Error::NotApplied(Code::kAlreadyExists, "volume " + stage.request.id + " is staged at " +
                                                       Shown(stage.request.place) +
                                                       " with another capability");
  }
  return CheckNothingElseAt(parts, *stage.volumes, stage.request.id, stage.request.place);
}

// ---- publish ------------------------------------------------------------------------------------

MountRequest MountRequestOf(const PublishNodeVolume& publish) {
  const std::string path = publish.request.target.Display();
  VolumeTarget target{.key = TargetKey(path, publish.request.id),
                      .place = publish.request.target,
                      .directory = ParentOf(publish.request.target),
                      .display_name = path,
                      .owner = {},
                      .pod = nullptr};
  target.owner.fs_group = publish.request.wanted.capability.fs_group;
  MountRequest request{.target = std::move(target),
                       .spec = publish.request.spec,
                       .sub_paths = {},
                       .nested_mount_points = {}};
  request.unique_name = DeviceOf(publish.request.id);
  request.has_device = true;
  request.one_pod_only =
      publish.request.wanted.capability.access_mode == Modes::SINGLE_NODE_SINGLE_WRITER;
  return request;
}

bool IsBlock(const PublishNodeVolume& publish) {
  return publish.request.wanted.capability.is_block;
}

Status CheckStagedFor(const OperationParts& parts, const PublishNodeVolume& publish) {
  const std::optional<DeviceRecord> record = parts.devices.Find(DeviceOf(publish.request.id));
  const std::optional<NodePlace> staged = record ? NodePlaceOf(*record) : std::nullopt;
  if (!staged) return Refusal("volume " + publish.request.id + " is not staged on this node");
  if (staged->place.Display() != publish.request.staging.Display()) {
    return Refusal("volume " + publish.request.id + " is staged at " + Shown(staged->place) +
                   ", and not at " + Shown(publish.request.staging));
  }
  if (!staged->is_finished) {
    return Refusal("volume " + publish.request.id +
                   " is not staged wholly: stage it again, or unstage it");
  }
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(record->volume_json);
  const bool staged_for_readers = spec && IsReadOnlyPoolVolume(*spec);
  if (!publish.request.wanted.read_only && staged_for_readers) {
    return Refusal("volume " + publish.request.id + " is staged for whoever only reads");
  }
  // A read-only bind of a node keeps nobody from writing to its device.
  if (IsBlock(publish) && publish.request.wanted.read_only && !staged_for_readers) {
    return Refusal("block volume " + publish.request.id +
                   " is staged for writing, and cannot be read-only at one target alone: stage it "
                   "with the access mode SINGLE_NODE_READER_ONLY or MULTI_NODE_READER_ONLY");
  }
  return OkStatus();
}

// What is mounted there would be covered, and could not be taken away before this one.
Status CheckNothingBelow(const OperationParts& parts, const SafePath& target) {
  ASSIGN_OR_RETURN(
      const MountListing below,
      parts.host.kernel.Call(ListMounts{.below = target.Display()}, QuestionOf(parts)));
  for (const MountEntry& mount : below.mounts) {
    if (mount.mount_point == target.Display()) continue;
    return Refusal("a " + mount.fs_type + " is mounted below " + Shown(target) + ", at " +
                   ShownPath(mount.mount_point));
  }
  return OkStatus();
}

// Another volume may be on its way to the target, or away.
Status CheckTargetFree(const OperationParts& parts, const PublishNodeVolume& publish) {
  const PodVolumeKey key = TargetKey(publish.request.target.Display(), publish.request.id);
  for (const PodVolumeRecord& record : parts.volumes->FindOfPod(key.pod)) {
    if (record.key.spec == key.spec || !NodePlaceOf(record)) continue;
    return Refusal("volume " + record.key.spec.str() + " is published at " +
                   Shown(publish.request.target));
  }
  return CheckNothingElseAt(parts, *publish.volumes, publish.request.id, publish.request.target);
}

std::vector<CsiPublication> PublicationsOf(const OperationParts& parts, const std::string& id) {
  std::vector<CsiPublication> there;
  for (const PodVolumeRecord& record : parts.volumes->FindOfDevice(DeviceOf(id))) {
    if (NodePlaceOf(record)) there.push_back(PublicationOnRecord(record));
  }
  return there;
}

Result<CsiPublishAnswer> DecidePublish(const OperationParts& parts,
                                       const PublishNodeVolume& publish) {
  RETURN_IF_ERROR(CheckCallerSees(parts.host.kernel, publish.request.caller, publish.request.target,
                                  QuestionOf(parts)));
  RETURN_IF_ERROR(CheckStagedFor(parts, publish));
  ASSIGN_OR_RETURN(
      const CsiPublishAnswer answer,
      DecideCsiPublish(publish.request.wanted, PublicationsOf(parts, publish.request.id)));
  RETURN_IF_ERROR(CheckTargetFree(parts, publish));
  if (answer == CsiPublishAnswer::kIsThere) return answer;
  if (publish.request.target.Display() == publish.request.staging.Display()) {
    return Refusal("volume " + publish.request.id + " is staged at " +
                   Shown(publish.request.staging) + ", which is no target of it");
  }
  RETURN_IF_ERROR(CheckNothingBelow(parts, publish.request.target));
  return answer;
}

// A call that a CO repeats again and again costs no more than a look. What the row says and the
// mount table does not is made again.
bool IsWhollyThere(const OperationParts& parts, const PublishNodeVolume& publish) {
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(publish.key().pod_volume());
  const std::optional<NodePlace> there = record ? NodePlaceOf(*record) : std::nullopt;
  if (!there || !there->is_finished) return false;
  const Result<ShownAt> shown = FindShownAt(*publish.volumes, parts.host.kernel, publish.request.id,
                                            publish.request.target, QuestionOf(parts));
  return shown.ok() && *shown == (IsBlock(publish) ? ShownAt::kDevice : ShownAt::kFilesystem);
}

// ---- expand -------------------------------------------------------------------------------------

// What is on record of the volume as it is staged, which the growth leaves as it is.
Result<VolumeSpec> FindGrowable(const OperationParts& parts, const std::string& id) {
  const std::optional<DeviceRecord> record = parts.devices.Find(DeviceOf(id));
  const std::optional<NodePlace> staged = record ? NodePlaceOf(*record) : std::nullopt;
  if (!staged || !staged->is_finished) {
    return Refusal("volume " + id + " is not staged on this node, or not wholly");
  }
  std::optional<VolumeSpec> spec = ReadRecordedVolume(record->volume_json);
  if (!spec) return Refusal("nobody knows how volume " + id + " is staged: stage it again");
  if (!staged->is_block && IsReadOnlyPoolVolume(*spec)) {
    return Refusal("volume " + id +
                   " is staged for whoever only reads, and its filesystem cannot grow so");
  }
  return *std::move(spec);
}

// ---- unpublish and unstage ----------------------------------------------------------------------

UnmountRequest UnmountRequestOf(const UnpublishNodeVolume& unpublish) {
  const PodVolumeKey key = TargetKey(unpublish.request.target.Display(), unpublish.request.id);
  UnmountRequest request{.pod = key.pod,
                         .spec = key.spec,
                         .plugin_name = kPoolPluginName,
                         .pod_display_name = unpublish.request.target.Display()};
  request.device = DeviceOf(unpublish.request.id);
  request.place = unpublish.request.target;
  request.constructed = unpublish.request.spec;
  return request;
}

UnmountDevice UnmountDeviceOf(const UnstageNodeVolume& unstage, bool is_block) {
  UnmountDeviceRequest request{.device = DeviceOf(unstage.request.id),
                               .plugin_name = kPoolPluginName,
                               .spec = SpecName(unstage.request.id),
                               .device_mount_path = unstage.request.place.Display()};
  request.is_block = is_block;
  request.place = unstage.request.place;
  request.constructed = unstage.request.spec;
  return UnmountDevice(std::move(request));
}

// The agent's own place of the device: it has the volume for pods, so that nothing of it is a CO's.
bool IsForPods(const OperationParts& parts, const std::string& id) {
  const std::optional<DeviceRecord> record = parts.devices.Find(DeviceOf(id));
  return record && !IsGone(*record) && !GivenPlaceOf(*record);
}

Error NothingIsTakenFrom(const SafePath& place, const std::string& why) {
  return Refusal(why + ": nothing is taken from " + Shown(place));
}

// What is to be taken away from a place: nothing if neither a row nor the mount table has the
// volume there.
struct Leaving {
  bool is_there = false;
  bool is_block = false;
};

Result<Leaving> FindLeaving(const OperationParts& parts, const PoolVolumes& volumes,
                            const std::string& id, const SafePath& place,
                            const std::optional<NodePlace>& on_record) {
  RETURN_IF_ERROR(CheckNotHidden(parts.host.kernel, place, QuestionOf(parts)));
  if (on_record && on_record->place.Display() == place.Display()) {
    return Leaving{true, on_record->is_block};
  }
  ASSIGN_OR_RETURN(ShownAt shown,
                   FindShownAt(volumes, parts.host.kernel, id, place, QuestionOf(parts)));
  if (shown == ShownAt::kNothing) {
    ASSIGN_OR_RETURN(shown,
                     FindShownAtAnew(volumes, parts.host.kernel, id, place, QuestionOf(parts)));
  }
  const bool is_there = shown == ShownAt::kFilesystem || shown == ShownAt::kDevice;
  if (is_there && IsForPods(parts, id)) {
    return NothingIsTakenFrom(place, "this node has volume " + id + " for its own pods");
  }
  return Leaving{is_there, shown == ShownAt::kDevice};
}

Status CheckIsNoStaging(const OperationParts& parts, const std::string& id,
                        const SafePath& target) {
  const std::optional<NodePlace> staged = StagedPlace(parts, id);
  if (!staged || staged->place.Display() != target.Display()) return OkStatus();
  return NothingIsTakenFrom(target, "volume " + id + " is staged there, and not published");
}

Status CheckIsNoTarget(const OperationParts& parts, const std::string& id, const SafePath& place) {
  for (const CsiPublication& published : PublicationsOf(parts, id)) {
    if (published.target_path != place.Display()) continue;
    return NothingIsTakenFrom(place, "volume " + id + " is published there, and not staged");
  }
  return OkStatus();
}

// A staged mount that somebody has renamed, with a directory around it, holds the device, and only
// its new name leads to it.
Failure NamingMounts(Failure failure, const OperationParts& parts,
                     const UnstageNodeVolume& unstage) {
  if (!failure) return failure;
  const auto places =
      FindMountsOf(*unstage.volumes, parts.host.kernel, unstage.request.id, QuestionOf(parts));
  if (!places.ok() || places->empty()) return failure;
  const std::string& place = places->front();
  if (place == unstage.request.place.Display()) return failure;
  const Error& error = failure->error;
  failure->error = Error::FromParts(
      error.code(), error.outcome(), error.sys_errno(),
      error.message() + ": the volume is mounted at " + ShownPath(place) +
          " by now, where nobody has staged it: `umount` it there, or take it back to " +
          Shown(unstage.request.place));
  return failure;
}

}  // namespace

Status EndStaleLeases(const OperationParts& parts, PoolVolumes& volumes, const std::string& id) {
  const Result<PoolVolumeRecord> volume = volumes.Find(id);
  if (StagedPlace(parts, id) || !volume.ok() || !HasLeaseOfStaging(*volume)) return OkStatus();
  // The row that says where it is may be one of those that are missing.
  if (parts.host.irreversible.InDoubt()) return OkStatus();
  ASSIGN_OR_RETURN(const bool is_shown,
                   IsShownAnywhere(volumes, parts.host.kernel, id, QuestionOf(parts)));
  return is_shown ? OkStatus() : volumes.EndLease(id, /*node=*/"", /*by_stage=*/true);
}

// ---- StageNodeVolume ----------------------------------------------------------------------------

OperationKey StageNodeVolume::key() const { return OperationKey(DeviceOf(request.id)); }

OperationTraits StageNodeVolume::Traits(const OperationParts& parts) const {
  return MountDeviceOf(*this).Traits(parts);
}

Failure StageNodeVolume::Run(const OperationParts& parts, OperationProgress& progress,
                             Unit&) const {
  progress.EnterStep(kCheckStep);
  if (const Status may = CheckStage(parts, *this); !may.ok()) {
    return FailedAt(parts, *this, kCheckStep, may.error());
  }
  progress.EnterStep(kTakeLeaseStep);
  Status taken = EndStaleLeases(parts, *volumes, request.id);
  if (taken.ok()) taken = volumes->TakeLease(request.id, request.lease, request.most_volumes);
  if (!taken.ok()) return FailedAt(parts, *this, kTakeLeaseStep, taken.error());
  MountedDevice mounted;
  Failure failure = AboutTheNode(MountDeviceOf(*this).Run(parts, progress, mounted));
  if (!failure || failure->error.maybe_applied() || StagedPlace(parts, request.id)) return failure;
  // The CO has nothing to unstage, so it will not give the lease back.
  if (const Status ended = volumes->EndLease(request.id, request.lease.node, /*by_stage=*/true);
      !ended.ok()) {
    failure->error = failure->error.AsMaybeApplied();
  }
  return failure;
}

// ---- UnstageNodeVolume --------------------------------------------------------------------------

OperationKey UnstageNodeVolume::key() const { return OperationKey(DeviceOf(request.id)); }

OperationTraits UnstageNodeVolume::Traits(const OperationParts& parts) const {
  const std::optional<NodePlace> staged = StagedPlace(parts, request.id);
  return UnmountDeviceOf(*this, staged && staged->is_block).Traits(parts);
}

Failure UnstageNodeVolume::Run(const OperationParts& parts, OperationProgress& progress,
                               Unit& result) const {
  progress.EnterStep(kCheckStep);
  if (const Status may = CheckIsNoTarget(parts, request.id, request.place); !may.ok()) {
    return FailedAt(parts, *this, kCheckStep, may.error());
  }
  const Result<Leaving> leaving =
      FindLeaving(parts, *volumes, request.id, request.place, StagedPlace(parts, request.id));
  if (!leaving.ok()) return FailedAt(parts, *this, kCheckStep, leaving.error());
  if (leaving->is_there) {
    Failure failure = NamingMounts(
        AboutTheNode(UnmountDeviceOf(*this, leaving->is_block).Run(parts, progress, result)), parts,
        *this);
    if (failure) return failure;
  }
  if (StagedPlace(parts, request.id)) return std::nullopt;
  progress.EnterStep(kEndLeaseStep);
  const Status ended = volumes->EndLease(request.id, /*node=*/"", /*by_stage=*/true);
  if (ended.ok()) return std::nullopt;
  return FailedAt(parts, *this, kEndLeaseStep, ended.error().AsMaybeApplied());
}

// ---- PublishNodeVolume --------------------------------------------------------------------------

OperationKey PublishNodeVolume::key() const {
  return TargetKey(request.target.Display(), request.id);
}

OperationTraits PublishNodeVolume::Traits(const OperationParts& parts) const {
  MountRequest mount = MountRequestOf(*this);
  return IsBlock(*this) ? MapVolume(std::move(mount)).Traits(parts)
                        : MountVolume(std::move(mount)).Traits(parts);
}

Failure PublishNodeVolume::Run(const OperationParts& parts, OperationProgress& progress,
                               Unit&) const {
  progress.EnterStep(kCheckStep);
  const Result<CsiPublishAnswer> answer = DecidePublish(parts, *this);
  if (!answer.ok()) return FailedAt(parts, *this, kCheckStep, answer.error());
  progress.EnterStep(kThrottleStep);
  // Before the pod has the volume, so that it never has it without.
  if (const Status limited = volumes->Throttle(request.id, request.pod, QuestionOf(parts));
      !limited.ok()) {
    return AboutTheNode(FailedAt(parts, *this, kThrottleStep, limited.error()));
  }
  if (*answer == CsiPublishAnswer::kIsThere && IsWhollyThere(parts, *this)) return std::nullopt;
  MountRequest mount = MountRequestOf(*this);
  MountedVolume published;
  return AboutTheNode(IsBlock(*this)
                          ? MapVolume(std::move(mount)).Run(parts, progress, published)
                          : MountVolume(std::move(mount)).Run(parts, progress, published));
}

// ---- UnpublishNodeVolume ------------------------------------------------------------------------

OperationKey UnpublishNodeVolume::key() const {
  return TargetKey(request.target.Display(), request.id);
}

OperationTraits UnpublishNodeVolume::Traits(const OperationParts& parts) const {
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(key().pod_volume());
  UnmountRequest unmount = UnmountRequestOf(*this);
  return record && record->is_block ? UnmapVolume(std::move(unmount)).Traits(parts)
                                    : UnmountVolume(std::move(unmount)).Traits(parts);
}

Failure UnpublishNodeVolume::Run(const OperationParts& parts, OperationProgress& progress,
                                 Unit& result) const {
  progress.EnterStep(kCheckStep);
  if (const Status may = CheckIsNoStaging(parts, request.id, request.target); !may.ok()) {
    return FailedAt(parts, *this, kCheckStep, may.error());
  }
  const std::optional<PodVolumeRecord> record = parts.volumes->Find(key().pod_volume());
  const Result<Leaving> leaving = FindLeaving(parts, *volumes, request.id, request.target,
                                              record ? NodePlaceOf(*record) : std::nullopt);
  if (!leaving.ok()) return FailedAt(parts, *this, kCheckStep, leaving.error());
  if (!leaving->is_there) return std::nullopt;
  UnmountRequest unmount = UnmountRequestOf(*this);
  return AboutTheNode(leaving->is_block
                          ? UnmapVolume(std::move(unmount)).Run(parts, progress, result)
                          : UnmountVolume(std::move(unmount)).Run(parts, progress, result));
}

// ---- ExpandNodeVolume ---------------------------------------------------------------------------

OperationKey ExpandNodeVolume::key() const { return ExpandKey(DeviceOf(request.id)); }

OperationTraits ExpandNodeVolume::Traits(const OperationParts&) const {
  return {.key = key(),
          .name = kExpandVolumeOperation,
          .plugin_name = kPoolPluginName,
          .pod_display_name = "",
          .device = DeviceOf(request.id),
          .use = DeviceUse::kExclusive,
          .domain = {volumes->DomainOf(request.id), ""}};
}

Failure ExpandNodeVolume::Run(const OperationParts& parts, OperationProgress& progress,
                              int64_t& result) const {
  progress.EnterStep(kCheckStep);
  Result<VolumeSpec> spec = FindGrowable(parts, request.id);
  if (!spec.ok()) return FailedAt(parts, *this, kCheckStep, spec.error());
  const Result<PoolVolumeRecord> volume = volumes->Find(request.id);
  if (!volume.ok()) return FailedAt(parts, *this, kCheckStep, volume.error());
  result = volume->capacity_bytes;
  if (request.bytes > result) {
    PoolServed pools{*volumes, request.driver};
    // A kubelet never asks for more while a volume is not staged: what cannot grow in use could
    // never grow if its file did not, as only NodeStage can make its filesystem follow.
    Failure failure = ExpandPoolVolume(pools, request.id, request.bytes, /*also=*/true)
                          .Run(parts, progress, result);
    if (failure) return failure;
  }
  ExpandedVolume expanded;
  return AboutTheNode(ExpandVolume({.volume = DeviceOf(request.id),
                                    .spec = *std::move(spec),
                                    .target = {},
                                    .pods = {},
                                    .claim = "",
                                    .new_size = Quantity::FromBytes(result),
                                    .old_size = Quantity::FromBytes(volume->capacity_bytes),
                                    .decision = {}})
                          .Run(parts, progress, expanded));
}

}  // namespace volumed
