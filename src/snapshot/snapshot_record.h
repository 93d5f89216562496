// The records of snapshots and of groups of them. Only the SnapshotEngine writes them. No field
// holds a secret.
//
// All functions are pure. Threads: any. Blocks: never.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire_fields.h"
#include "kube/object_meta.h"
#include "records/record_store.h"
#include "snapshot/snapshot_state.h"

namespace volumed {

inline constexpr const char* kSnapshotRecordKind = "snapshot";
inline constexpr const char* kSnapshotGroupRecordKind = "snapshot-group";
// What they say decides which data is kept.
inline constexpr Durability kSnapshotRecordDurability = Durability::kPowerLoss;

// Key: the id, which is that of the pool's cut. There is no row before the phase Freezing or
// Cutting.
struct SnapshotRecord {
  std::string id{};
  std::string name{};    // by which a repeated call finds it; unique
  std::string volume{};  // id of the source
  std::string group{};   // id; empty: it is none's
  SnapshotPhase phase = SnapshotPhase::kNotKnown;
  bool cancel_asked = false;
  bool delete_asked = false;
  int64_t bytes_done = 0;   // of those that are copied; the pool's row of the cut is never behind
  int64_t bytes_total = 0;  // 0: nothing is copied
  int64_t size_bytes = 0;   // the least that a volume made of it has
  int64_t started_unix_ms = 0;
  int64_t cut_unix_ms = 0;  // 0: there is no point in time
  int64_t updated_unix_ms = 0;
  std::string error{};  // for people; of a failed one
  int32_t error_code = 0;
  bool error_told = false;  // a caller has had it: the next call begins anew
  StringMap tags{};
  std::string for_volume{};  // it is a clone's, and goes with the making of this volume
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.id);
    v.Text(2, m.name);
    v.Text(3, m.volume);
    v.Text(4, m.group);
    v(5, m.phase);
    v(6, m.cancel_asked);
    v(7, m.delete_asked);
    v(8, m.bytes_done);
    v(9, m.bytes_total);
    v(10, m.size_bytes);
    v(11, m.started_unix_ms);
    v(12, m.cut_unix_ms);
    v(13, m.updated_unix_ms);
    v.Text(14, m.error);
    v(15, m.error_code);
    v(16, m.error_told);
    v(19, m.tags);
    v.Text(20, m.for_volume);
  }
  friend bool operator==(const SnapshotRecord&, const SnapshotRecord&) = default;
};

// Key: the id. Its members have one cut, and one that is not whole is discarded at the start.
struct SnapshotGroupRecord {
  std::string id{};
  std::string name{};
  std::vector<std::string> volumes{};    // sorted
  std::vector<std::string> snapshots{};  // in the order of the volumes
  StringMap parameters{};
  int64_t started_unix_ms = 0;
  bool deleting = false;
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.id);
    v.Text(2, m.name);
    v(3, m.volumes);
    v(4, m.snapshots);
    v(5, m.parameters);
    v(6, m.started_unix_ms);
    v(7, m.deleting);
  }
  friend bool operator==(const SnapshotGroupRecord&, const SnapshotGroupRecord&) = default;
};

Record EncodeRecord(const SnapshotRecord& record);
Record EncodeRecord(const SnapshotGroupRecord& record);
// Errors, not applied: as DecodePodVolumeRecord (operation/volume_record.h); DataLoss also for an
// id that is none or is of another object, for a phase that is not known, and for a group whose
// members are not as many as its volumes.
Result<SnapshotRecord> DecodeSnapshotRecord(const Record& row);
Result<SnapshotGroupRecord> DecodeSnapshotGroupRecord(const Record& row);

}  // namespace volumed
