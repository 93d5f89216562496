// SnapshotEngine: how a snapshot, or a group of them, is cut.
#include <utility>

#include "pool/pool_id.h"
#include "snapshot/snapshot_engine.h"
#include "snapshot/snapshot_operations.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {

Result<SnapshotEngine::Cutting> SnapshotEngine::PlanCut(
    const std::vector<std::string>& volumes) const {
  Cutting cutting;
  for (const std::string& volume : volumes) {
    ASSIGN_OR_RETURN(const PoolVolumeRecord source, parts_.volumes.Find(volume));
    SnapshotRecord member;
    member.id = parts_.volumes.NewCutId(volume);
    if (member.id.empty()) {
      return Error::NotApplied(Code::kNotFound, "there is no volume " + volume + " any more");
    }
    member.volume = volume;
    member.phase = SnapshotPhase::kNew;
    member.size_bytes = source.capacity_bytes;
    member.started_unix_ms = Now();
    member.updated_unix_ms = member.started_unix_ms;
    cutting.members.push_back(std::move(member));
  }
  return cutting;
}

void SnapshotEngine::Create(const SnapshotWish& wish, Made done) {
  if (const Status may = CheckStarted(); !may.ok()) return done(may.error());
  std::optional<SnapshotRecord> there;
  {
    const MutexLock lock(mu_);
    const auto named = names_.find(wish.name);
    if (named != names_.end()) there = snapshots_.at(named->second);
  }
  if (there) return CreateAgain(*there, wish, std::move(done));
  BeginSnapshot(wish, done);
}

void SnapshotEngine::CreateAgain(const SnapshotRecord& there, const SnapshotWish& wish, Made done) {
  const std::string what = "snapshot " + there.id + " of this name ";
  if (there.volume != wish.volume || !there.group.empty() || !there.for_volume.empty()) {
    return done(Error::NotApplied(Code::kAlreadyExists,
                                  what + "is one of volume " + there.volume + " already"));
  }
  // A cancellation that came too late has no effect.
  const bool is_given_up =
      there.delete_asked || (there.cancel_asked && there.phase != SnapshotPhase::kReady);
  if (IsCut(there.phase) && !is_given_up) return done(there);
  const bool has_failed = there.phase == SnapshotPhase::kFailed;
  const bool has_ended = has_failed || there.phase == SnapshotPhase::kCancelled;
  if (!has_ended || there.delete_asked || IsBusy(there.id)) {
    GoOn(there.id);
    return done(SnapshotIsBusy(what + "is " + std::string(SnapshotPhaseName(there.phase)) +
                               " by another call"));
  }
  if (has_failed && !there.error_told) {
    return TellError(there, [done = std::move(done)](const Status& why) { done(why.error()); });
  }
  Delete(there.id, [this, wish, done = std::move(done)](const Status& gone) {
    if (!gone.ok()) return done(gone.error());
    BeginSnapshot(wish, done);
  });
}

void SnapshotEngine::TellError(const SnapshotRecord& failed, CutDone done) {
  const Error why = WhyFailed(failed);
  if (!Take({failed.id})) {
    return done(SnapshotIsBusy("snapshot " + failed.id + " is being taken away"));
  }
  parts_.scheduler.RunBlocking([this, failed, why, done = std::move(done), watch = alive_.watch()] {
    SnapshotRecord told = failed;
    told.error_told = true;
    const Status saved = Save({told});
    parts_.scheduler.Post([this, id = failed.id, why, saved, done, watch] {
      if (!watch.alive()) return;
      done(saved.ok() ? Status(why) : saved);
      Ended(id, OkStatus());
    });
  });
}

void SnapshotEngine::BeginSnapshot(const SnapshotWish& wish, const Made& done) {
  Result<Cutting> cutting = PlanCut({wish.volume});
  if (!cutting.ok()) return done(cutting.error());
  SnapshotRecord& member = cutting->members.front();
  member.name = wish.name;
  member.tags = wish.tags;
  Begin(*cutting, [this, id = member.id, done](const Status& cut) {
    if (!cut.ok()) return done(cut.error());
    const std::optional<SnapshotRecord> made = Row(id);
    if (made) return done(*made);
    done(SnapshotIsBusy("snapshot " + id + " was taken away at once"));
  });
}

void SnapshotEngine::Announce(const Cutting& cutting) {
  const MutexLock lock(mu_);
  if (cutting.group) {
    groups_[cutting.group->id] = *cutting.group;
    group_names_[cutting.group->name] = cutting.group->id;
    busy_.insert(cutting.group->id);
  }
  for (const SnapshotRecord& member : cutting.members) {
    snapshots_[member.id] = member;
    names_[member.name] = member.id;
    busy_.insert(member.id);
    if (!member.for_volume.empty()) clones_.insert(member.id);
  }
}

void SnapshotEngine::Begin(const Cutting& cutting, CutDone done) {
  Announce(cutting);
  std::vector<std::string> ids;
  std::vector<PoolVolumes::CutRequest> requests;
  for (const SnapshotRecord& member : cutting.members) {
    ids.push_back(member.id);
    requests.push_back({member.volume, member.id, std::nullopt});
  }
  CutVolumes operation(parts_.volumes, std::move(requests),
                       [this](const CutVolumes::Requests& placed, const CallOptions& call) {
                         return CutOnRecord(placed, call);
                       });
  std::vector<std::string> taken = ids;
  if (cutting.group) taken.push_back(cutting.group->id);
  const auto end = [this, ids, taken = std::move(taken), done = std::move(done)](
                       const Status& status) { CutEnded(ids, taken, status, done); };
  const auto ended = [end, watch = alive_.watch()](const OperationOutcome<Unit>& got) {
    if (watch.alive()) end(got.failure ? Status(got.failure->error) : OkStatus());
  };
  if (parts_.operations.Start(std::move(operation), ended) == StartResult::kStarted) return;
  end(SnapshotIsBusy("volume " + cutting.members.front().volume +
                     (ids.size() > 1 ? ", or another of the group," : "") +
                     " is being mounted, unmounted or changed"));
}

void SnapshotEngine::ForgetUncut(const std::vector<std::string>& ids) {
  const MutexLock lock(mu_);
  for (const std::string& id : ids) {
    const auto found = snapshots_.find(id);
    if (found == snapshots_.end() || found->second.phase != SnapshotPhase::kNew) continue;
    const SnapshotRecord uncut = found->second;
    Forget(uncut);
    const auto group = groups_.find(uncut.group);
    if (group == groups_.end()) continue;
    group_names_.erase(group->second.name);
    groups_.erase(group);
  }
}

void SnapshotEngine::CutEnded(const std::vector<std::string>& ids,
                              const std::vector<std::string>& taken, const Status& status,
                              const CutDone& done) {
  ForgetUncut(ids);
  GiveBack(taken);
  bool is_given_up = false;
  for (const std::string& id : ids) {
    const std::optional<SnapshotRecord> row = Row(id);
    if (!row) continue;
    is_given_up |= row->delete_asked || (row->cancel_asked && row->phase == SnapshotPhase::kCut);
  }
  for (const std::string& id : ids) GoOn(id);
  if (!status.ok() || !is_given_up) return done(status);
  done(Error::MaybeApplied(Code::kCancelled, "the snapshot was cancelled, or deleted, meanwhile"));
}

bool SnapshotEngine::EndCuts() {
  const MutexLock lock(mu_);
  ends_cuts_ = true;
  return cuts_ > 0;
}

Status SnapshotEngine::BeginCut() {
  const MutexLock lock(mu_);
  if (ends_cuts_) {
    return Error::NotApplied(Code::kUnavailable, "the agent ends, and begins no cut any more");
  }
  ++cuts_;
  return OkStatus();
}

Status SnapshotEngine::CutOnRecord(const std::vector<PoolVolumes::CutRequest>& requests,
                                   const CallOptions& call) {
  RETURN_IF_ERROR(BeginCut());
  Status cut = CutAndNote(requests, call);
  {
    const MutexLock lock(mu_);
    --cuts_;
  }
  if (cut.ok()) return cut;
  std::vector<std::string> ids;
  for (const PoolVolumes::CutRequest& request : requests) ids.push_back(request.cut);
  GiveUpCut(ids, cut.error(), call);
  return cut;
}

Status SnapshotEngine::CutAndNote(const std::vector<PoolVolumes::CutRequest>& requests,
                                  const CallOptions& call) {
  std::vector<SnapshotRecord> intents;
  for (const PoolVolumes::CutRequest& request : requests) {
    const bool freezes = request.mounted && !request.mounted->is_bind;
    const SnapshotEvent event = freezes ? SnapshotEvent::kFreeze : SnapshotEvent::kCut;
    intents.push_back(After(Row(request.cut).value(), {event}));
  }
  // The pool syncs the rows of its cuts before anything is cut, and this one with them: rows are
  // lost from the last one backwards alone.
  RETURN_IF_ERROR(Save(intents, GroupRow(intents.front().group), Durability::kProcess));
  ASSIGN_OR_RETURN(const std::vector<PoolCutRecord> cuts,
                   parts_.volumes.Cut(requests, settings().limits, call));
  // With it what the pool has just written of the cuts is synced.
  const Status noted = NoteCut(cuts);
  return noted.ok() ? noted : Status(noted.error().AsMaybeApplied());
}

Status SnapshotEngine::NoteCut(const std::vector<PoolCutRecord>& cuts) {
  std::vector<SnapshotRecord> made;
  for (const PoolCutRecord& cut : cuts) {
    SnapshotRecord record = After(Row(cut.id).value(), {SnapshotEvent::kCutDone});
    record.size_bytes = cut.size_bytes;
    record.cut_unix_ms = cut.cut_unix_ms;
    record.bytes_total = cut.is_copy ? cut.size_bytes : 0;
    record.bytes_done = cut.copied_bytes;
    const bool is_wanted = !record.cancel_asked && !record.delete_asked;
    if (is_wanted && IsWhole(cut)) record = After(record, {SnapshotEvent::kProcessed});
    made.push_back(std::move(record));
  }
  return Save(made);
}

// A single snapshot stays as one that failed. Of a group, and of what was cut for a clone, nothing
// stays; and if the store takes no row, the one that is there counts for nothing.
void SnapshotEngine::GiveUpCut(const std::vector<std::string>& ids, const Error& error,
                               const CallOptions& call) {
  const SnapshotRecord first = Row(ids.front()).value();
  const bool was_begun = first.phase != SnapshotPhase::kNew;
  if (was_begun && first.group.empty() && first.for_volume.empty()) {
    SnapshotRecord failed = After(first, {SnapshotEvent::kFail});
    failed.error = error.message();
    failed.error_code = static_cast<int32_t>(error.code());
    failed.error_told = true;
    if (Save({failed}).ok()) {
      LogLeft(failed.id, TakeAway(failed.id, call));
      return;
    }
  }
  {
    const MutexLock lock(mu_);
    for (const std::string& id : ids) {
      SnapshotRecord& shown = snapshots_.at(id);
      shown = After(shown, {SnapshotEvent::kFail, SnapshotEvent::kDelete});
      shown.delete_asked = true;
    }
    if (groups_.contains(first.group)) MarkGroup(first.group);
  }
  if (!first.group.empty()) return LogLeft(first.group, TakeGroupAway(first.group, call));
  LogLeft(first.id, TakeAway(first.id, call));
}

void SnapshotEngine::LogLeft(const std::string& id, const Status& taken) {
  if (taken.ok()) return;
  parts_.log.Warning("what is left of a snapshot is discarded later",
                     {{"snapshot", id}, {"error", taken.error()}});
}

}  // namespace volumed
