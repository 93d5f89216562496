#include "operation/object_record.h"

#include <memory>
#include <optional>
#include <utility>

#include "kube/decode.h"
#include "operation/record_codec.h"
#include "operation/record_rows.h"

namespace volumed {
namespace {

constexpr const char* kCommandNumberKey = "last";

template <typename T>
ObjectRow<T> ObjectRowOf(T record) {
  const std::string_view kind = ObjectKindName(record.object.kind);
  return {std::move(record), std::string(kind)};
}

template <typename T>
Result<T> ObjectRecordOf(ObjectRow<T> read, const Record& row) {
  const std::optional<ObjectKind> kind = ParseObjectKind(read.kind);
  if (!kind) return UnreadableRow(row, "is of the unknown kind \"" + read.kind + "\"");
  read.record.object.kind = *kind;
  return std::move(read.record);
}

template <typename T>
Result<T> ParseObjectRow(const Record& row, const char* kind) {
  ASSIGN_OR_RETURN(ObjectRow<T> read, ParseRow<ObjectRow<T>>(row, kind));
  return ObjectRecordOf(std::move(read), row);
}

}  // namespace

std::string RecordKey(const ObjectKey& object) { return ToString(object); }

Record EncodeRecord(const ObjectUidRecord& record) {
  return EncodeRow(kObjectUidRecordKind, RecordKey(record.object), ObjectRowOf(record));
}

Result<ObjectUidRecord> DecodeObjectUidRecord(const Record& row) {
  ASSIGN_OR_RETURN(ObjectUidRecord record,
                   ParseObjectRow<ObjectUidRecord>(row, kObjectUidRecordKind));
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.object), row));
  if (record.uid.empty()) return UnreadableRow(row, "has no uid");
  return record;
}

Record EncodeRecord(const KnownObjectRecord& record) {
  return EncodeRow(kKnownObjectRecordKind, RecordKey(record.object), ObjectRowOf(record));
}

Result<KnownObjectRecord> DecodeKnownObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(KnownObjectRecord record,
                   ParseObjectRow<KnownObjectRecord>(row, kKnownObjectRecordKind));
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record.object), row));
  return record;
}

Record EncodeRecord(const ObjectSourceRecord& record) {
  ObjectSourceRow row{record, {}};
  for (const auto& [object, reason] : record.unproven) {
    row.unproven.push_back(ObjectRowOf(UnprovenAbsence{object, reason}));
  }
  return EncodeRow(kObjectSourceRecordKind, record.name, row);
}

Result<ObjectSourceRecord> DecodeObjectSourceRecord(const Record& row) {
  ASSIGN_OR_RETURN(ObjectSourceRow read, ParseRow<ObjectSourceRow>(row, kObjectSourceRecordKind));
  ObjectSourceRecord& record = read.record;
  for (ObjectRow<UnprovenAbsence>& element : read.unproven) {
    ASSIGN_OR_RETURN(UnprovenAbsence absence, ObjectRecordOf(std::move(element), row));
    record.unproven.emplace(std::move(absence.object), std::move(absence.reason));
  }
  RETURN_IF_ERROR(BelongsUnder(record.name, row, !record.name.empty()));
  return std::move(record);
}

std::string RecordKey(const DeletedObjectRecord& deleted) {
  return RecordKey(deleted.object) + " " + deleted.uid;
}

Record EncodeRecord(const DeletedObjectRecord& record) {
  return EncodeRow(kDeletedObjectRecordKind, RecordKey(record), ObjectRowOf(record));
}

Result<DeletedObjectRecord> DecodeDeletedObjectRecord(const Record& row) {
  ASSIGN_OR_RETURN(DeletedObjectRecord record,
                   ParseObjectRow<DeletedObjectRecord>(row, kDeletedObjectRecordKind));
  RETURN_IF_ERROR(BelongsUnder(RecordKey(record), row));
  return record;
}

Record EncodeRecord(const CommandNumberRecord& record) {
  return EncodeRow(kCommandNumberRecordKind, kCommandNumberKey, record);
}

Result<CommandNumberRecord> DecodeCommandNumberRecord(const Record& row) {
  ASSIGN_OR_RETURN(const CommandNumberRecord record,
                   ParseRow<CommandNumberRecord>(row, kCommandNumberRecordKind));
  RETURN_IF_ERROR(BelongsUnder(kCommandNumberKey, row));
  return record;
}

ObjectPtr DecodeRecordedObject(const std::string& json) {
  if (json.empty()) return nullptr;
  ManifestDecode decoded = DecodeManifest("record", json);
  if (decoded.objects.size() != 1) return nullptr;
  return std::make_shared<const Object>(std::move(decoded.objects.front().object));
}

}  // namespace volumed
