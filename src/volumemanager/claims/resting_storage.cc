#include "volumemanager/claims/resting_storage.h"

#include <set>
#include <utility>

#include "operation/device_operations.h"
#include "operation/reclaim_operations.h"
#include "operation/storage_operations.h"
#include "volume/csi_translation.h"
#include "volume/unique_name.h"

namespace volumed {

void RestingStorage::Restore(const std::vector<DeviceRecord>& devices) {
  for (const DeviceRecord& device : devices) {
    if (device.format) devices_[device.key] = device.spec.str();
  }
}

UniqueVolumeName RestingStorage::UniqueNameOf(const PersistentVolume& volume) const {
  const VolumeSpec spec = AsUsed(VolumeSpec::FromPersistentVolume(volume, false));
  const Result<VolumePlugin*> plugin = parts_.plugins.FindPluginBySpec(spec);
  if (!plugin.ok()) return UniqueVolumeName();
  const Result<std::string> name = (*plugin)->GetVolumeName(spec);
  return name.ok() ? GetUniqueVolumeName((*plugin)->GetPluginName(), *name) : UniqueVolumeName();
}

void RestingStorage::DeviceRests(const UniqueVolumeName& device, const SpecName& volume) {
  devices_[device] = volume.str();
  if (parts_.readiness.Ready()) ForgetUnlessKnown(device, volume.str());
}

void RestingStorage::ForgetVolume(const PersistentVolume& volume) {
  if (const UniqueVolumeName name = UniqueNameOf(volume); !name.empty()) ForgetDevice(name);
  ForgetStorageOf(volume.metadata.name);
}

void RestingStorage::EndReclaim(const std::string& volume) {
  // What waits for its driver would delete, days later, what is to be kept.
  parts_.operations.GiveUpWaiting(ReclaimKey(volume));
  // Who names the same storage has waited for its end.
  parts_.operations.Start(
      volumed::EndReclaim(volume),
      alive_.Guarded([this, volume](const OperationOutcome<Unit>&) { retry_(volume); }));
}

void RestingStorage::ForgetDevice(const UniqueVolumeName& device) {
  if (parts_.actual.devices().Find(device) != nullptr)
    return;  // its unmount's end calls this again
  devices_.erase(device);
  parts_.operations.Start(volumed::ForgetDevice(device), [](const OperationOutcome<Unit>&) {});
}

void RestingStorage::ForgetStorageOf(const std::string& volume) {
  parts_.operations.Start(volumed::ForgetStorage(volume), [](const OperationOutcome<Unit>&) {});
}

void RestingStorage::ForgetDevices() {
  if (!parts_.readiness.Ready()) return;
  const std::map<UniqueVolumeName, std::string> resting = devices_;
  for (const auto& [device, volume] : resting) ForgetUnlessKnown(device, volume);
}

void RestingStorage::ForgetUnlessKnown(const UniqueVolumeName& device, const std::string& volume) {
  const bool known = parts_.catalog.FindPersistentVolume(volume) != nullptr ||
                     parts_.catalog.MayBeThere({ObjectKind::kPersistentVolume, "", volume}) ||
                     parts_.claims.FindVolume(volume) != nullptr;
  if (!known) ForgetDevice(device);
}

void RestingStorage::ForgetStorage(std::function<void()> done) {
  std::set<std::string> known;
  for (const PersistentVolumePtr& volume : parts_.catalog.PersistentVolumes()) {
    known.insert(volume->metadata.name);
  }
  // These volumes are known only by what is on record, so that is kept.
  for (const UnknownObject& unknown : parts_.catalog.UnknownOf(ObjectKind::kPersistentVolume)) {
    known.insert(unknown.key.name);
  }
  for (const std::string& volume : parts_.claims.BoundVolumes()) known.insert(volume);
  parts_.operations.Start(
      ForgetStorageBut(std::move(known)),
      alive_.Guarded([done = std::move(done)](const OperationOutcome<Unit>&) { done(); }));
}

void RestingStorage::NoteUnknownVolumes() {
  std::vector<UnknownVolume> unknown;
  for (UnknownObject& object : parts_.catalog.UnknownOf(ObjectKind::kPersistentVolume)) {
    UnknownVolume& volume = unknown.emplace_back(
        UnknownVolume{object.key.name, std::move(object.file), std::move(object.reason)});
    const PersistentVolumePtr bound = parts_.claims.FindVolumeObject(volume.volume);
    if (bound == nullptr) continue;
    volume.name = StorageNameOf(AsUsed(VolumeSpec::FromPersistentVolume(*bound, false)));
    // The record of this volume says what it has, and no path of this node could lead there.
    if (!volume.name) unknown.pop_back();
  }
  if (unknown == unknown_) return;
  for (const UnknownVolume& before : std::exchange(unknown_, unknown)) {
    const ObjectKey key{ObjectKind::kPersistentVolume, "", before.volume};
    const bool is_gone = parts_.catalog.LookUp(key).answer == ObjectLookup::Answer::kAbsent;
    if (is_gone && parts_.readiness.Ready() &&
        !parts_.claims.BoundVolumes().contains(before.volume)) {
      ForgetStorageOf(before.volume);
    }
  }
  for (const std::string& held : parts_.operations.SetUnknownVolumes(std::move(unknown))) {
    retry_(held);
  }
}

}  // namespace volumed
