// SnapshotBindings: which VolumeSnapshot each VolumeSnapshotContent belongs to, over restarts. A
// content that is bound belongs to no other VolumeSnapshot, also of the same name; and a
// VolumeSnapshot that had a content gets no other one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/wire_fields.h"
#include "kube/snapshot_objects.h"
#include "records/record_store.h"
#include "volumemanager/lasting_rows.h"

namespace volumed {

inline constexpr const char* kSnapshotBindingRecordKind = "snapshot-binding";
// It says whose data is deleted.
inline constexpr Durability kSnapshotBindingRecordDurability = Durability::kPowerLoss;

// Key: the content's name.
struct SnapshotBindingRecord {
  std::string content{};
  std::string content_uid{};
  std::string name_space{};  // of the VolumeSnapshot, as the next two
  std::string name{};
  std::string uid{};
  static void WireFields(auto& v, auto& m) {
    v.Text(1, m.content);
    v.Text(2, m.content_uid);
    v.Text(3, m.name_space);
    v.Text(4, m.name);
    v.Text(5, m.uid);
  }
  friend bool operator==(const SnapshotBindingRecord&, const SnapshotBindingRecord&) = default;
};

Record EncodeRecord(const SnapshotBindingRecord& record);
// Errors, not applied: as DecodePodVolumeRecord (operation/volume_record.h); DataLoss also if a
// name or a uid is empty.
Result<SnapshotBindingRecord> DecodeSnapshotBindingRecord(const Record& row);

// Threads: the control thread. Blocks: never. Errors: logged, and a row is written again until that
// succeeds.
class SnapshotBindings {
 public:
  // `parts` outlive this object.
  explicit SnapshotBindings(LastingRows::Parts parts);

  // Takes over what the last agent left. Of a row that cannot be read the content is bound to
  // nobody, and nobody can be bound to it.
  void Restore(const LoadedRecords& rows);
  // Has no effect if it is bound to another VolumeSnapshot, or if its row cannot be read.
  void Bind(const SnapshotBindingRecord& binding);
  void Forget(const std::string& content);

  // Null if the content is not bound.
  const SnapshotBindingRecord* Find(const std::string& content) const;
  // The content of the VolumeSnapshot with this uid; null if it has none.
  const SnapshotBindingRecord* OfSnapshot(const std::string& uid) const;
  bool IsUnreadable(const std::string& content) const { return unreadable_.contains(content); }
  std::vector<SnapshotBindingRecord> All() const;

 private:
  LastingRows rows_;
  std::map<std::string, SnapshotBindingRecord> bindings_;  // by content
  std::map<std::string, std::string> unreadable_;          // content -> why
};

}  // namespace volumed
