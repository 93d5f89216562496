#include "pool/pool_operations.h"

#include <chrono>
#include <memory>
#include <set>
#include <utility>

#include "base/printable_text.h"
#include "mounter/mount_refs.h"
#include "operation/call_options.h"
#include "operation/device_use.h"
#include "operation/given_place.h"
#include "operation/reclaim_operations.h"
#include "operation/recorded_volume.h"
#include "pluginmgr/deletable_volume_plugin.h"
#include "pluginmgr/expandable_volume_plugin.h"
#include "pluginmgr/volume_options.h"
#include "pool/pool_id.h"
#include "pool/pool_layout.h"
#include "pool/pool_mounts.h"
#include "pool/pool_names.h"
#include "pool/pool_places.h"
#include "pool/pool_plugin.h"
#include "volume/unique_name.h"

namespace volumed {
namespace {

constexpr const char* kCreateOperation = "pool_volume_create";
constexpr const char* kDeleteOperation = "pool_volume_delete";
constexpr const char* kExpandOperation = "pool_volume_expand";
constexpr const char* kModifyOperation = "pool_volume_modify";
constexpr const char* kImportOperation = "pool_volume_import";
constexpr const char* kCreateStep = "Create";
constexpr const char* kDeleteStep = "Delete";
constexpr const char* kExpandStep = "Expand";
constexpr const char* kModifyStep = "Modify";
constexpr const char* kLookStep = "Look";
constexpr const char* kImportStep = "Import";
constexpr size_t kShownPlace = 256;  // bytes
// A check of a whole filesystem is a part of it.
constexpr Duration kImportLimit = std::chrono::hours(1);

std::string PvNameOf(const std::string& id) { return "csi:" + id; }

OperationKey ChangeKey(const std::string& id) {
  return OperationKey(UniqueVolumeName("pool-change/" + id));
}

OperationTraits TraitsOfVolume(const PoolServed& pools, OperationKey key, const char* name,
                               const std::string& id) {
  return {.key = std::move(key),
          .name = name,
          .plugin_name = kPoolPluginName,
          .pod_display_name = "",
          .device = PoolDeviceName(id),
          .use = DeviceUse::kExclusive,
          .domain = {pools.volumes.DomainOf(id), ""}};
}

CallOptions CallOf(const OperationParts& parts, const OperationKey& key, const std::string& domain,
                   Duration limit, OperationProgress& progress) {
  CallOptions call = OperationCall(key.ToString(), domain, "", progress);
  call.deadline = Deadline::After(parts.host.clock, limit);
  return call;
}

// A volume with a content is in the pool of that.
std::string DomainOfWish(const PoolServed& pools, const PoolVolumeWish& wish) {
  std::string domain = wish.content ? pools.volumes.DomainOf(wish.content->handle) : "";
  return domain.empty() ? pools.volumes.DomainFor(wish.parameters) : domain;
}

std::string DomainOfImport(const ImportRequest& request) {
  return request.source.starts_with('/') ? request.source : "";
}

VolumeSpec SpecOf(const OperationParts& parts, const PoolServed& pools,
                  const PoolVolumeRecord& record) {
  return VolumeSpec::FromPersistentVolume(
      PoolPvOf(record, pools.driver, parts.host.node.GetNodeName().str()), false);
}

// The guard would name it as if another volume were in the way.
Status CheckNotStaged(const OperationParts& parts, const std::string& id) {
  const std::optional<DeviceRecord> device = parts.devices.Find(PoolDeviceName(id));
  if (!device || IsGone(*device)) return OkStatus();
  const std::optional<SafePath> place = GivenPlaceOf(*device);
  if (!place) return OkStatus();
  return Error::NotApplied(Code::kFailedPrecondition,
                           "volume " + id + " is in use: it is staged at " +
                               Quoted(place->Display(), kShownPlace) +
                               ", and nothing is deleted before it is unstaged");
}

Status Delete(const OperationParts& parts, const DeletePoolVolume& operation,
              const CallOptions& call) {
  PoolServed& pools = *operation.pools;
  const Result<PoolVolumeRecord> record = pools.volumes.Find(operation.id);
  if (!record.ok()) {
    RETURN_IF_ERROR(pools.volumes.Delete(operation.id, /*only_unused=*/false, call));
    // An earlier try has deleted it, and did not live to say so to others.
    return parts.storage.EndReclaims(PvNameOf(operation.id));
  }
  RETURN_IF_ERROR(CheckNotStaged(parts, operation.id));
  const VolumeSpec spec = SpecOf(parts, pools, *record);
  const ReclaimRequest request{std::make_shared<const PersistentVolume>(*spec.persistent_volume()),
                               ReclaimAction::kDelete};
  return WithReclaimedStorage(parts, request, call, [&](const CallOptions& on) -> Status {
    ASSIGN_OR_RETURN(DeletableVolumePlugin* const plugin,
                     parts.plugins.FindDeletablePluginBySpec(spec));
    ASSIGN_OR_RETURN(const std::unique_ptr<Deleter> deleter, plugin->NewDeleter(spec));
    return deleter->Delete(on);
  });
}

// The plugin asks about its own place; one that a CO gave only the device's row knows.
Status CheckGrowsAtGivenPlace(const OperationParts& parts, const ExpandPoolVolume& operation,
                              const CallOptions& call) {
  const std::optional<DeviceRecord> device = parts.devices.Find(PoolDeviceName(operation.id));
  if (!device || IsGone(*device)) return OkStatus();
  const std::optional<SafePath> place = GivenPlaceOf(*device);
  if (!place) return OkStatus();
  return CheckGrowsWhereItIs(parts.host, operation.pools->volumes, operation.id, *place, call);
}

Result<int64_t> Expand(const OperationParts& parts, const ExpandPoolVolume& operation,
                       const CallOptions& call) {
  PoolServed& pools = *operation.pools;
  ASSIGN_OR_RETURN(const PoolVolumeRecord record, pools.volumes.Find(operation.id));
  if (!operation.also_if_its_filesystem_cannot_follow) {
    RETURN_IF_ERROR(CheckGrowsAtGivenPlace(parts, operation, call));
  }
  const VolumeSpec spec = SpecOf(parts, pools, record);
  ASSIGN_OR_RETURN(ExpandableVolumePlugin* const plugin,
                   parts.plugins.FindExpandablePluginBySpec(spec));
  if (plugin == nullptr) {
    return Error::NotApplied(Code::kInternal, "no plugin makes volume " + operation.id + " larger");
  }
  ASSIGN_OR_RETURN(const Quantity size,
                   plugin->ExpandVolumeDevice(spec, Quantity::FromBytes(operation.bytes),
                                              Quantity::FromBytes(record.capacity_bytes), call));
  return size.Value();
}

Status Modify(const OperationParts& parts, const ModifyPoolVolume& operation,
              const CallOptions& call) {
  std::set<std::string> pods;
  if (NamesThrottle(operation.parameters)) {
    // Whoever has no limit needs not to be known, as only a pod that is known has got one.
    const Result<PoolTuning> tuning = ParsePoolTuning(operation.parameters);
    const bool limits = tuning.ok() && LimitsOf(*tuning) != IoLimits{};
    // What can have no throttle is refused for that, whoever its pods are.
    const Result<PoolVolumeRecord> volume = operation.pools->volumes.Find(operation.id);
    if (tuning.ok() && volume.ok()) RETURN_IF_ERROR(CheckTuning(*tuning, volume->backend));
    for (const PodVolumeRecord& record :
         parts.volumes->FindOfDevice(PoolDeviceName(operation.id))) {
      std::string pod = PodOfPublication(record);
      if (pod.empty() && limits) return WhyPodIsNeeded(operation.id);
      if (!pod.empty()) pods.insert(std::move(pod));
    }
  }
  return operation.pools->volumes.Modify(operation.id, operation.parameters, call, pods);
}

}  // namespace

OperationKey CreatePoolVolume::key() const {
  return OperationKey(UniqueVolumeName("pool-name/" + wish.name));
}

OperationTraits CreatePoolVolume::Traits(const OperationParts&) const {
  const bool is_clone = wish.content && !wish.content->is_snapshot;
  return {.key = key(),
          .name = kCreateOperation,
          .plugin_name = kPoolPluginName,
          .pod_display_name = "",
          .device = is_clone ? PoolDeviceName(wish.content->handle) : UniqueVolumeName(),
          .use = is_clone ? DeviceUse::kExclusive : DeviceUse::kNone,
          .domain = {DomainOfWish(*pools, wish), ""}};
}

std::optional<OperationFailure> CreatePoolVolume::Run(const OperationParts& parts,
                                                      OperationProgress& progress,
                                                      PoolVolumeRecord& result) const {
  progress.EnterStep(kCreateStep);
  Result<PoolVolumeRecord> made = pools->volumes.Create(
      wish, CallOf(parts, key(), DomainOfWish(*pools, wish), parts.settings.provision, progress));
  if (!made.ok()) return OperationFailure{kCreateOperation, kCreateStep, made.error()};
  result = *std::move(made);
  return std::nullopt;
}

OperationKey DeletePoolVolume::key() const { return ReclaimKey(PvNameOf(id)); }

OperationTraits DeletePoolVolume::Traits(const OperationParts&) const {
  return TraitsOfVolume(*pools, key(), kDeleteOperation, id);
}

std::optional<OperationFailure> DeletePoolVolume::Run(const OperationParts& parts,
                                                      OperationProgress& progress, Unit&) const {
  progress.EnterStep(kDeleteStep);
  const Status deleted = [&]() -> Status {
    RETURN_IF_ERROR(Delete(
        parts, *this,
        CallOf(parts, key(), pools->volumes.DomainOf(id), parts.settings.reclaim, progress)));
    // The row of its device outlives its unmount, as it says how the device was formatted; without
    // an object of the volume nobody else ends it.
    const Status forgotten = parts.devices.Forget(PoolDeviceName(id));
    return forgotten.ok() ? forgotten : forgotten.error().AsMaybeApplied();
  }();
  if (deleted.ok()) return std::nullopt;
  return OperationFailure{kDeleteOperation, kDeleteStep, deleted.error()};
}

OperationKey ExpandPoolVolume::key() const { return ChangeKey(id); }

OperationTraits ExpandPoolVolume::Traits(const OperationParts&) const {
  return TraitsOfVolume(*pools, key(), kExpandOperation, id);
}

std::optional<OperationFailure> ExpandPoolVolume::Run(const OperationParts& parts,
                                                      OperationProgress& progress,
                                                      int64_t& result) const {
  progress.EnterStep(kExpandStep);
  const Result<int64_t> expanded = Expand(
      parts, *this,
      CallOf(parts, key(), pools->volumes.DomainOf(id), parts.settings.expand_storage, progress));
  if (!expanded.ok()) return OperationFailure{kExpandOperation, kExpandStep, expanded.error()};
  result = *expanded;
  return std::nullopt;
}

OperationKey ModifyPoolVolume::key() const { return ChangeKey(id); }

OperationTraits ModifyPoolVolume::Traits(const OperationParts&) const {
  return TraitsOfVolume(*pools, key(), kModifyOperation, id);
}

std::optional<OperationFailure> ModifyPoolVolume::Run(const OperationParts& parts,
                                                      OperationProgress& progress, Unit&) const {
  progress.EnterStep(kModifyStep);
  const Status modified = Modify(
      parts, *this,
      CallOf(parts, key(), pools->volumes.DomainOf(id), parts.settings.expand_storage, progress));
  if (modified.ok()) return std::nullopt;
  return OperationFailure{kModifyOperation, kModifyStep, modified.error()};
}

OperationKey ImportPoolVolume::key() const {
  return OperationKey(UniqueVolumeName("pool-import/" + request.source));
}

// Its effects hang with what is imported, which lies on the pool's filesystem if it gets a volume.
OperationTraits ImportPoolVolume::Traits(const OperationParts&) const {
  return {.key = key(),
          .name = kImportOperation,
          .plugin_name = kPoolPluginName,
          .pod_display_name = "",
          .device = UniqueVolumeName(),
          .use = DeviceUse::kNone,
          .domain = {DomainOfImport(request), ""}};
}

std::optional<OperationFailure> ImportPoolVolume::Run(const OperationParts& parts,
                                                      OperationProgress& progress,
                                                      ImportPlan& result) const {
  progress.EnterStep(kLookStep);
  const ImportParts import{.volumes = pools->volumes,
                           .kernel = parts.host.kernel,
                           .driver = pools->driver,
                           .node = parts.host.node.GetNodeName().str(),
                           .agent_root = parts.host.paths.root(),
                           .own_directories = pools->own_directories};
  const CallOptions call = CallOf(parts, key(), DomainOfImport(request), kImportLimit, progress);
  Result<ImportPlan> plan = PlanImport(import, request, call);
  if (!plan.ok()) return OperationFailure{kImportOperation, kLookStep, plan.error()};
  if (does) {
    progress.EnterStep(kImportStep);
    plan = DoImport(import, *std::move(plan), call);
    if (!plan.ok()) return OperationFailure{kImportOperation, kImportStep, plan.error()};
  }
  result = *std::move(plan);
  return std::nullopt;
}

Result<std::optional<CutWish::Mounted>> MountedForWriting(const PoolVolumes& volumes,
                                                          const KubeletPaths& paths,
                                                          const DeviceRecordKeeper& devices,
                                                          Kernel& kernel, const std::string& id,
                                                          const CallOptions& call) {
  const std::optional<DeviceRecord> device = devices.Find(PoolDeviceName(id));
  std::optional<CutWish::Mounted> mounted;
  const auto uncertain = [&id](const std::string& why) {
    return Error::NotApplied(Code::kFailedPrecondition,
                             "it is not certain how volume " + id + " is mounted: " + why);
  };
  if (!device || IsGone(*device)) {
    // Records of an earlier moment do not know that it was staged since.
    ASSIGN_OR_RETURN(const bool is_shown, IsShownAnywhere(volumes, kernel, id, call));
    if (!is_shown) return mounted;
    return Error::NotApplied(Code::kFailedPrecondition,
                             "volume " + id +
                                 " is mounted or bound, and no record says so: repeat "
                                 "NodeStageVolume, or unmount it");
  }
  if (device->uncertain || device->rest_of_mount) {
    return uncertain("a call about its device is to be repeated first");
  }
  if (device->is_block) return mounted;
  if (device->state != VolumeState::kDeviceMounted) {
    return uncertain("its device is " + std::string(VolumeStateName(device->state)));
  }
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(device->volume_json);
  if (spec && IsReadOnlyPoolVolume(*spec)) return mounted;
  ASSIGN_OR_RETURN(SafePath place, PlaceOfDevice(paths, *device));
  ASSIGN_OR_RETURN(const std::optional<MountedSource> source,
                   FindMountedSource(kernel, place, device->fault_domain, call));
  if (source) {
    mounted = {std::move(place), source->device_major, source->device_minor};
    return mounted;
  }
  ASSIGN_OR_RETURN(const std::optional<MountEntry> bind,
                   FindMountAt(kernel, place.Display(), call));
  if (!bind || !BindsVolume(*bind, id)) {
    return uncertain("it is not mounted at " + place.Display());
  }
  mounted = {std::move(place), bind->device_major, bind->device_minor, /*is_bind=*/true};
  return mounted;
}

std::string WriterByRecord(const DeviceRecordKeeper& devices, const std::string& id) {
  const std::optional<DeviceRecord> device = devices.Find(PoolDeviceName(id));
  if (!device || IsGone(*device)) return "";
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(device->volume_json);
  if (spec && IsReadOnlyPoolVolume(*spec)) return "";
  const std::optional<SafePath> place = GivenPlaceOf(*device);
  if (!place) return "a pod of this node has it for writing";
  return "it is staged for writing at " + PrintableText(place->Display());
}

std::string PodOfPublication(const PodVolumeRecord& record) {
  if (!GivenPlaceOf(record)) return record.key.pod.str();
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(record.volume_json);
  const PersistentVolume* const volume = spec ? spec->persistent_volume() : nullptr;
  if (volume == nullptr) return "";
  const auto found = volume->metadata.annotations.find(kPoolPodUidAnnotation);
  return found == volume->metadata.annotations.end() ? "" : found->second;
}

UniqueVolumeName PoolDeviceName(const std::string& id) {
  return GetUniqueVolumeName(kPoolPluginName, id);
}

PersistentVolume PoolPvOf(const PoolVolumeRecord& record, const std::string& driver,
                          const std::string& node) {
  PersistentVolume volume = PoolPersistentVolume(
      driver, record.id, PoolFilesystemOf(record),
      record.is_block ? VolumeMode::kBlock : VolumeMode::kFilesystem, record.capacity_bytes, node);
  volume.metadata.name = PvNameOf(record.id);
  // Whoever asks for its deletion by its id is the one that had it made.
  volume.metadata.annotations[kProvisionedBy] = driver;
  volume.spec.access_modes = {AccessMode::kReadWriteOnce};
  return volume;
}

}  // namespace volumed
