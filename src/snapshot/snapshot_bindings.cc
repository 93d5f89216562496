#include "snapshot/snapshot_bindings.h"

#include <algorithm>

#include "operation/record_codec.h"

namespace volumed {

Record EncodeRecord(const SnapshotBindingRecord& record) {
  return EncodeRow(kSnapshotBindingRecordKind, record.content, record);
}

Result<SnapshotBindingRecord> DecodeSnapshotBindingRecord(const Record& row) {
  ASSIGN_OR_RETURN(SnapshotBindingRecord record,
                   ParseRow<SnapshotBindingRecord>(row, kSnapshotBindingRecordKind));
  RETURN_IF_ERROR(BelongsUnder(record.content, row, !record.content.empty()));
  if (record.content_uid.empty() || record.name.empty() || record.name_space.empty() ||
      record.uid.empty()) {
    return UnreadableRow(row, "lacks a name or a uid");
  }
  return record;
}

SnapshotBindings::SnapshotBindings(LastingRows::Parts parts)
    : rows_(parts, kSnapshotBindingRecordKind, kSnapshotBindingRecordDurability,
            [](const std::string&) {}) {}

void SnapshotBindings::Restore(const LoadedRecords& rows) {
  for (const Record& row : rows.records) {
    const Result<SnapshotBindingRecord> record = DecodeSnapshotBindingRecord(row);
    if (record.ok()) {
      bindings_[record->content] = *record;
    } else {
      unreadable_[row.key] = record.error().message();
    }
  }
  for (const QuarantinedRecord& row : rows.quarantined) unreadable_[row.key] = row.reason;
}

void SnapshotBindings::Bind(const SnapshotBindingRecord& binding) {
  const SnapshotBindingRecord* const before = Find(binding.content);
  const bool is_free = before == nullptr || before->uid == binding.uid;
  if (!is_free || IsUnreadable(binding.content)) return;
  if (before != nullptr && *before == binding) return;
  bindings_[binding.content] = binding;
  rows_.Put(EncodeRecord(binding));
}

void SnapshotBindings::Forget(const std::string& content) {
  if (bindings_.erase(content) > 0) rows_.Remove(content);
}

const SnapshotBindingRecord* SnapshotBindings::Find(const std::string& content) const {
  const auto found = bindings_.find(content);
  return found == bindings_.end() ? nullptr : &found->second;
}

const SnapshotBindingRecord* SnapshotBindings::OfSnapshot(const std::string& uid) const {
  const auto found = std::find_if(bindings_.begin(), bindings_.end(),
                                  [&uid](const auto& one) { return one.second.uid == uid; });
  return found == bindings_.end() ? nullptr : &found->second;
}

std::vector<SnapshotBindingRecord> SnapshotBindings::All() const {
  std::vector<SnapshotBindingRecord> all;
  for (const auto& [content, binding] : bindings_) all.push_back(binding);
  return all;
}

}  // namespace volumed
