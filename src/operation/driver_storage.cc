#include "operation/driver_storage.h"

#include <string>
#include <utility>

#include "kube/volume_sources.h"
#include "operation/recorded_volume.h"
#include "operation/storage_steps.h"
#include "volume/driver_domain.h"
#include "volume/storage_name.h"

namespace volumed {
namespace {

std::optional<KnownStorage> StorageFor(const UniqueVolumeName& device, const VolumeSpec& spec) {
  std::optional<StorageName> name = StorageNameOf(spec);
  if (!name || name->driver.empty()) return std::nullopt;
  StorageHolder holder = DeviceStorageHolder(device, spec.name(), StorageUse::kShared);
  holder.id = DriverStorageId(device);
  return KnownStorage{std::move(holder), *std::move(name)};
}

// Whether a driver may name the storage, by what the row says of its source. A driver that this
// agent is itself has volumes that hang with their pool, and not with it.
bool MayBeOfDriver(const DeviceRecord& record) {
  static const std::string source = "\"" + std::string(CsiPersistentVolumeSource::kKind) + "\"";
  return IsDriverDomain(record.fault_domain) ||
         record.volume_json.find(source) != std::string::npos;
}

}  // namespace

std::string DriverStorageId(const UniqueVolumeName& device) { return "driver/" + device.str(); }

std::optional<KnownStorage> DriverStorageOf(const DeviceRecord& record) {
  // There may be thousands of records: of the others nothing is decoded.
  if (IsGone(record) || !MayBeOfDriver(record)) return std::nullopt;
  const std::optional<VolumeSpec> spec = ReadRecordedVolume(record.volume_json);
  return spec ? StorageFor(record.key, *spec) : std::nullopt;
}

void AddReserveDriverStorage(const OperationParts& parts, const UniqueVolumeName& device,
                             const VolumeSpec& spec, std::vector<Step>& steps) {
  std::optional<KnownStorage> storage = StorageFor(device, spec);
  if (!storage) return;
  steps.push_back({.name = "ReserveStorage",
                   .timeout = parts.settings.attach,
                   .changes_volume = false,
                   .run = [&guard = parts.storage,
                           storage = *std::move(storage)](const CallOptions& call) -> Status {
                     RETURN_IF_ERROR(guard.Take(storage.holder, storage.name, call));
                     return OkStatus();
                   }});
}

std::optional<OperationFailure> ReleaseDeviceStorage(const OperationParts& parts,
                                                     const DeviceRecord& facts,
                                                     const char* operation) {
  if (!facts.attachable) {
    auto failure = ReleaseStorage(parts.storage, DriverStorageId(facts.key), operation);
    if (failure) return failure;
  }
  return ReleaseStorage(parts.storage, DeviceStorageId(facts.key), operation);
}

void ReleaseDriverStorageIfGone(const OperationParts& parts, const UniqueVolumeName& device) {
  const std::optional<DeviceRecord> left = parts.devices.Find(device);
  if (!left || IsGone(*left)) (void)parts.storage.Release(DriverStorageId(device));
}

}  // namespace volumed
