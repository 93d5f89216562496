#include "operation/storage_steps.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "operation/device_facts.h"
#include "operation/pod_volume_facts.h"
#include "operation/recorded_volume.h"
#include "volume/csi_translation.h"
#include "volume/expansion_decision.h"

namespace volumed {
namespace {

bool CanBeReclaimed(const VolumeSpec& spec, VolumePlugin& plugin) {
  const PersistentVolume* volume = spec.persistent_volume();
  if (volume == nullptr) return false;
  switch (ReclaimActionOf(volume->spec.reclaim_policy)) {
    case ReclaimAction::kNone:
      return false;
    case ReclaimAction::kDelete:
      return plugin.AsDeletable() != nullptr;
    case ReclaimAction::kRecycle:
      return plugin.AsRecyclable() != nullptr;
  }
  __builtin_unreachable();
}

StorageHolder KnownHolder(const PersistentVolume& volume) {
  return {.id = "known/" + volume.metadata.name,
          .volume = volume.metadata.name,
          .use = StorageUse::kKnown,
          .persistent = true,
          .text = "persistent volume " + volume.metadata.name};
}

}  // namespace

std::string PodStorageId(const PodVolumeKey& key) { return "pod/" + key.ToString(); }

std::string DeviceStorageId(const UniqueVolumeName& device) { return "device/" + device.str(); }

StorageHolder PodStorageHolder(const PodVolumeKey& key, const VolumeSpec& spec) {
  StorageHolder holder;
  holder.id = PodStorageId(key);
  holder.use = StorageUse::kShared;
  holder.persistent = spec.persistent_volume() != nullptr;
  if (holder.persistent) {
    holder.volume = spec.persistent_volume()->metadata.name;
    holder.text = "persistent volume " + holder.volume + " of pod " + key.pod.str();
  } else {
    holder.volume = holder.id;
    holder.text = "volume " + key.spec.str() + " of pod " + key.pod.str();
  }
  return holder;
}

StorageHolder DeviceStorageHolder(const UniqueVolumeName& device, const SpecName& spec,
                                  StorageUse use) {
  return {.id = DeviceStorageId(device),
          .volume = spec.str(),
          .use = use,
          .persistent = true,
          .text = "persistent volume " + spec.str()};
}

StorageHolder ReclaimStorageHolder(const PersistentVolume& volume) {
  StorageHolder holder = KnownHolder(volume);
  holder.id = "reclaim/" + volume.metadata.name;
  holder.use = StorageUse::kReclaim;
  return holder;
}

bool MayHaveStorage(const PodVolumeRecord& record) {
  // The device of a block volume is its device's.
  if (record.is_block) return false;
  if (record.state == VolumeState::kNotSetUp && !record.uncertain) return false;
  // There may be thousands of records: the volume is not decoded for the question.
  static const std::vector<std::string> names = [] {
    std::vector<std::string> quoted;
    for (const std::string& kind : KindsWithStorageName()) quoted.push_back("\"" + kind + "\"");
    return quoted;
  }();
  return std::any_of(names.begin(), names.end(), [&record](const std::string& name) {
    return record.volume_json.find(name) != std::string::npos;
  });
}

std::optional<KnownStorage> StorageOf(const PodVolumeRecord& record) {
  if (!MayHaveStorage(record)) return std::nullopt;
  const Result<VolumeSpec> spec = DecodeRecordedVolume(record.volume_json);
  if (!spec.ok()) return std::nullopt;
  const std::optional<StorageName> name = StorageNameInPod(record.key.pod, *spec);
  if (!name) return std::nullopt;
  KnownStorage had{PodStorageHolder(record.key, *spec), *name, record.storage};
  had.holder.was_begun =
      record.state == VolumeState::kNotSetUp || record.state == VolumeState::kSettingUp;
  return had;
}

std::optional<KnownStorage> StorageOf(const DeviceRecord& record) {
  if (IsGone(record)) return std::nullopt;
  StorageHolder holder = DeviceStorageHolder(record.key, record.spec, StorageUse::kShared);
  if (record.is_block) {
    if (!record.mapped) return std::nullopt;
    holder.use = StorageUse::kRaw;
    return KnownStorage{std::move(holder), {record.mapped->path}};
  }
  // Only a device gets the record of its filesystem, before it is mounted; a directory has none.
  if (record.format) holder.use = StorageUse::kMounted;
  // Of an interrupted mkfs, a tool that outlived its agent may be at work still.
  if (record.format && !record.format->finished) holder.use = StorageUse::kFormat;
  std::string path = IsDevicePath(record.device_path) ? record.device_path : "";
  if (record.source && !record.source->path.empty()) path = record.source->path;
  if (path.empty() && !record.volume_json.empty()) {
    const Result<VolumeSpec> spec = DecodeRecordedVolume(record.volume_json);
    const auto name = spec.ok() ? StorageNameOf(*spec) : std::nullopt;
    if (name && name->IsOnNode()) path = name->path;
  }
  if (path.empty()) return std::nullopt;
  return KnownStorage{std::move(holder), {std::move(path)}};
}

std::vector<KnownStorage> StorageOf(
    const std::vector<std::shared_ptr<const PersistentVolume>>& volumes) {
  std::vector<KnownStorage> known;
  for (const auto& volume : volumes) {
    const auto name = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*volume, false)));
    if (name) known.push_back({KnownHolder(*volume), *name});
  }
  return known;
}

std::vector<KnownStorage> StorageOf(const StorageGuard& guard,
                                    const std::vector<std::shared_ptr<const Pod>>& pods) {
  std::vector<KnownStorage> known;
  for (const auto& pod : pods) {
    for (const PodVolume& volume : pod->spec.volumes) {
      const VolumeSpec spec = VolumeSpec::FromVolume(volume);
      const std::optional<StorageName> name = StorageNameInPod(pod->uid(), spec);
      if (!name) continue;
      StorageHolder holder = PodStorageHolder({pod->uid(), spec.name()}, spec);
      if (guard.Has(holder.id, StorageUse::kShared)) continue;
      holder.id = "known/" + holder.id;
      holder.use = StorageUse::kKnown;
      known.push_back({std::move(holder), *name});
    }
  }
  return known;
}

std::optional<OperationFailure> ReleaseStorage(StorageGuard& guard, const std::string& id,
                                               const char* operation) {
  const Status released = guard.Release(id);
  if (released.ok()) return std::nullopt;
  return OperationFailure{operation, "ReleaseStorage", released.error().AsMaybeApplied()};
}

PodStorage::PodStorage(StorageGuard& guard, Kernel& kernel, const MountRequest& request,
                       VolumePlugin& plugin, SafePath place)
    : guard_(guard),
      kernel_(kernel),
      request_(request),
      holder_(PodStorageHolder(request.key(), request.spec)),
      name_(StorageNameInPod(request.key().pod, request.spec)),
      reclaimable_(CanBeReclaimed(request.spec, plugin)),
      place_(std::move(place)),
      keeps_directory_(request.spec.SourceAs<LocalVolumeSource>() != nullptr) {}

Status PodStorage::Reserve(const CallOptions& call) {
  // A pod that runs keeps what it has, whatever is at the path by now.
  if (keeps_directory_) {
    ASSIGN_OR_RETURN(const FileInfo info,
                     kernel_.Call(Stat{.path = place_, .only_mount_point = true}, call));
    keeps_directory_ = !info.is_mount_point;
  }
  const bool has_it = request_.is_remount && guard_.Has(holder_.id, StorageUse::kShared);
  // What the pod has already it has taken.
  if (!name_ || (has_it && !keeps_directory_)) {
    recorded_ = true;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const StorageIdentity identity, guard_.Take(holder_, *name_, call));
  // What a driver has is no file that an effect could compare, and has no owner on record.
  recorded_ = !name_->driver.empty();
  if (recorded_) return OkStatus();
  approved_ = std::make_shared<const StorageIdentity>(identity);
  if (identity.type == FileType::kMissing && name_->server.empty()) return OkStatus();
  return RecordIdentity(identity, call);
}

Status PodStorage::ReserveIdentified(const StorageIdentity& identity, const CallOptions& call) {
  approved_ = std::make_shared<const StorageIdentity>(identity);
  recorded_ = true;
  return guard_.TakeIdentified(holder_, *name_, identity, call);
}

Status PodStorage::Record(const CallOptions& call) {
  if (recorded_ || !name_) return OkStatus();
  // A directory that was made for the pod is what it has.
  const bool was_made = approved_ != nullptr && approved_->type == FileType::kMissing;
  if (!holder_.persistent && !was_made) return OkStatus();
  ASSIGN_OR_RETURN(const StorageIdentity identity, guard_.Take(holder_, *name_, call));
  return RecordIdentity(identity, call);
}

GivenStorage PodStorage::Given() const {
  return name_ ? guard_.StorageOf(holder_.id) : GivenStorage();
}

// It has no row that could stay.
void PodStorage::Release() {
  if (name_) (void)guard_.Release(holder_.id);
}

Status PodStorage::RecordIdentity(const StorageIdentity& identity, const CallOptions& call) {
  recorded_ = true;
  if (!holder_.persistent) return OkStatus();
  return guard_.RecordOwner(
      {holder_.volume, *name_, request_.claim_uid, reclaimable_, keeps_directory_}, identity, call);
}

}  // namespace volumed
