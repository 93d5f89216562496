#include "fakes/memory_record_store.h"

#include "fakes/simulated_crash.h"

namespace volumed {
namespace {

Error Inert() { return Error::NotApplied(Code::kUnavailable, "record store: the agent has ended"); }

}  // namespace

Status MemoryRecordStore::BeginWrite(const RowId& id) {
  if (inert_) return Inert();
  ++calls_;
  if (crash_ && crash_->call == calls_ && crash_->point == CrashPoint::kBefore) {
    inert_ = true;
    throw SimulatedCrash{};
  }
  if (write_errors_left_ > 0 && (failing_kind_.empty() || failing_kind_ == id.first)) {
    --write_errors_left_;
    ++stats_.failures;
    return *write_error_;
  }
  if (id.first.empty() || id.second.empty()) {
    ++stats_.failures;
    return Error::NotApplied(Code::kInvalidArgument, "a record needs a kind and a key");
  }
  return OkStatus();
}

void MemoryRecordStore::EndWrite(const RowId& id, Durability durability) {
  ++stats_.commits;
  state_.unsynced.insert(id);
  if (durability == Durability::kPowerLoss) {
    file_number_ = ++state_.recovery.number;
    for (const RowId& written : state_.unsynced) {
      const auto row = state_.rows.find(written);
      if (row == state_.rows.end()) {
        state_.synced.erase(written);
      } else if (written == id || state_.synced.contains(written)) {
        state_.synced[written] = row->second;
      }
    }
    state_.unsynced.clear();
  }
  if (keeps_history_) history_.push_back(state_);
  if (crash_ && crash_->call == calls_ && crash_->point == CrashPoint::kAfter) {
    inert_ = true;
    throw SimulatedCrash{};
  }
}

Status MemoryRecordStore::Put(const Record& record, Durability durability) {
  MutexLock lock(mu_);
  const RowId id(record.kind, record.key);
  RETURN_IF_ERROR(BeginWrite(id));
  if (record.kind == renewed_kind_) quarantine_.erase(id);
  if (const auto bad = quarantine_.find(id); bad != quarantine_.end()) {
    ++stats_.failures;
    return Error::NotApplied(Code::kFailedPrecondition, "record " + record.kind + "/" + record.key +
                                                            " is quarantined: " + bad->second);
  }
  state_.rows[id] = std::make_shared<const Record>(record);
  ++stats_.puts;
  EndWrite(id, durability);
  return OkStatus();
}

Status MemoryRecordStore::Remove(const std::string& kind, const std::string& key,
                                 Durability durability) {
  MutexLock lock(mu_);
  const RowId id(kind, key);
  RETURN_IF_ERROR(BeginWrite(id));
  if (!quarantine_.contains(id)) state_.rows.erase(id);
  ++stats_.removes;
  EndWrite(id, durability);
  return OkStatus();
}

Result<LoadedRecords> MemoryRecordStore::Load(const std::string& kind) {
  MutexLock lock(mu_);
  if (inert_) return Inert();
  if (load_error_) {
    Error error = *load_error_;
    load_error_.reset();
    return error;
  }
  LoadedRecords loaded;
  for (const auto& [id, record] : state_.rows) {
    if (id.first == kind && !quarantine_.contains(id)) loaded.records.push_back(*record);
  }
  for (const auto& [id, reason] : quarantine_) {
    if (id.first != kind) continue;
    loaded.quarantined.push_back({id.first, id.second, reason, state_.rows.contains(id)});
  }
  return loaded;
}

Status MemoryRecordStore::QuarantineInPlace(const std::vector<QuarantinedRecord>& rows) {
  MutexLock lock(mu_);
  if (inert_) return Inert();
  for (const QuarantinedRecord& row : rows) quarantine_[RowId(row.kind, row.key)] = row.reason;
  return OkStatus();
}

RecordStoreStats MemoryRecordStore::stats() const {
  MutexLock lock(mu_);
  RecordStoreStats stats = stats_;
  stats.quarantined = quarantine_.size();
  return stats;
}

RecordsRecovery MemoryRecordStore::recovery() const {
  MutexLock lock(mu_);
  return state_.recovery;
}

Status MemoryRecordStore::AcceptRecords(const std::optional<std::string>& volume) {
  MutexLock lock(mu_);
  if (inert_) return Inert();
  RecordsRecovery& recovery = state_.recovery;
  if (!recovery.active) return OkStatus();
  if (volume) {
    recovery.accepted.insert(*volume);
  } else {
    recovery = RecordsRecovery{.number = recovery.number};
  }
  file_number_ = ++recovery.number;
  return OkStatus();
}

void MemoryRecordStore::FailNext(Error error, int count, const std::string& kind) {
  MutexLock lock(mu_);
  failing_kind_ = kind;
  write_error_ = std::move(error);
  write_errors_left_ = count;
}

void MemoryRecordStore::FailNextLoad(Error error) {
  MutexLock lock(mu_);
  load_error_ = std::move(error);
}

void MemoryRecordStore::CrashAtCall(uint64_t n, CrashPoint point) {
  MutexLock lock(mu_);
  crash_ = Crash{n, point};
}

bool MemoryRecordStore::crashed() const {
  MutexLock lock(mu_);
  return inert_;
}

void MemoryRecordStore::Die() {
  MutexLock lock(mu_);
  inert_ = true;
}

void MemoryRecordStore::Revive() {
  MutexLock lock(mu_);
  inert_ = false;
  crash_.reset();
  write_error_.reset();
  write_errors_left_ = 0;
  load_error_.reset();
  calls_ = 0;
  RecordsRecovery& recovery = state_.recovery;
  if (recovery.number < file_number_) {
    recovery.active = true;
    recovery.reason = "transactions " + std::to_string(recovery.number + 1) + " to " +
                      std::to_string(file_number_) + " are missing";
    recovery.number = ++file_number_;
  }
}

void MemoryRecordStore::KeepHistory() {
  MutexLock lock(mu_);
  keeps_history_ = true;
  history_ = {state_};
}

size_t MemoryRecordStore::history() const {
  MutexLock lock(mu_);
  return history_.size();
}

void MemoryRecordStore::PutBack(size_t state, bool number_too) {
  MutexLock lock(mu_);
  state_ = history_.at(state);
  if (number_too) file_number_ = state_.recovery.number;
}

void MemoryRecordStore::PowerLoss() {
  MutexLock lock(mu_);
  state_.rows = state_.synced;
  state_.unsynced.clear();
}

void MemoryRecordStore::Corrupt(const std::string& kind, const std::string& key,
                                std::string reason) {
  MutexLock lock(mu_);
  const RowId id(kind, key);
  state_.rows.erase(id);
  state_.synced.erase(id);
  quarantine_[id] = std::move(reason);
}

void MemoryRecordStore::RenewKind(std::string kind) {
  MutexLock lock(mu_);
  renewed_kind_ = std::move(kind);
}

std::unique_ptr<MemoryRecordStore> MemoryRecordStore::Clone() const {
  auto copy = std::make_unique<MemoryRecordStore>();
  MutexLock lock(mu_);
  MutexLock copy_lock(copy->mu_);
  copy->state_ = state_;
  copy->file_number_ = file_number_;
  copy->quarantine_ = quarantine_;
  copy->renewed_kind_ = renewed_kind_;
  return copy;
}

uint64_t MemoryRecordStore::calls() const {
  MutexLock lock(mu_);
  return calls_;
}

std::optional<Record> MemoryRecordStore::Find(const std::string& kind,
                                              const std::string& key) const {
  MutexLock lock(mu_);
  const auto row = state_.rows.find(RowId(kind, key));
  if (row == state_.rows.end()) return std::nullopt;
  return *row->second;
}

std::vector<Record> MemoryRecordStore::All() const {
  MutexLock lock(mu_);
  std::vector<Record> all;
  for (const auto& [id, record] : state_.rows) all.push_back(*record);
  return all;
}

}  // namespace volumed
