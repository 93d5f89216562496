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

}  // namespace

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
  return {kStorageOwnerRecordKind, record.volume, kStorageRecordVersion,
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
  if (record.volume.empty() || record.volume != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.volume + "\"");
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
