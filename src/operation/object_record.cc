#include "operation/object_record.h"

#include <optional>
#include <utility>

#include "operation/record_codec.h"
#include "volume_record.pb.h"

namespace volumed {

std::string RecordKey(const ObjectKey& object) { return ToString(object); }

Record EncodeRecord(const ObjectUidRecord& record) {
  record::ObjectUidRecord message;
  message.set_kind(std::string(ObjectKindName(record.object.kind)));
  message.set_namespace_(record.object.name_space);
  message.set_name(record.object.name);
  message.set_uid(record.uid);
  return EncodeRow(kObjectUidRecordKind, RecordKey(record.object), message);
}

Result<ObjectUidRecord> DecodeObjectUidRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::ObjectUidRecord message,
                   ParseRow<record::ObjectUidRecord>(row, kObjectUidRecordKind));
  const std::optional<ObjectKind> kind = ParseObjectKind(message.kind());
  if (!kind) return UnreadableRow(row, "is of the unknown kind \"" + message.kind() + "\"");
  ObjectUidRecord record{{*kind, message.namespace_(), message.name()}, message.uid()};
  const std::string key = RecordKey(record.object);
  if (key != row.key) return UnreadableRow(row, "belongs under the key \"" + key + "\"");
  if (record.uid.empty()) return UnreadableRow(row, "has no uid");
  return record;
}

Record EncodeRecord(const KnownObjectRecord& record) {
  record::KnownObjectRecord message;
  message.set_kind(std::string(ObjectKindName(record.object.kind)));
  message.set_namespace_(record.object.name_space);
  message.set_name(record.object.name);
  message.set_uid(record.uid);
  message.set_source(record.source);
  message.set_file(record.file);
  message.set_object_json(record.object_json);
  message.set_missing(record.missing);
  message.set_missing_since_unix_ms(record.missing_since_unix_ms);
  return EncodeRow(kKnownObjectRecordKind, RecordKey(record.object), message);
}

Result<KnownObjectRecord> DecodeKnownObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::KnownObjectRecord message,
                   ParseRow<record::KnownObjectRecord>(row, kKnownObjectRecordKind));
  const std::optional<ObjectKind> kind = ParseObjectKind(message.kind());
  if (!kind) return UnreadableRow(row, "is of the unknown kind \"" + message.kind() + "\"");
  KnownObjectRecord record;
  record.object = {*kind, message.namespace_(), message.name()};
  record.uid = message.uid();
  record.source = message.source();
  record.file = message.file();
  record.object_json = message.object_json();
  record.missing = message.missing();
  record.missing_since_unix_ms = message.missing_since_unix_ms();
  const std::string key = RecordKey(record.object);
  if (key != row.key) return UnreadableRow(row, "belongs under the key \"" + key + "\"");
  return record;
}

Record EncodeRecord(const ObjectSourceRecord& record) {
  record::ObjectSourceRecord message;
  message.set_name(record.name);
  message.set_filesystem_type(record.directory.filesystem_type);
  message.set_filesystem_uuid(record.directory.filesystem_uuid);
  if (record.directory.inode) message.set_inode(*record.directory.inode);
  if (record.directory.birth_unix_nanos) {
    message.set_birth_unix_nanos(*record.directory.birth_unix_nanos);
  }
  return EncodeRow(kObjectSourceRecordKind, record.name, message);
}

Result<ObjectSourceRecord> DecodeObjectSourceRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::ObjectSourceRecord message,
                   ParseRow<record::ObjectSourceRecord>(row, kObjectSourceRecordKind));
  ObjectSourceRecord record;
  record.name = message.name();
  record.directory.filesystem_type = message.filesystem_type();
  record.directory.filesystem_uuid = message.filesystem_uuid();
  if (message.has_inode()) record.directory.inode = message.inode();
  if (message.has_birth_unix_nanos()) {
    record.directory.birth_unix_nanos = message.birth_unix_nanos();
  }
  if (record.name.empty() || record.name != row.key) {
    return UnreadableRow(row, "belongs under the key \"" + record.name + "\"");
  }
  return record;
}

std::string RecordKey(const DeletedObjectRecord& deleted) {
  return RecordKey(deleted.object) + " " + deleted.uid;
}

Record EncodeRecord(const DeletedObjectRecord& record) {
  record::DeletedObjectRecord message;
  message.set_kind(std::string(ObjectKindName(record.object.kind)));
  message.set_namespace_(record.object.name_space);
  message.set_name(record.object.name);
  message.set_uid(record.uid);
  message.set_number(record.number);
  message.set_ended(record.ended);
  message.set_since_unix_ms(record.since_unix_ms);
  return EncodeRow(kDeletedObjectRecordKind, RecordKey(record), message);
}

Result<DeletedObjectRecord> DecodeDeletedObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::DeletedObjectRecord message,
                   ParseRow<record::DeletedObjectRecord>(row, kDeletedObjectRecordKind));
  const std::optional<ObjectKind> kind = ParseObjectKind(message.kind());
  if (!kind) return UnreadableRow(row, "is of the unknown kind \"" + message.kind() + "\"");
  DeletedObjectRecord record{{*kind, message.namespace_(), message.name()},
                             message.uid(),
                             message.number(),
                             message.ended(),
                             message.since_unix_ms()};
  const std::string key = RecordKey(record);
  if (key != row.key) return UnreadableRow(row, "belongs under the key \"" + key + "\"");
  return record;
}

Record EncodeRecord(const CommandNumberRecord& record) {
  record::CommandNumberRecord message;
  message.set_reserved(record.reserved);
  return EncodeRow(kCommandNumberRecordKind, "last", message);
}

Result<CommandNumberRecord> DecodeCommandNumberRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::CommandNumberRecord message,
                   ParseRow<record::CommandNumberRecord>(row, kCommandNumberRecordKind));
  return CommandNumberRecord{message.reserved()};
}

}  // namespace volumed
