// SnapshotEngine: what an agent takes over from the one before it.
#include <chrono>
#include <utility>

#include "snapshot/snapshot_engine.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {
namespace {

constexpr Duration kThawDeadline = std::chrono::seconds(30);

}  // namespace

void SnapshotEngine::Restore(const std::string& kind, const LoadedRecords& rows) {
  const MutexLock lock(mu_);
  for (const QuarantinedRecord& row : rows.quarantined) unreadable_[row.key] = row.reason;
  if (kind == kSnapshotRecordKind) RestoreSnapshots(rows);
  if (kind == kSnapshotGroupRecordKind) RestoreGroups(rows);
}

// What was being cut is no point in time, whatever its file says.
void SnapshotEngine::RestoreSnapshots(const LoadedRecords& rows) {
  for (const Record& row : rows.records) {
    Result<SnapshotRecord> decoded = DecodeSnapshotRecord(row);
    if (!decoded.ok()) {
      unreadable_[row.key] = decoded.error().message();
      continue;
    }
    SnapshotRecord record = *std::move(decoded);
    const std::optional<SnapshotTransition> next = Next(record.phase, SnapshotEvent::kRestart);
    if (!next) {
      unreadable_[row.key] = "has a phase that is never written";
      continue;
    }
    if (record.phase == SnapshotPhase::kFreezing) to_thaw_.insert(record.id);
    record.phase = next->to;
    names_[record.name] = record.id;
    if (!record.for_volume.empty()) clones_.insert(record.id);
    snapshots_[record.id] = std::move(record);
  }
}

void SnapshotEngine::RestoreGroups(const LoadedRecords& rows) {
  for (const Record& row : rows.records) {
    Result<SnapshotGroupRecord> decoded = DecodeSnapshotGroupRecord(row);
    if (!decoded.ok()) {
      unreadable_[row.key] = decoded.error().message();
      continue;
    }
    group_names_[decoded->name] = decoded->id;
    groups_[decoded->id] = *std::move(decoded);
  }
}

// A group that was not cut whole has no point in time.
void SnapshotEngine::MarkUnfinished() {
  for (const auto& [id, group] : groups_) {
    bool is_readable = true;
    for (const std::string& member : group.snapshots) {
      is_readable = is_readable && !unreadable_.contains(member);
    }
    if (is_readable && !ViewOf(group)) MarkGroup(id);
  }
}

std::vector<SnapshotRecord> SnapshotEngine::Doubted() const {
  std::vector<SnapshotRecord> copied;
  if (!parts_.volumes.InDoubt()) return copied;
  {
    const MutexLock lock(mu_);
    for (const auto& [id, record] : snapshots_) {
      const bool is_copied =
          record.phase == SnapshotPhase::kCut || record.phase == SnapshotPhase::kProcessing;
      if (is_copied) copied.push_back(record);
    }
  }
  std::erase_if(copied, [this](const SnapshotRecord& record) {
    const Result<PoolCutRecord> cut = parts_.volumes.FindCut(record.id);
    return cut.ok() && IsWhole(*cut);
  });
  return copied;
}

void SnapshotEngine::FailDoubted() {
  const std::vector<SnapshotRecord> copied = Doubted();
  FailUnsaved(copied);
  if (copied.empty()) return;
  parts_.scheduler.RunBlocking([this] {
    const Status saved = SaveDoubted();
    if (saved.ok()) return;
    parts_.log.Error("it is not on record that copies by records in doubt have failed",
                     {{"error", saved.error()}});
  });
}

void SnapshotEngine::FailUnsaved(const std::vector<SnapshotRecord>& copied) {
  const MutexLock lock(mu_);
  has_looked_for_doubted_ = true;
  for (const SnapshotRecord& record : copied) {
    SnapshotRecord failed = After(record, {SnapshotEvent::kFail});
    failed.error = "the records that say that snapshot " + record.id +
                   " is being copied may be older than its copy: make a new one";
    failed.error_code = static_cast<int32_t>(Code::kFailedPrecondition);
    snapshots_[record.id] = std::move(failed);
    doubted_.insert(record.id);
    busy_.insert(record.id);
  }
}

Status SnapshotEngine::SaveDoubted() {
  const MutexLock saving(saving_doubted_);
  std::vector<SnapshotRecord> failed;
  {
    const MutexLock lock(mu_);
    if (!has_looked_for_doubted_) {
      return Error::NotApplied(Code::kUnavailable, "the snapshots on record are not loaded yet");
    }
    for (const std::string& id : doubted_) failed.push_back(snapshots_.at(id));
  }
  if (failed.empty()) return OkStatus();
  RETURN_IF_ERROR(Save(failed));
  const MutexLock lock(mu_);
  for (const std::string& id : std::exchange(doubted_, {})) {
    busy_.erase(id);
    if (started_) GoOnSoon(id);
  }
  return OkStatus();
}

// Each for itself: one that hangs holds up no other.
void SnapshotEngine::EndFreezes() {
  std::vector<SnapshotRecord> left;
  {
    const MutexLock lock(mu_);
    for (const std::string& id : to_thaw_) left.push_back(snapshots_.at(id));
  }
  for (const SnapshotRecord& record : left) {
    parts_.scheduler.RunBlocking([this, record] {
      CallOptions call;
      call.deadline = Deadline::After(parts_.scheduler.clock(), kThawDeadline);
      call.domain = parts_.volumes.DomainOf(record.volume);
      LogLeft(record.id, Thaw(record, call));
    });
  }
}

void SnapshotEngine::Start() {
  std::vector<std::string> snapshots;
  std::vector<std::string> groups;
  {
    const MutexLock lock(mu_);
    if (!std::exchange(started_, true)) MarkUnfinished();
    for (const auto& [id, record] : snapshots_) snapshots.push_back(id);
    for (const auto& [id, group] : groups_) {
      if (group.deleting) groups.push_back(id);
    }
  }
  DiscardUncopiedOrphans();
  for (const std::string& id : snapshots) GoOnAfterRestart(id);
  for (const std::string& id : groups) GoOnWithGroup(id);
}

bool SnapshotEngine::IsUncopiedOrphan(const std::string& id) const {
  const Result<PoolCutRecord> cut = parts_.volumes.FindCut(id);
  const bool is_uncopied = cut.ok() && cut->state == PoolCutState::kCut && !IsWhole(*cut);
  return is_uncopied && !Row(id) && CheckStarted().ok() && CheckIsNobodys(id).ok();
}

// While records are in doubt, and while its pool is not open, the discard is refused, and is tried
// again: until then the row may come back.
void SnapshotEngine::DiscardUncopiedOrphans() {
  for (const std::string& id : parts_.volumes.Cuts()) {
    if (!IsUncopiedOrphan(id)) continue;
    parts_.log.Warning("a snapshot whose row was lost before it was copied is discarded",
                       {{"snapshot", id}});
    TakeAwayLater(id);
  }
}

// The tables of the pool are loaded by now, and say more of copies than the snapshot's row.
void SnapshotEngine::GoOnAfterRestart(const std::string& id) {
  const std::optional<SnapshotRecord> row = Row(id);
  if (!row || IsBusy(id)) return;
  const Result<PoolCutRecord> cut = parts_.volumes.FindCut(id);
  if (row->phase == SnapshotPhase::kProcessing && cut.ok()) NoteProgress(id, cut->copied_bytes);
  GoOn(id);
}

}  // namespace volumed
