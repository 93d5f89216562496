#include "operation/object_record.h"

#include <memory>
#include <optional>
#include <utility>

#include "kube/decode.h"
#include "operation/record_codec.h"
#include "volume_record.pb.h"

namespace volumed {
namespace {

constexpr const char* kCommandNumberKey = "last";

template <typename Message>
void SetObject(const ObjectKey& object, Message* message) {
  message->set_kind(std::string(ObjectKindName(object.kind)));
  message->set_namespace_(object.name_space);
  message->set_name(object.name);
}

template <typename Message>
Result<ObjectKey> ObjectOf(const Message& message, const Record& row) {
  const std::optional<ObjectKind> kind = ParseObjectKind(message.kind());
  if (!kind) return UnreadableRow(row, "is of the unknown kind \"" + message.kind() + "\"");
  return ObjectKey{*kind, message.namespace_(), message.name()};
}

// A row under another key than its content's would be found by neither name.
Status BelongsUnder(const std::string& key, const Record& row) {
  if (key == row.key) return OkStatus();
  return UnreadableRow(row, "belongs under the key \"" + key + "\"");
}

}  // namespace

std::string RecordKey(const ObjectKey& object) { return ToString(object); }

Record EncodeRecord(const ObjectUidRecord& record) {
  record::ObjectUidRecord message;
  SetObject(record.object, &message);
  message.set_uid(record.uid);
  return EncodeRow(kObjectUidRecordKind, RecordKey(record.object), message);
}

Result<ObjectUidRecord> DecodeObjectUidRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::ObjectUidRecord message,
                   ParseRow<record::ObjectUidRecord>(row, kObjectUidRecordKind));
  ASSIGN_OR_RETURN(ObjectKey object, ObjectOf(message, row));
  ObjectUidRecord record{std::move(object), message.uid()};
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.object), row));
  if (record.uid.empty()) return UnreadableRow(row, "has no uid");
  return record;
}

Record EncodeRecord(const KnownObjectRecord& record) {
  record::KnownObjectRecord message;
  SetObject(record.object, &message);
  message.set_uid(record.uid);
  message.set_source(record.source);
  message.set_file(record.file);
  message.set_object_json(record.object_json);
  message.set_missing(record.missing);
  message.set_missing_since_unix_ms(record.missing_since_unix_ms);
  if (record.mark) {
    record::ContentMark& mark = *message.mutable_mark();
    mark.set_secret_type(record.mark->secret_type);
    mark.set_immutable(record.mark->immutable);
    mark.set_salt(record.mark->salt);
    mark.set_data_digest(record.mark->data_digest);
    mark.set_binary_digest(record.mark->binary_digest);
  }
  return EncodeRow(kKnownObjectRecordKind, RecordKey(record.object), message);
}

Result<KnownObjectRecord> DecodeKnownObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::KnownObjectRecord message,
                   ParseRow<record::KnownObjectRecord>(row, kKnownObjectRecordKind));
  ASSIGN_OR_RETURN(ObjectKey object, ObjectOf(message, row));
  KnownObjectRecord record;
  record.object = std::move(object);
  record.uid = message.uid();
  record.source = message.source();
  record.file = message.file();
  record.object_json = message.object_json();
  record.missing = message.missing();
  record.missing_since_unix_ms = message.missing_since_unix_ms();
  if (message.has_mark()) {
    const record::ContentMark& mark = message.mark();
    record.mark = ContentMark{mark.secret_type(), mark.immutable(), mark.salt(), mark.data_digest(),
                              mark.binary_digest()};
  }
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.object), row));
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
  if (record.directory.changed_unix_nanos) {
    message.set_changed_unix_nanos(*record.directory.changed_unix_nanos);
  }
  for (const auto& [object, reason] : record.unproven) {
    auto* absence = message.add_unproven();
    SetObject(object, absence);
    absence->set_reason(reason);
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
  if (message.has_changed_unix_nanos()) {
    record.directory.changed_unix_nanos = message.changed_unix_nanos();
  }
  for (const record::ObjectSourceRecord::UnprovenAbsence& absence : message.unproven()) {
    ASSIGN_OR_RETURN(ObjectKey object, ObjectOf(absence, row));
    record.unproven.emplace(std::move(object), absence.reason());
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
  SetObject(record.object, &message);
  message.set_uid(record.uid);
  message.set_number(record.number);
  message.set_ended(record.ended);
  message.set_since_unix_ms(record.since_unix_ms);
  return EncodeRow(kDeletedObjectRecordKind, RecordKey(record), message);
}

Result<DeletedObjectRecord> DecodeDeletedObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::DeletedObjectRecord message,
                   ParseRow<record::DeletedObjectRecord>(row, kDeletedObjectRecordKind));
  ASSIGN_OR_RETURN(ObjectKey object, ObjectOf(message, row));
  DeletedObjectRecord record{std::move(object), message.uid(), message.number(), message.ended(),
                             message.since_unix_ms()};
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record), row));
  return record;
}

Record EncodeRecord(const CommandNumberRecord& record) {
  record::CommandNumberRecord message;
  message.set_reserved(record.reserved);
  return EncodeRow(kCommandNumberRecordKind, kCommandNumberKey, message);
}

Result<CommandNumberRecord> DecodeCommandNumberRecord(const Record& row) {
  ASSIGN_OR_RETURN(const record::CommandNumberRecord message,
                   ParseRow<record::CommandNumberRecord>(row, kCommandNumberRecordKind));
  RETURN_IF_ERROR(BelongsUnder(kCommandNumberKey, row));
  return CommandNumberRecord{message.reserved()};
}

ObjectPtr DecodeRecordedObject(const std::string& json) {
  if (json.empty()) return nullptr;
  ManifestDecode decoded = DecodeManifest("record", json);
  if (decoded.objects.size() != 1) return nullptr;
  return std::make_shared<const Object>(std::move(decoded.objects.front().object));
}

}  // namespace volumed
