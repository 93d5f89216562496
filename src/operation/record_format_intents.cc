#include "operation/record_format_intents.h"

#include <utility>

#include "operation/storage_steps.h"

namespace volumed {

Result<std::optional<FormatIntent>> RecordFormatIntents::Find(const std::string& key) {
  const std::optional<DeviceRecord> record = devices_.Find(UniqueVolumeName(key));
  if (!record || !record->format) return std::optional<FormatIntent>();
  const FormatRecord& format = *record->format;
  return std::optional<FormatIntent>(FormatIntent{.device = format.device,
                                                  .fs_type = format.fs_type,
                                                  .fs_uuid = format.fs_uuid,
                                                  .finished = format.finished});
}

Status RecordFormatIntents::Put(const std::string& key, const FormatIntent& intent, bool finished) {
  FormatRecord format{.device = intent.device,
                      .fs_type = intent.fs_type,
                      .fs_uuid = intent.fs_uuid,
                      .finished = finished,
                      .boot_id = boot_id_};
  format.device.uuid.clear();
  return devices_.SetFormat(UniqueVolumeName(key), std::move(format));
}

Status RecordFormatIntents::Reserve(const std::string& key, const std::string& device,
                                    const CallOptions& call) {
  const UniqueVolumeName name(key);
  const std::optional<DeviceRecord> record = devices_.Find(name);
  const SpecName spec = record ? record->spec : SpecName(key);
  RETURN_IF_ERROR(storage_.Take(DeviceStorageHolder(name, spec, StorageUse::kMounted),
                                StorageName{device}, call));
  return OkStatus();
}

Status RecordFormatIntents::Begin(const std::string& key, const FormatIntent& intent) {
  RETURN_IF_ERROR(storage_.Change(DeviceStorageId(UniqueVolumeName(key)), StorageUse::kFormat));
  return Put(key, intent, false);
}

Status RecordFormatIntents::Finish(const std::string& key, const FormatIntent& intent) {
  RETURN_IF_ERROR(Put(key, intent, true));
  return storage_.Change(DeviceStorageId(UniqueVolumeName(key)), StorageUse::kMounted);
}

Status RecordFormatIntents::Withdraw(const std::string& key) {
  RETURN_IF_ERROR(devices_.SetFormat(UniqueVolumeName(key), std::nullopt));
  return storage_.Change(DeviceStorageId(UniqueVolumeName(key)), StorageUse::kMounted);
}

}  // namespace volumed
