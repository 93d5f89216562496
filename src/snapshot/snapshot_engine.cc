#include "snapshot/snapshot_engine.h"

#include <algorithm>
#include <utility>

#include "base/printable_text.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {

SnapshotEngine::SnapshotEngine(Parts parts, SnapshotSettings settings)
    : parts_(std::move(parts)), settings_(std::move(settings)) {}

SnapshotEngine::~SnapshotEngine() = default;

void SnapshotEngine::SetSettings(const SnapshotSettings& settings) {
  {
    const MutexLock lock(mu_);
    settings_ = settings;
  }
  std::vector<std::string> domains;
  for (const auto& [domain, waiting] : to_copy_) domains.push_back(domain);
  for (const std::string& domain : domains) CopyNext(domain);
}

SnapshotSettings SnapshotEngine::settings() const {
  const MutexLock lock(mu_);
  return settings_;
}

// ---- tables -------------------------------------------------------------------------------------

std::optional<SnapshotRecord> SnapshotEngine::Row(const std::string& id) const {
  const MutexLock lock(mu_);
  const auto found = snapshots_.find(id);
  return found == snapshots_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<SnapshotGroupRecord> SnapshotEngine::GroupRow(const std::string& id) const {
  const MutexLock lock(mu_);
  const auto found = groups_.find(id);
  return found == groups_.end() ? std::nullopt : std::optional(found->second);
}

// What was asked for while the row was written stays asked for.
void SnapshotEngine::Show(const SnapshotRecord& record) {
  {
    const MutexLock lock(mu_);
    SnapshotRecord& shown = snapshots_[record.id];
    const bool cancel_asked = shown.cancel_asked || record.cancel_asked;
    const bool delete_asked = shown.delete_asked || record.delete_asked;
    shown = record;
    shown.cancel_asked = cancel_asked;
    shown.delete_asked = delete_asked;
    names_[record.name] = record.id;
    if (!record.for_volume.empty()) clones_.insert(record.id);
  }
  TellChanged(record);
}

void SnapshotEngine::TellChanged(const SnapshotRecord& record) {
  parts_.scheduler.Post(alive_.Guarded([this, record] {
    for (const Listener& listener : listeners_) listener(record);
    if (!record.for_volume.empty()) TellCopied(record.volume);
  }));
}

Status SnapshotEngine::Save(const std::vector<SnapshotRecord>& records,
                            const std::optional<SnapshotGroupRecord>& group,
                            Durability durability) {
  std::vector<RowChange> changes;
  // First, so that no member is on record without its group.
  if (group) changes.push_back({EncodeRecord(*group)});
  for (const SnapshotRecord& record : records) changes.push_back({EncodeRecord(record)});
  for (const Status& written : parts_.store.Write(changes, durability)) {
    RETURN_IF_ERROR(written);
  }
  if (group) {
    const MutexLock lock(mu_);
    groups_[group->id] = *group;
  }
  for (const SnapshotRecord& record : records) Show(record);
  return OkStatus();
}

void SnapshotEngine::Forget(const SnapshotRecord& record) {
  snapshots_.erase(record.id);
  clones_.erase(record.id);
  to_thaw_.erase(record.id);
  const auto named = names_.find(record.name);
  if (named != names_.end() && named->second == record.id) names_.erase(named);
}

Status SnapshotEngine::Remove(const SnapshotRecord& record) {
  const Status removed =
      parts_.store.Remove(kSnapshotRecordKind, record.id, kSnapshotRecordDurability);
  if (!removed.ok()) return removed.error().AsMaybeApplied();
  {
    const MutexLock lock(mu_);
    Forget(record);
  }
  SnapshotRecord gone = record;
  gone.phase = SnapshotPhase::kNotKnown;
  TellChanged(gone);
  return OkStatus();
}

Status SnapshotEngine::RemoveGroup(const std::string& id) {
  const Status removed =
      parts_.store.Remove(kSnapshotGroupRecordKind, id, kSnapshotRecordDurability);
  if (!removed.ok()) return removed.error().AsMaybeApplied();
  const MutexLock lock(mu_);
  const auto found = groups_.find(id);
  if (found == groups_.end()) return OkStatus();
  group_names_.erase(found->second.name);
  groups_.erase(found);
  return OkStatus();
}

SnapshotRecord SnapshotEngine::After(SnapshotRecord record,
                                     const std::vector<SnapshotEvent>& events) const {
  for (const SnapshotEvent event : events) record.phase = Next(record.phase, event).value().to;
  record.updated_unix_ms = Now();
  return record;
}

bool SnapshotEngine::Take(const std::vector<std::string>& ids) {
  const MutexLock lock(mu_);
  for (const std::string& id : ids) {
    if (busy_.contains(id)) return false;
  }
  busy_.insert(ids.begin(), ids.end());
  return true;
}

void SnapshotEngine::GiveBack(const std::vector<std::string>& ids) {
  const MutexLock lock(mu_);
  for (const std::string& id : ids) busy_.erase(id);
}

bool SnapshotEngine::IsBusy(const std::string& id) const {
  const MutexLock lock(mu_);
  return busy_.contains(id);
}

Status SnapshotEngine::CheckStarted() const {
  const MutexLock lock(mu_);
  if (!started_) {
    return Error::NotApplied(Code::kUnavailable,
                             "no pool is open yet, and so no snapshot can be made or changed");
  }
  if (unreadable_.empty()) return OkStatus();
  const auto& [key, why] = *unreadable_.begin();
  return SnapshotRefusal("the row of snapshot " + key + " cannot be read: " + why);
}

Status SnapshotEngine::CheckNotHeld(const std::string& id) const {
  if (!held_.contains(id)) return OkStatus();
  return SnapshotRefusal("a volume is being made of snapshot " + id);
}

Status SnapshotEngine::WhyUnknown(const std::string& id) const {
  const Result<PoolCutRecord> cut = parts_.volumes.FindCut(id);
  if (cut.ok()) {
    return SnapshotRefusal("the row of snapshot " + id + " is lost, and its cut is kept");
  }
  if (cut.error().code() == Code::kNotFound) return OkStatus();
  return cut.error();
}

// ---- what others see ----------------------------------------------------------------------------

std::optional<SnapshotRecord> SnapshotEngine::Find(const std::string& id) const {
  std::optional<SnapshotRecord> row = Row(id);
  if (row && !row->for_volume.empty()) return std::nullopt;
  return row;
}

Error SnapshotEngine::WhyNotFound(const std::string& id) const {
  const Result<PoolCutRecord> cut = parts_.volumes.FindCut(id);
  if (!cut.ok()) return cut.error();
  return SnapshotRefusal("cut " + id +
                         " is that of a clone, or has no record of its snapshot that can be read");
}

std::optional<SnapshotRecord> SnapshotEngine::FindByName(const std::string& name) const {
  std::string id;
  {
    const MutexLock lock(mu_);
    const auto found = names_.find(name);
    if (found == names_.end()) return std::nullopt;
    id = found->second;
  }
  return Find(id);
}

std::vector<SnapshotRecord> SnapshotEngine::List(const SnapshotFilter& filter) const {
  std::vector<SnapshotRecord> found;
  const MutexLock lock(mu_);
  for (auto it = snapshots_.upper_bound(filter.after); it != snapshots_.end(); ++it) {
    const SnapshotRecord& record = it->second;
    if (!IsCut(record.phase) || !record.for_volume.empty()) continue;
    if (!filter.id.empty() && record.id != filter.id) continue;
    if (!filter.volume.empty() && record.volume != filter.volume) continue;
    if (filter.most > 0 && found.size() == filter.most) break;
    found.push_back(record);
  }
  return found;
}

}  // namespace volumed
