// The rows of PoolVolumes, and what the tables in memory say of them; and the pool's account.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/byte_text.h"
#include "os/answers.h"
#include "pluginmgr/provisionable_volume_plugin.h"
#include "pool/pool_volumes_parts.h"

namespace volumed {
namespace {

// What the pool has promised to a volume of this record. One that is made of whole extents may have
// all of them.
int64_t PromiseOf(const PoolVolumeRecord& record, const MadeArtefact& there) {
  const Result<PoolParameters> parameters = ParsePoolParameters(record.parameters);
  if (parameters.ok() && parameters->overcommit) return there.allocated_bytes;
  const int64_t promised = std::max(record.capacity_bytes, record.target_bytes);
  return record.backend == PoolBackendKind::kLvm ? std::max(promised, there.size_bytes) : promised;
}

int64_t BeyondPromiseOf(const PoolVolumeRecord& record, const MadeArtefact& there) {
  return std::max(record.capacity_bytes, record.target_bytes) - PromiseOf(record, there);
}

// What a cut certainly has: of a copy of files, which nobody counts, what was written.
int64_t AllocatedOf(const PoolCutRecord& cut, const MadeArtefact& there) {
  const bool is_written = cut.backend == PoolBackendKind::kDirectory && IsWhole(cut);
  return is_written ? std::max(cut.allocated_bytes, there.allocated_bytes) : there.allocated_bytes;
}

}  // namespace

// Why the row cannot be read; nullopt: it is taken over.
std::optional<std::string> PoolVolumes::RestoreRow(const std::string& kind, const Record& row) {
  if (kind == kPoolRecordKind) {
    const Result<PoolRecord> record = DecodePoolRecord(row);
    if (!record.ok()) return record.error().message();
    uuids_.Restore(*record);
    if (Pool* const pool = PoolNamed(record->name)) pool->Restore(*record);
    return std::nullopt;
  }
  if (kind == kPoolCutRecordKind) {
    const Result<PoolCutRecord> record = DecodePoolCutRecord(row);
    if (!record.ok()) return record.error().message();
    MutexLock lock(mu_);
    KeepCut(*record);
    return std::nullopt;
  }
  Result<PoolVolumeRecord> record = DecodePoolVolumeRecord(row);
  if (!record.ok()) return record.error().message();
  const bool is_making = record->state == PoolVolumeState::kMaking;
  record->doubted = record->doubted || (is_making && InDoubt());
  MutexLock lock(mu_);
  names_.emplace(record->name, record->id);
  Keep(*record);
  return std::nullopt;
}

void PoolVolumes::Keep(const PoolVolumeRecord& record) {
  const auto [row, is_new] = volumes_.try_emplace(record.id);
  if (!is_new) tally_.Leave(row->second);
  row->second = record;
  tally_.Add(record);
}

void PoolVolumes::KeepCut(const PoolCutRecord& cut) {
  const auto [row, is_new] = cuts_.try_emplace(cut.id);
  if (!is_new) tally_.Leave(row->second);
  row->second = cut;
  tally_.Add(cut);
}

void PoolVolumes::Restore(const std::string& kind, const LoadedRecords& rows) {
  std::map<std::string, std::string> unreadable;
  for (const QuarantinedRecord& row : rows.quarantined) unreadable[row.key] = row.reason;
  for (const Record& row : rows.records) {
    if (std::optional<std::string> why = RestoreRow(kind, row)) unreadable[row.key] = *why;
  }
  for (const auto& [key, reason] : unreadable) {
    parts_.log.Error("record cannot be read", {{"kind", kind}, {"key", key}, {"error", reason}});
    if (kind == kPoolRecordKind) {
      if (Pool* const pool = PoolNamed(key)) pool->RestoreUnreadable(reason);
      continue;
    }
    MutexLock lock(mu_);
    (kind == kPoolCutRecordKind ? unreadable_cuts_ : unreadable_)[key] = reason;
  }
}

Status PoolVolumes::Write(const PoolVolumeRecord& record, Durability durability) {
  const Status written = parts_.store.Put(EncodeRecord(record), durability);
  // What may be on record is taken for it: the same call, or the inverse, follows.
  if (!written.ok() && !written.error().maybe_applied()) return written;
  MutexLock lock(mu_);
  Keep(record);
  names_.insert_or_assign(record.name, record.id);
  return written;
}

// Its files are gone for certain by now (RemoveArtefactDirectory syncs that). If the row is there
// again after a power loss, it says that the volume is being deleted: then Recover() comes to the
// same end. Whoever deletes it syncs the end of his reclaim after this.
Status PoolVolumes::Remove(const PoolVolumeRecord& record) {
  const bool is_deleting = record.state == PoolVolumeState::kDeleting;
  RETURN_IF_ERROR(parts_.store.Remove(kPoolVolumeRecordKind, record.id,
                                      is_deleting ? Durability::kProcess : kPoolRecordDurability));
  MutexLock lock(mu_);
  if (const auto row = volumes_.find(record.id); row != volumes_.end()) {
    tally_.Leave(row->second);
    volumes_.erase(row);
  }
  names_.erase(record.name);
  return OkStatus();
}

Status PoolVolumes::WriteCut(const PoolCutRecord& cut) {
  return WriteCuts({cut}, kPoolRecordDurability).front();
}

std::vector<Status> PoolVolumes::WriteCuts(const std::vector<PoolCutRecord>& cuts,
                                           Durability durability) {
  std::vector<RowChange> changes;
  for (const PoolCutRecord& cut : cuts) changes.push_back({EncodeRecord(cut)});
  std::vector<Status> written = parts_.store.Write(changes, durability);
  MutexLock lock(mu_);
  for (size_t at = 0; at < cuts.size(); ++at) {
    // What may be on record is taken for it.
    if (!written[at].ok() && !written[at].error().maybe_applied()) continue;
    KeepCut(cuts[at]);
  }
  return written;
}

// It says that the cut is being made or discarded: if it is there again after a power loss, EndCuts
// comes to the same end.
Status PoolVolumes::RemoveCut(const PoolCutRecord& cut) {
  RETURN_IF_ERROR(parts_.store.Remove(kPoolCutRecordKind, cut.id, Durability::kProcess));
  MutexLock lock(mu_);
  if (const auto row = cuts_.find(cut.id); row != cuts_.end()) {
    tally_.Leave(row->second);
    cuts_.erase(row);
  }
  return OkStatus();
}

Status PoolVolumes::Advance(PoolVolumeRecord& record, PoolVolumeEvent event) {
  const PoolVolumeState next = NextState(record.state, event).value();
  if (next == PoolVolumeState::kNotKnown) return Remove(record);
  record.state = next;
  return Write(record);
}

void PoolVolumes::TellChanged() const {
  if (changed_) changed_();
}

// What is to be measured of a pool. Of one with a row it is known what it was promised; nobody can
// say what the others are, so that each backend is asked for them.
PoolVolumes::ToMeasure PoolVolumes::IdsOf(const Pool& pool, PoolBackendKind kind) const {
  const std::string tag = pool.tag();
  ToMeasure ids;
  const auto add_known = [&](const auto& rows) {
    for (const auto& [id, record] : rows) {
      // It takes nothing from the pool.
      if (IsListed(record.backend) || !ShareRoom(record.backend, kind)) continue;
      const std::optional<PoolId> parsed = ParsePoolId(id);
      if (record.pool == pool.name() && parsed) ids.known[record.backend].push_back(*parsed);
    }
  };
  const auto add_unreadable = [&](const std::map<std::string, std::string>& rows) {
    for (const auto& [key, reason] : rows) {
      const std::optional<PoolId> parsed = ParsePoolId(key);
      if (!parsed || parsed->pool_tag != tag) continue;
      for (const auto& [of_kind, backend] : pool.opened()->backends) {
        if (ShareRoom(of_kind, kind)) ids.unreadable[of_kind].push_back(*parsed);
      }
    }
  };
  MutexLock lock(mu_);
  add_known(volumes_);
  add_known(cuts_);
  add_unreadable(unreadable_);
  add_unreadable(unreadable_cuts_);
  return ids;
}

Result<PoolVolumes::Measured> PoolVolumes::Measure(const Pool& pool, PoolBackendKind kind,
                                                   const CallOptions& call) {
  Result<Measured> measured = MeasureNow(pool, kind, call);
  // What is told of a pool is what its directory has.
  if (!ShareRoom(kind, PoolBackendKind::kImage)) return measured;
  const int64_t now = parts_.clock.WallUnixMillis();
  bool is_news = false;
  {
    MutexLock lock(mu_);
    PoolSeen& last = last_seen_[pool.name()];
    if (measured.ok()) {
      const bool was_short = last.account && last.account->is_short;
      last = {AccountFor(pool, *measured), now, std::nullopt};
      is_news = last.account->is_short != was_short;
    } else if (!last.failing_since_unix_ms) {
      last.failing_since_unix_ms = now;
    }
  }
  if (is_news && short_changed_) short_changed_(pool.name());
  return measured;
}

Result<PoolVolumes::Measured> PoolVolumes::MeasureNow(const Pool& pool, PoolBackendKind kind,
                                                      const CallOptions& call) {
  RETURN_IF_ERROR(pool.state());
  const CallOptions in_pool = InPool(call, pool);
  RETURN_IF_ERROR(pool.CheckThere(in_pool));
  ASSIGN_OR_RETURN(PoolBackend* const of_room, BackendOf(pool, kind));
  const ToMeasure ids = IdsOf(pool, kind);
  Measured measured{.kind = kind, .artefacts = {}, .filesystem = {}, .shortage = {}};
  const auto measure = [&](const Pool& of, const auto& of_kinds, OfDamaged damaged) -> Status {
    for (const auto& [its_kind, of_kind] : of_kinds) {
      ASSIGN_OR_RETURN(PoolBackend* const backend, BackendOf(of, its_kind));
      ASSIGN_OR_RETURN(auto artefacts, backend->Measure(of_kind, damaged, InPool(call, of)));
      measured.artefacts.merge(artefacts);
    }
    return OkStatus();
  };
  // Of one with a row it is known what it was promised: that is outstanding then.
  RETURN_IF_ERROR(measure(pool, ids.known, OfDamaged::kNothing));
  RETURN_IF_ERROR(measure(pool, ids.unreadable, OfDamaged::kError));
  // What cannot be measured of them is all outstanding.
  for (const Pool* const beside : PoolsBeside(pool, kind)) {
    if (beside->opened() != nullptr) {
      (void)measure(*beside, IdsOf(*beside, kind).known, OfDamaged::kNothing);
    }
  }
  // After the volumes: what is written meanwhile is then counted against the pool twice, and not
  // for it.
  ASSIGN_OR_RETURN(std::optional<PoolRoom> room, of_room->MeasureRoom(in_pool));
  if (room) {
    measured.filesystem.capacity_bytes = room->capacity_bytes;
    measured.filesystem.available_bytes = room->available_bytes;
    measured.shortage = std::move(room->shortage);
    return measured;
  }
  ASSIGN_OR_RETURN(measured.filesystem,
                   parts_.kernel.Call(StatFs{pool.opened()->layout.Directory()}, in_pool));
  return measured;
}

PoolAccount PoolVolumes::AccountFor(const Pool& pool, const Measured& measured) const {
  const auto artefact = [&](const std::string& id) -> MadeArtefact {
    const std::optional<PoolId> parsed = ParsePoolId(id);
    const auto found = parsed ? measured.artefacts.find(*parsed) : measured.artefacts.end();
    return found == measured.artefacts.end() ? MadeArtefact{} : found->second;
  };
  std::set<std::string> beside;
  for (const Pool* const other : PoolsBeside(pool, measured.kind)) beside.insert(other->name());
  const auto counts = [&](const auto& record) {
    const bool is_there = record.pool == pool.name() || beside.contains(record.pool);
    return is_there && !IsListed(record.backend) && ShareRoom(record.backend, measured.kind);
  };
  std::vector<PoolShare> shares;
  for (const auto& [id, record] : volumes_) {
    if (!counts(record)) continue;
    const MadeArtefact there = artefact(id);
    PoolShare& share = shares.emplace_back();
    share = {id, record.family, PromiseOf(record, there), there.allocated_bytes,
             record.pool != pool.name()};
    share.beyond_bytes = BeyondPromiseOf(record, there);
  }
  for (const auto& [id, cut] : cuts_) {
    if (!counts(cut)) continue;
    shares.push_back({id, cut.family, cut.allocated_bytes, AllocatedOf(cut, artefact(id)),
                      cut.pool != pool.name(), IsWhole(cut)});
  }
  for (const auto& [key, reason] : unreadable_) {
    const MadeArtefact there = artefact(key);
    if (there.size_bytes > 0) shares.push_back({key, "", there.size_bytes, there.allocated_bytes});
  }
  // Its blocks may be another's, too, and nobody knows whose: they are not counted as there.
  for (const auto& [key, reason] : unreadable_cuts_) {
    const int64_t allocated = artefact(key).allocated_bytes;
    if (allocated > 0) shares.push_back({key, "", allocated, 0});
  }
  AddReserved(pool, measured.kind, shares);
  PoolLimits limits = pool.limits();
  // What is configured is of the directory.
  if (measured.kind == PoolBackendKind::kLvm) limits.capacity_bytes = 0;
  return AccountOf(shares, measured.filesystem, limits);
}

Result<PoolAccount> PoolVolumes::Capacity(const StringMap& parameters, const CallOptions& call) {
  ASSIGN_OR_RETURN(const PoolParameters parsed, ParsePoolParameters(parameters));
  ASSIGN_OR_RETURN(const Pool* pool, OpenPoolFor(parsed));
  ASSIGN_OR_RETURN(const Measured measured, Measure(*pool, parsed.backend, call));
  MutexLock lock(mu_);
  PoolAccount account = AccountFor(*pool, measured);
  // No volume is made until all of them are known.
  if (!unreadable_.empty()) account.free_bytes = 0;
  return account;
}

PoolGlance PoolVolumes::Glance(const std::string& name) {
  CallOptions call;
  call.deadline = Deadline::After(parts_.clock, kAnswerPatience);
  const Result<PoolAccount> account = Capacity({{"pool", name}}, call);
  if (account.ok()) return {OkStatus(), *account};
  MutexLock lock(mu_);
  const PoolSeen& last = last_seen_[name];
  if (!last.failing_since_unix_ms) return {account.error(), last.account};
  return {account.error().With("not known since " + WallTimeText(*last.failing_since_unix_ms)),
          last.account};
}

PoolSeen PoolVolumes::Seen(const std::string& name) const {
  MutexLock lock(mu_);
  const auto seen = last_seen_.find(name);
  return seen == last_seen_.end() ? PoolSeen() : seen->second;
}

Result<PoolVolumes::Reservation> PoolVolumes::Reserve(const Pool& pool, PoolBackendKind kind,
                                                      const std::string& id, int64_t bytes,
                                                      const CallOptions& call) {
  if (bytes <= 0) return Reservation(*this, "");
  ASSIGN_OR_RETURN(const bool is_reserved, ReserveUnmeasured(pool, kind, id, bytes, call));
  if (is_reserved) return Reservation(*this, id);
  ASSIGN_OR_RETURN(const Measured measured, Measure(pool, kind, call));
  MutexLock lock(mu_);
  const PoolAccount account = AccountFor(pool, measured);
  if (account.free_bytes < bytes) {
    std::string why = measured.shortage;
    if (why.empty() && account.is_short) why = kPoolShortText;
    return Error::NotApplied(Code::kResourceExhausted,
                             "pool " + pool.name() + " can promise " +
                                 BytesForPeople(account.free_bytes) + " more beside the " +
                                 BytesForPeople(account.promised_bytes) + " of its volumes, and " +
                                 BytesForPeople(bytes) + " are needed" +
                                 (why.empty() ? "" : ": " + why))
        .About(kAboutClaim);
  }
  reserved_[id] = {pool.name(), kind, bytes};
  return Reservation(*this, id);
}

// What is outstanding is no more than all that was promised, so that a pool which has as much left
// as that and what is wanted has room for certain, whatever its volumes have written. Most have,
// and to measure each volume for one more is what a pool of thousands cannot afford.
Result<bool> PoolVolumes::ReserveUnmeasured(const Pool& pool, PoolBackendKind kind,
                                            const std::string& id, int64_t bytes,
                                            const CallOptions& call) {
  if (kind == PoolBackendKind::kLvm) return false;  // its room is asked with its volumes
  RETURN_IF_ERROR(pool.state());
  const CallOptions in_pool = InPool(call, pool);
  RETURN_IF_ERROR(pool.CheckThere(in_pool));
  RETURN_IF_ERROR(BackendOf(pool, kind));
  // Before the rows are counted: a volume that comes meanwhile is then counted twice, and not
  // never.
  ASSIGN_OR_RETURN(const FsInfo filesystem,
                   parts_.kernel.Call(StatFs{pool.opened()->layout.Directory()}, in_pool));
  MutexLock lock(mu_);
  if (!unreadable_.empty() || !unreadable_cuts_.empty()) return false;
  std::vector<const Pool*> pools = PoolsBeside(pool, kind);
  pools.push_back(&pool);
  std::vector<PoolShare> shares;
  for (const Pool* const one : pools) {
    const PoolTally::Promised promised = tally_.PromisedOf(one->name(), kind);
    if (promised.unbounded > 0) return false;
    shares.push_back({"rows of " + one->name(), "", promised.bytes, 0, one != &pool});
  }
  AddReserved(pool, kind, shares);
  if (AccountOf(shares, filesystem, pool.limits()).free_bytes < bytes) return false;
  reserved_[id] = {pool.name(), kind, bytes};
  return true;
}

void PoolVolumes::AddReserved(const Pool& pool, PoolBackendKind kind,
                              std::vector<PoolShare>& shares) const {
  std::set<std::string> beside;
  for (const Pool* const other : PoolsBeside(pool, kind)) beside.insert(other->name());
  for (const auto& [id, reserved] : reserved_) {
    const bool is_beside = beside.contains(reserved.pool);
    if ((reserved.pool != pool.name() && !is_beside) || !ShareRoom(reserved.kind, kind)) continue;
    shares.push_back({"reserved/" + id, "", reserved.bytes, 0, is_beside});
  }
}

// Two of them have the same bytes to promise.
std::vector<const Pool*> PoolVolumes::PoolsBeside(const Pool& pool, PoolBackendKind kind) const {
  std::vector<const Pool*> beside;
  const std::string filesystem = pool.filesystem();
  if (filesystem.empty() || kind == PoolBackendKind::kLvm) return beside;
  for (const std::unique_ptr<Pool>& other : pools_) {
    if (other.get() != &pool && other->filesystem() == filesystem) beside.push_back(other.get());
  }
  return beside;
}

}  // namespace volumed
