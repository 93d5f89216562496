// A row of the record store: "<kind>/<version>/<key>" in the first line, its bytes behind it. What
// was decoded is encoded to a row that says the same, under the same key, and so is what a restart
// makes of it.
#include <concepts>

#include "base/strings.h"
#include "fuzz/fuzz.h"
#include "operation/object_record.h"
#include "operation/recorded_volume.h"
#include "operation/storage_record.h"
#include "operation/volume_record.h"

namespace volumed::records_fuzz {
namespace {

template <typename T>
using Decoder = Result<T> (*)(const Record&);

template <typename T>
void CheckEncoded(const T& record, const std::string& key, Decoder<T> decode) {
  const Record row = EncodeRecord(record);
  FUZZ_CHECK(row.key == key);
  const Result<T> again = decode(row);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(EncodeRecord(*again) == row);
  FUZZ_CHECK(*again == record);
}

template <typename T>
concept Restarts = requires(T record, BootId boot) {
  { AfterRestart(record, boot) } -> std::same_as<T>;
};

// Nothing a snapshot says is lost when it is made anew.
void CheckSnapshot(const std::string& json) {
  const Result<VolumeSpec> spec = DecodeRecordedVolume(json);
  if (!spec.ok()) return fuzz::CheckError(spec.error());
  const std::string text = EncodeRecordedVolume(*spec);
  const Result<VolumeSpec> again = DecodeRecordedVolume(text);
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(EncodeRecordedVolume(*again) == text);
}

template <typename T>
void CheckRow(const Record& row, Decoder<T> decode) {
  const Result<T> record = decode(row);
  if (!record.ok()) {
    fuzz::CheckError(record.error());
    FUZZ_CHECK(!record.error().maybe_applied());
    FUZZ_CHECK(!QuarantineOf(row, record.error()).reason.empty());
    return;
  }
  CheckEncoded(*record, row.key, decode);
  if constexpr (Restarts<T>) {
    CheckEncoded(AfterRestart(*record, record->boot_id), row.key, decode);
    CheckEncoded(AfterRestart(*record, BootId("another")), row.key, decode);
    CheckSnapshot(record->volume_json);
  }
}

void CheckAnyRow(const Record& row) {
  CheckRow<PodVolumeRecord>(row, DecodePodVolumeRecord);
  CheckRow<DeviceRecord>(row, DecodeDeviceRecord);
  CheckRow<PodRecord>(row, DecodePodRecord);
  CheckRow<HoldRecord>(row, DecodeHoldRecord);
  CheckRow<ClaimBindingRecord>(row, DecodeClaimBindingRecord);
  CheckRow<ProvisionRecord>(row, DecodeProvisionRecord);
  CheckRow<StorageOwnerRecord>(row, DecodeStorageOwnerRecord);
  CheckRow<StorageReservationRecord>(row, DecodeStorageReservationRecord);
  CheckRow<ObjectUidRecord>(row, DecodeObjectUidRecord);
  CheckRow<KnownObjectRecord>(row, DecodeKnownObjectRecord);
  CheckRow<ObjectSourceRecord>(row, DecodeObjectSourceRecord);
  CheckRow<DeletedObjectRecord>(row, DecodeDeletedObjectRecord);
  CheckRow<CommandNumberRecord>(row, DecodeCommandNumberRecord);
}

}  // namespace

FUZZ_TARGET(records)(const uint8_t* data, size_t size) {
  std::string_view bytes = fuzz::TextOf(data, size);
  const fuzz::Halves kind = fuzz::Cut(fuzz::TakeLine(bytes).value_or(""), '/');
  const fuzz::Halves version = fuzz::Cut(kind.behind, '/');
  const auto number = static_cast<uint32_t>(ParseUint64(version.before).value_or(1));
  CheckAnyRow({std::string(kind.before), std::string(version.behind), number, std::string(bytes)});
  return 0;
}

}  // namespace volumed::records_fuzz
