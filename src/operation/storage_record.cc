#include "operation/storage_record.h"

#include <utility>

#include "operation/record_codec.h"
#include "operation/record_rows.h"

namespace volumed {
namespace {

uint32_t VersionOf(const StorageName& name) {
  return name.driver.empty() ? kStorageRecordVersion : kDriverStorageRecordVersion;
}

}  // namespace

std::string RowKey(const StorageOwnerRecord& record) {
  if (record.retained == 0) return record.volume;
  return "retained/" + record.volume + "/" + std::to_string(record.retained);
}

Record EncodeRecord(const StorageOwnerRecord& record) {
  StorageOwnerRow row{record, {}};
  for (const StorageFile& file : record.files) row.files.push_back({file});
  return EncodeRow(kStorageOwnerRecordKind, RowKey(record), row, VersionOf(record.name));
}

Result<StorageOwnerRecord> DecodeStorageOwnerRecord(const Record& row) {
  ASSIGN_OR_RETURN(StorageOwnerRow read, ParseRow<StorageOwnerRow>(row, kStorageOwnerRecordKind,
                                                                   kDriverStorageRecordVersion));
  StorageOwnerRecord& record = read.record;
  for (StorageFileRow& file : read.files) record.files.push_back(std::move(file.file));
  RETURN_IF_ERROR(BelongsUnder(RowKey(record), row, !record.volume.empty()));
  return std::move(record);
}

Record EncodeRecord(const StorageReservationRecord& record) {
  return EncodeRow(kStorageReservationRecordKind, record.holder.id, record, VersionOf(record.name));
}

Result<StorageReservationRecord> DecodeStorageReservationRecord(const Record& row) {
  ASSIGN_OR_RETURN(StorageReservationRecord record,
                   ParseRow<StorageReservationRecord>(row, kStorageReservationRecordKind,
                                                      kDriverStorageRecordVersion));
  record.holder.use = StorageUse::kReclaim;
  record.holder.persistent = true;
  RETURN_IF_ERROR(BelongsUnder(record.holder.id, row, !record.holder.id.empty()));
  return record;
}

}  // namespace volumed
