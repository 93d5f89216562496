#include "snapshot/snapshot_record.h"

#include <optional>

#include "operation/record_codec.h"
#include "pool/pool_id.h"

namespace volumed {
namespace {

bool IsIdOf(PoolObject object, const std::string& id) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  return parsed && parsed->object == object;
}

}  // namespace

Record EncodeRecord(const SnapshotRecord& record) {
  return EncodeRow(kSnapshotRecordKind, record.id, record);
}

Record EncodeRecord(const SnapshotGroupRecord& record) {
  return EncodeRow(kSnapshotGroupRecordKind, record.id, record);
}

Result<SnapshotRecord> DecodeSnapshotRecord(const Record& row) {
  ASSIGN_OR_RETURN(SnapshotRecord record, ParseRow<SnapshotRecord>(row, kSnapshotRecordKind));
  RETURN_IF_ERROR(BelongsUnder(record.id, row, IsIdOf(PoolObject::kCut, record.id)));
  if (record.phase == SnapshotPhase::kNotKnown) {
    return UnreadableRow(row, "has a phase that this program does not know");
  }
  if (record.name.empty() || record.volume.empty()) {
    return UnreadableRow(row, "has no name or no volume");
  }
  return record;
}

Result<SnapshotGroupRecord> DecodeSnapshotGroupRecord(const Record& row) {
  ASSIGN_OR_RETURN(SnapshotGroupRecord record,
                   ParseRow<SnapshotGroupRecord>(row, kSnapshotGroupRecordKind));
  RETURN_IF_ERROR(BelongsUnder(record.id, row, IsIdOf(PoolObject::kGroup, record.id)));
  if (record.name.empty() || record.snapshots.empty() ||
      record.snapshots.size() != record.volumes.size()) {
    return UnreadableRow(row, "has no name, no member or not one for each volume");
  }
  return record;
}

}  // namespace volumed
