#include "operation/record_format_intents.h"

#include <utility>

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

Status RecordFormatIntents::Begin(const std::string& key, const FormatIntent& intent) {
  return Put(key, intent, false);
}

Status RecordFormatIntents::Finish(const std::string& key, const FormatIntent& intent) {
  return Put(key, intent, true);
}

Status RecordFormatIntents::Withdraw(const std::string& key) {
  return devices_.SetFormat(UniqueVolumeName(key), std::nullopt);
}

}  // namespace volumed
