// The agent's records of the objects of its sources, and of the sources, as values, and their way
// into and out of the record store's rows. No field holds the content of a Secret or ConfigMap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
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

// A claim that is taken for another one loses its volume, or gets that one's.
inline constexpr Durability kObjectUidRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kKnownObjectRecordDurability = Durability::kPowerLoss;
// A command that was answered holds.
inline constexpr Durability kDeletedObjectRecordDurability = Durability::kPowerLoss;
inline constexpr Durability kCommandNumberRecordDurability = Durability::kPowerLoss;
// A directory that is not recognised holds back all that it had.
inline constexpr Durability kObjectSourceRecordDurability = Durability::kPowerLoss;

// An object, no pod, that a source has delivered and that was accepted. Written by the volume
// manager. Key: the object's.
struct KnownObjectRecord {
  ObjectKey object{};
  std::string uid{};     // "": it has none
  std::string source{};  // "" if a program wrote it that did not keep it
  std::string file{};
  std::string object_json{};  // "" if its content is not on record here
  bool missing = false;
  int64_t missing_since_unix_ms = 0;
  std::optional<ContentMark> mark{};  // of a Secret or ConfigMap that is not on record elsewhere
  friend bool operator==(const KnownObjectRecord&, const KnownObjectRecord&) = default;
};

// What the directory of a source is recognised by. Written by the volume manager. Key: the source's
// name.
struct ObjectSourceRecord {
  std::string name{};
  KnownDirectory directory{};
  UnprovenAbsences unproven{};
  friend bool operator==(const ObjectSourceRecord&, const ObjectSourceRecord&) = default;
};

// The uid that the former release has given to an object whose manifest names none: it is taken
// over into a KnownObjectRecord. Key: the object's.
struct ObjectUidRecord {
  ObjectKey object{};
  std::string uid{};
  friend bool operator==(const ObjectUidRecord&, const ObjectUidRecord&) = default;
};

// An object that was deleted by command (volumemanager/deleted_objects.h). Written by the volume
// manager. Key: the object's, and its uid.
struct DeletedObjectRecord {
  ObjectKey object{};
  std::string uid{};
  uint64_t number = 0;
  bool ended = false;
  int64_t since_unix_ms = 0;
  friend bool operator==(const DeletedObjectRecord&, const DeletedObjectRecord&) = default;
};

// The highest number that a command may have had. Written by the volume manager. One row.
struct CommandNumberRecord {
  uint64_t reserved = 0;
  friend bool operator==(const CommandNumberRecord&, const CommandNumberRecord&) = default;
};

// All functions: Threads: any. Blocks: never.

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
