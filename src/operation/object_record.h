// The agent's records of the objects of its sources, and of the sources themselves, as values, with
// the fields of their rows in the record store, and their conversion. No field holds the content of
// a Secret or ConfigMap. The fields 1 to 3 of a record about an object are the object, as ObjectRow
// in operation/record_rows.h has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/wire_fields.h"
#include "kube/content_mark.h"
#include "kube/object_source.h"
#include "kube/objects.h"
#include "records/record_store.h"

namespace volumed {

inline constexpr const char* kObjectUidRecordKind = "object-uid";  // of the former release
inline constexpr const char* kDeletedObjectRecordKind = "deleted-object";
inline constexpr const char* kCommandNumberRecordKind = "command-number";
inline constexpr const char* kKnownObjectRecordKind = "known-object";
inline constexpr const char* kObjectSourceRecordKind = "object-source";

// A claim that is mistaken for another one loses its volume, or gets the other claim's.
inline constexpr Durability kObjectUidRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kKnownObjectRecordDurability = Durability::kPowerLoss;
// A command that was answered must hold.
inline constexpr Durability kDeletedObjectRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kCommandNumberRecordDurability = Durability::kPowerLoss;
// If a directory is not recognised, everything that it had is held.
inline constexpr Durability kObjectSourceRecordDurability = Durability::kPowerLoss;

template <>
struct WireFieldsOf<ContentMark> {
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.secret_type);
    v(2, m.immutable);
    v(3, m.salt);
    v(4, m.data_digest);
    v(5, m.binary_digest);
  }
};

// An object, other than a pod, that a source has delivered and that was accepted. The volume
// manager writes it. Key: the object's.
struct KnownObjectRecord {
  ObjectKey object{};
  std::string uid{};  // "" if it has none
  // "" if it was written by a program that did not record the source.
  std::string source{};
  std::string file{};
  // The object as EncodeObjectJson writes it; "" if its content is not recorded here.
  std::string object_json{};
  // The object had left its source, and no command had ended it.
  bool missing = false;
  int64_t missing_since_unix_ms = 0;
  // For a Secret or ConfigMap that is not recorded elsewhere.
  std::optional<ContentMark> mark{};
  static void FieldsBesideObject(auto& v, auto& m) {
    v.Text(4, m.uid);
    v.Text(5, m.source);
    v.Text(6, m.file);
    v.Text(7, m.object_json);
    v(8, m.missing);
    v(9, m.missing_since_unix_ms);
    v(10, m.mark);
  }
  friend bool operator==(const KnownObjectRecord&, const KnownObjectRecord&) = default;
};

// The facts by which the directory of a source is recognised. The volume manager writes it. Key:
// the source's name. Fields: ObjectSourceRow in operation/record_rows.h.
struct ObjectSourceRecord {
  std::string name{};
  KnownDirectory directory{};
  UnprovenAbsences unproven{};
  friend bool operator==(const ObjectSourceRecord&, const ObjectSourceRecord&) = default;
};

// The uid that the former release gave to an object whose manifest names none; it is moved into a
// KnownObjectRecord. Key: the object's.
struct ObjectUidRecord {
  ObjectKey object{};
  std::string uid{};
  static void FieldsBesideObject(auto& v, auto& m) { v.Text(4, m.uid); }
  friend bool operator==(const ObjectUidRecord&, const ObjectUidRecord&) = default;
};

// An object that was deleted by command (volumemanager/claims/deleted_objects.h). The volume
// manager writes it before the command is answered, and before anything of the object goes; it is
// kept as long as a file of an earlier command, or a manifest, still has the object. Key: the
// object's key and its uid.
struct DeletedObjectRecord {
  ObjectKey object{};
  std::string uid{};    // "" if it has none
  uint64_t number = 0;  // of the command: what a command with a higher one has given is not deleted
  // Nothing protects the object any more: it is gone, whatever a source says.
  bool ended = false;
  int64_t since_unix_ms = 0;
  // Of a PersistentVolume: by command nothing reclaims its storage, which stays where it is.
  bool storage_left = false;
  static void FieldsBesideObject(auto& v, auto& m) {
    v.Text(4, m.uid);
    v(5, m.number);
    v(6, m.ended);
    v(7, m.since_unix_ms);
    v(8, m.storage_left);
  }
  friend bool operator==(const DeletedObjectRecord&, const DeletedObjectRecord&) = default;
};

// The highest number that a command may have got. The volume manager writes it before a command
// gets a higher one. There is one row.
struct CommandNumberRecord {
  uint64_t reserved = 0;
  static void WireFields(auto& v, auto& m) { v(1, m.reserved); }
  friend bool operator==(const CommandNumberRecord&, const CommandNumberRecord&) = default;
};

// All functions: Threads: any. Blocks: never.

// The key of an object is as ToString() shows the object; that of a deleted one has its uid too,
// after a blank.
std::string RecordKey(const ObjectKey& object);
std::string RecordKey(const DeletedObjectRecord& deleted);

Record EncodeRecord(const ObjectUidRecord& record);
Record EncodeRecord(const DeletedObjectRecord& record);
Record EncodeRecord(const CommandNumberRecord& record);
Record EncodeRecord(const KnownObjectRecord& record);
Record EncodeRecord(const ObjectSourceRecord& record);

// Errors, not applied: as in operation/volume_record.h.
Result<ObjectUidRecord> DecodeObjectUidRecord(const Record& row);
Result<DeletedObjectRecord> DecodeDeletedObjectRecord(const Record& row);
Result<CommandNumberRecord> DecodeCommandNumberRecord(const Record& row);
Result<KnownObjectRecord> DecodeKnownObjectRecord(const Record& row);
Result<ObjectSourceRecord> DecodeObjectSourceRecord(const Record& row);

// The object that a record holds as JSON; null if it holds none, or one that is refused by now.
ObjectPtr DecodeRecordedObject(const std::string& json);

}  // namespace volumed
