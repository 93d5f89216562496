#include "operation/storage_record.h"

#include <utility>

#include "operation/record_codec.h"
#include "volume_record.pb.h"

namespace volumed {
namespace {

void Write(const StorageName& name, record::StorageName& to) {
  to.set_path(name.path);
  to.set_server(name.server);
}

StorageMode ModeOf(record::StorageOwnerRecord::Mode mode) {
  if (mode == record::StorageOwnerRecord::RAW) return StorageMode::kRaw;
  if (mode == record::StorageOwnerRecord::FILESYSTEM) return StorageMode::kFilesystem;
  return StorageMode::kUnknown;
}

void WriteIdentity(const StorageOwnerRecord& record, record::StorageOwnerRecord& to) {
  to.set_boot_id(record.boot_id.str());
  to.set_retained(record.retained);
  to.set_mode(static_cast<record::StorageOwnerRecord::Mode>(record.mode));
  for (const std::string& key : record.own_keys) to.add_own_keys(key);
  for (const std::string& key : record.within_keys) to.add_within_keys(key);
  for (const StorageFile& file : record.files) {
    record::StorageFileRecord& to_file = *to.add_files();
    to_file.set_path(file.path);
    to_file.set_fs_type(file.object.fs_type);
    to_file.set_fs_uuid(file.object.fs_uuid);
    to_file.set_inode(file.object.inode);
    to_file.set_handle(file.object.handle);
  }
}

void ReadIdentity(const record::StorageOwnerRecord& from, StorageOwnerRecord& record) {
  record.mode = ModeOf(from.mode());
  record.boot_id = BootId(from.boot_id());
  record.retained = from.retained();
  record.own_keys.assign(from.own_keys().begin(), from.own_keys().end());
  record.within_keys.assign(from.within_keys().begin(), from.within_keys().end());
  for (const record::StorageFileRecord& file : from.files()) {
    record.files.push_back(
        {file.path(), {file.fs_type(), file.fs_uuid(), file.inode(), file.handle()}});
  }
}

}  // namespace

std::string RowKey(const StorageOwnerRecord& record) {
  if (record.retained == 0) return record.volume;
  return "retained/" + record.volume + "/" + std::to_string(record.retained);
}

Record EncodeRecord(const StorageOwnerRecord& record) {
  record::StorageOwnerRecord message;
  message.set_volume(record.volume);
  Write(record.name, *message.mutable_name());
  message.set_fs_type(record.object.fs_type);
  message.set_fs_uuid(record.object.fs_uuid);
  message.set_inode(record.object.inode);
  message.set_handle(record.object.handle);
  message.set_claim_uid(record.claim_uid);
  message.set_marked(record.marked);
  WriteIdentity(record, message);
  return {kStorageOwnerRecordKind, RowKey(record), kStorageRecordVersion,
          message.SerializeAsString()};
}

Result<StorageOwnerRecord> DecodeStorageOwnerRecord(const Record& row) {
  ASSIGN_OR_RETURN(
      const record::StorageOwnerRecord message,
      ParseRow<record::StorageOwnerRecord>(row, kStorageOwnerRecordKind, kStorageRecordVersion));
  StorageOwnerRecord record{
      message.volume(),
      {message.name().path(), message.name().server()},
      {message.fs_type(), message.fs_uuid(), message.inode(), message.handle()},
      message.claim_uid(),
      message.marked()};
  ReadIdentity(message, record);
  if (record.volume.empty() || RowKey(record) != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + RowKey(record) + "\"");
  }
  return record;
}

Record EncodeRecord(const StorageReservationRecord& record) {
  record::StorageReservationRecord message;
  message.set_id(record.holder.id);
  message.set_volume(record.holder.volume);
  message.set_text(record.holder.text);
  Write(record.name, *message.mutable_name());
  message.set_boot_id(record.boot_id.str());
  return {kStorageReservationRecordKind, record.holder.id, kStorageRecordVersion,
          message.SerializeAsString()};
}

Result<StorageReservationRecord> DecodeStorageReservationRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::StorageReservationRecord message,
                   ParseRow<record::StorageReservationRecord>(row, kStorageReservationRecordKind,
                                                              kStorageRecordVersion));
  StorageReservationRecord record;
  record.holder.id = message.id();
  record.holder.volume = message.volume();
  record.holder.use = StorageUse::kReclaim;
  record.holder.persistent = true;
  record.holder.text = message.text();
  record.name = {message.name().path(), message.name().server()};
  record.boot_id = BootId(message.boot_id());
  if (record.holder.id.empty() || record.holder.id != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.holder.id + "\"");
  }
  return record;
}

}  // namespace volumed
