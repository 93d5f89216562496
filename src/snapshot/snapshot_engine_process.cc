// SnapshotEngine: what goes on with a snapshot once it is cut: copies, ends and deletions.
#include <algorithm>
#include <chrono>
#include <utility>

#include "os/freeze_requests.h"
#include "pool/pool_operations.h"
#include "snapshot/snapshot_engine.h"
#include "snapshot/snapshot_operations.h"
#include "snapshot/snapshot_refusals.h"

namespace volumed {
namespace {

// If the operation does not say when it may be tried again.
constexpr Duration kNextTry = std::chrono::seconds(1);

// Whether the same call may succeed soon, without anything that a person does.
bool MayPass(const Error& error) {
  return error.code() == Code::kUnavailable || error.code() == Code::kDeadlineExceeded ||
         error.code() == Code::kAborted;
}

}  // namespace

void SnapshotEngine::GoOnSoon(const std::string& id) {
  parts_.scheduler.Post(alive_.Guarded([this, id] { GoOn(id); }));
}

void SnapshotEngine::GoOn(const std::string& id) {
  const std::optional<SnapshotRecord> row = Row(id);
  if (!row && IsUncopiedOrphan(id)) return TakeAwayLater(id);
  if (!row) return TellWaiting(id, OkStatus());
  if (IsBusy(id)) return;
  const std::optional<SnapshotGroupRecord> group = GroupRow(row->group);
  if (group && group->deleting) return GoOnWithGroup(group->id);
  const bool is_unwanted = row->delete_asked || EndUnneededClone(*row);
  switch (row->phase) {
    case SnapshotPhase::kCut:
    case SnapshotPhase::kProcessing:
      if (is_unwanted || row->cancel_asked) return TakeAwayLater(id);
      return Process(id);
    case SnapshotPhase::kCancelling:
    case SnapshotPhase::kDeleting:
      return TakeAwayLater(id);
    case SnapshotPhase::kReady:
    case SnapshotPhase::kFailed:
    case SnapshotPhase::kCancelled:
      if (is_unwanted || HasRest(*row)) return TakeAwayLater(id);
      break;
    case SnapshotPhase::kNotKnown:
    case SnapshotPhase::kNew:
    case SnapshotPhase::kFreezing:
    case SnapshotPhase::kCutting:
      break;  // whoever cuts it is busy with it
  }
  TellWaiting(id, OkStatus());
}

bool SnapshotEngine::HasRest(const SnapshotRecord& row) const {
  return row.phase == SnapshotPhase::kFailed && parts_.volumes.FindCut(row.id).ok();
}

void SnapshotEngine::TellWaiting(const std::string& id, const Status& status) {
  const auto found = waiting_.extract(id);
  if (found.empty()) return;
  for (const Done& done : found.mapped()) done(status);
}

void SnapshotEngine::Ended(const std::string& id, const Status& status) {
  GiveBack({id});
  if (!status.ok()) TellWaiting(id, status);
  GoOn(id);
}

void SnapshotEngine::GoOnWhenDue(const OperationKey& key, const std::string& id) {
  const std::optional<TimePoint> next = parts_.operations.NextTry(key);
  const Duration delay =
      next ? std::max(Duration::zero(), *next - parts_.scheduler.clock().Now()) : kNextTry;
  parts_.scheduler.PostAfter(delay, alive_.Guarded([this, id] {
    if (GroupRow(id)) return GoOnWithGroup(id);
    GoOn(id);
  }));
}

// ---- copies -------------------------------------------------------------------------------------

bool SnapshotEngine::WaitsForCopies(const std::string& volume) const {
  const Result<PoolVolumeRecord> source = parts_.volumes.Find(volume);
  const bool is_device = source.ok() && source->backend == PoolBackendKind::kStatic;
  const std::string domain = parts_.volumes.DomainOf(volume);
  const auto beside = std::count_if(copies_.begin(), copies_.end(), [&](const auto& copy) {
    const std::optional<SnapshotRecord> row = Row(copy.first);
    return row && parts_.volumes.DomainOf(row->volume) == domain;
  });
  return beside >= settings().most_copies || (is_device && beside > 0);
}

void SnapshotEngine::Process(const std::string& id) {
  const std::string volume = Row(id).value().volume;
  const std::string domain = parts_.volumes.DomainOf(volume);
  if (WaitsForCopies(volume)) {
    std::deque<std::string>& waiting = to_copy_[domain];
    if (std::find(waiting.begin(), waiting.end(), id) == waiting.end()) waiting.push_back(id);
    return TellWaiting(id, OkStatus());
  }
  if (!Take({id})) return;
  const auto token = std::make_shared<CancelToken>();
  copies_[id] = token;
  CopyCutBytes operation(parts_.volumes, id, token,
                         [this, id](const CallOptions& call) { return CopyOnRecord(id, call); });
  const OperationKey key = operation.key();
  const auto ended = [this, id, domain, watch = alive_.watch()](const OperationOutcome<Unit>&) {
    if (!watch.alive()) return;
    copies_.erase(id);
    Ended(id, OkStatus());  // the row says what came of it
    CopyNext(domain);
  };
  if (parts_.operations.Start(std::move(operation), ended) == StartResult::kStarted) return;
  copies_.erase(id);
  GiveBack({id});
  GoOnWhenDue(key, id);
}

void SnapshotEngine::CopyNext(const std::string& domain) {
  auto found = to_copy_.extract(domain);
  if (found.empty()) return;
  std::deque<std::string>& waiting = found.mapped();
  // Each is looked at once: one that backs off comes back by its timer. Once one has to wait again,
  // so has each after it.
  while (!waiting.empty() && !to_copy_.contains(domain)) {
    const std::string id = waiting.front();
    waiting.pop_front();
    GoOn(id);
  }
  if (waiting.empty()) return;
  std::deque<std::string>& left = to_copy_[domain];
  left.insert(left.end(), waiting.begin(), waiting.end());
}

void SnapshotEngine::StopWork(const std::string& id) {
  const auto copying = copies_.find(id);
  if (copying != copies_.end()) copying->second->Cancel();
  for (const char* const what : {"cut/", "copy/"}) {
    parts_.operations.GiveUpWaiting(OperationKey(UniqueVolumeName(what + id)));
  }
}

Status SnapshotEngine::CopyOnRecord(const std::string& id, const CallOptions& call) {
  SnapshotRecord record = Row(id).value();
  if (record.phase == SnapshotPhase::kCut) {
    record = After(record, {SnapshotEvent::kProcess});
    RETURN_IF_ERROR(Save({record}));
  }
  CallOptions told = call;
  told.progress = [this, id, before = call.progress](int64_t bytes) {
    NoteProgress(id, bytes);
    if (before) before(bytes);
  };
  const Status copied = parts_.volumes.CopyCut(id, settings().copy_bytes_per_second, told);
  if (!copied.ok()) return CopyFailed(id, copied.error(), call);
  record = After(Row(id).value(), {SnapshotEvent::kProcessed});
  record.bytes_done = record.bytes_total;
  return Save({record});
}

// What may pass, and what was cancelled, stays as it is: it goes on, or is taken away.
Status SnapshotEngine::CopyFailed(const std::string& id, const Error& error,
                                  const CallOptions& call) {
  SnapshotRecord record = Row(id).value();
  const bool is_unwanted = record.cancel_asked || record.delete_asked;
  if (is_unwanted) return OkStatus();
  if (MayPass(error)) return error;
  record = After(record, {SnapshotEvent::kFail});
  record.error = error.message();
  record.error_code = static_cast<int32_t>(error.code());
  RETURN_IF_ERROR(Save({record}));
  LogLeft(id, TakeAway(id, call));
  return error;
}

void SnapshotEngine::NoteProgress(const std::string& id, int64_t bytes) {
  const MutexLock lock(mu_);
  const auto found = snapshots_.find(id);
  if (found == snapshots_.end()) return;
  found->second.bytes_done = bytes;
  found->second.updated_unix_ms = Now();
}

// ---- ends ---------------------------------------------------------------------------------------

void SnapshotEngine::Cancel(const std::string& id, Done done) {
  if (const Status may = CheckStarted(); !may.ok()) return done(may);
  const std::optional<SnapshotRecord> row = Find(id);
  if (!row) {
    const Status why = WhyUnknown(id);
    return done(why.ok() ? Error::NotApplied(Code::kNotFound, "there is no such snapshot") : why);
  }
  if (GroupRow(row->group)) {
    return done(Error::NotApplied(Code::kInvalidArgument,
                                  "snapshot " + id + " is one of group " + row->group));
  }
  const bool has_ended = row->phase == SnapshotPhase::kReady ||
                         row->phase == SnapshotPhase::kFailed ||
                         row->phase == SnapshotPhase::kCancelled;
  if (has_ended && !IsBusy(id)) return done(OkStatus());
  {
    const MutexLock lock(mu_);
    const auto found = snapshots_.find(id);
    if (found != snapshots_.end()) found->second.cancel_asked = true;
  }
  waiting_[id].push_back(std::move(done));
  StopWork(id);
  GoOn(id);
}

void SnapshotEngine::Delete(const std::string& id, Done done) {
  if (const Status may = CheckStarted(); !may.ok()) return done(may);
  const std::optional<SnapshotRecord> row = Row(id);
  if (!row) return DeleteOrphan(id, std::move(done));
  if (!row->for_volume.empty()) {
    return done(SnapshotRefusal("volume " + row->for_volume + " is being made of it"));
  }
  if (GroupRow(row->group)) {
    return done(Error::NotApplied(
        Code::kInvalidArgument,
        "snapshot " + id + " is one of group " + row->group + ", and is deleted with it"));
  }
  if (const Status asked = AskDeletion(id); !asked.ok()) return done(asked);
  waiting_[id].push_back(std::move(done));
  StopWork(id);
  parts_.operations.ResetBackoff(OperationKey(UniqueVolumeName("discard/" + id)));
  GoOn(id);
}

// Whoever asks for its end wants nothing else that its row has said.
void SnapshotEngine::DeleteOrphan(const std::string& id, Done done) {
  if (!parts_.volumes.FindCut(id).ok()) return done(WhyUnknown(id));
  if (const Status may = CheckIsNobodys(id); !may.ok()) return done(may);
  waiting_[id].push_back(std::move(done));
  parts_.operations.ResetBackoff(OperationKey(UniqueVolumeName("discard/" + id)));
  TakeAwayLater(id);
}

Status SnapshotEngine::CheckIsNobodys(const std::string& id) const {
  const MutexLock lock(mu_);
  for (const auto& [group, record] : groups_) {
    const std::vector<std::string>& members = record.snapshots;
    if (std::find(members.begin(), members.end(), id) == members.end()) continue;
    return SnapshotRefusal("the row of snapshot " + id + " is lost, and it is one of group " +
                           group);
  }
  return CheckNotHeld(id);
}

// From then on nobody holds it any more.
Status SnapshotEngine::AskDeletion(const std::string& id) {
  const MutexLock lock(mu_);
  RETURN_IF_ERROR(CheckNotHeld(id));
  const auto found = snapshots_.find(id);
  if (found != snapshots_.end()) found->second.delete_asked = true;
  return OkStatus();
}

void SnapshotEngine::TakeAwayLater(const std::string& id) {
  if (!Take({id})) return;
  DiscardCut operation(parts_.volumes, id, id,
                       [this, id](const CallOptions& call) { return TakeAway(id, call); });
  const OperationKey key = operation.key();
  const auto ended = [this, id, watch = alive_.watch()](const OperationOutcome<Unit>& got) {
    if (watch.alive()) Ended(id, got.failure ? Status(got.failure->error) : OkStatus());
  };
  if (parts_.operations.Start(std::move(operation), ended) == StartResult::kStarted) return;
  GiveBack({id});
  GoOnWhenDue(key, id);
}

Status SnapshotEngine::TakeAway(const std::string& id, const CallOptions& call) {
  const std::optional<SnapshotRecord> row = Row(id);
  if (!row) return parts_.volumes.Discard(id, call);
  RETURN_IF_ERROR(Thaw(*row, call));
  SnapshotRecord record = *row;
  const bool is_at_rest = IsAtRest(record.phase);
  if (record.phase == SnapshotPhase::kCut || record.phase == SnapshotPhase::kProcessing) {
    record = After(record, {SnapshotEvent::kCancel});
    RETURN_IF_ERROR(Save({record}));
  } else if (is_at_rest && record.delete_asked) {
    if (Status free = parts_.volumes.PrepareDiscard(id, call); !free.ok()) {
      // What is refused is not carried out later, either, but for a group that goes already. What
      // nobody can tell is asked again.
      const bool is_refused = free.error().code() == Code::kFailedPrecondition;
      if (is_refused && !GroupRow(record.group)) RETURN_IF_ERROR(Save(AskDeletionNoMore({id})));
      return free;
    }
    record = After(record, {SnapshotEvent::kDelete});
    RETURN_IF_ERROR(Save({record}));
  }
  if (record.phase == SnapshotPhase::kReady) {
    return Error::NotApplied(Code::kAborted, "nobody asks for the end of snapshot " + id + " now");
  }
  RETURN_IF_ERROR(parts_.volumes.Discard(id, call));
  if (record.phase == SnapshotPhase::kCancelling) {
    record = After(record, {SnapshotEvent::kStopped});
    if (!record.delete_asked) return Save({record});
    record = After(record, {SnapshotEvent::kDelete});
  }
  return record.phase == SnapshotPhase::kDeleting ? Remove(record) : OkStatus();
}

std::vector<SnapshotRecord> SnapshotEngine::AskDeletionNoMore(
    const std::vector<std::string>& snapshots) {
  std::vector<SnapshotRecord> rows;
  const MutexLock lock(mu_);
  for (const std::string& id : snapshots) {
    const auto found = snapshots_.find(id);
    if (found == snapshots_.end()) continue;
    found->second.delete_asked = false;
    rows.push_back(found->second);
  }
  return rows;
}

// What was mounted then may be mounted no more, and cannot be frozen then.
Status SnapshotEngine::Thaw(const SnapshotRecord& record, const CallOptions& call) {
  {
    const MutexLock lock(mu_);
    if (!to_thaw_.contains(record.id)) return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::optional<CutWish::Mounted> mounted,
                   MountedForWriting(parts_.volumes, parts_.paths, parts_.devices, parts_.kernel,
                                     record.volume, call));
  if (mounted && !mounted->is_bind) {
    const ThawFilesystem thaw{{mounted->place, mounted->device_major, mounted->device_minor}};
    const Result<Changed> thawed = parts_.kernel.Call(thaw, call);
    const bool is_elsewhere = !thawed.ok() && (thawed.error().code() == Code::kNotFound ||
                                               thawed.error().code() == Code::kFailedPrecondition);
    if (!thawed.ok() && !is_elsewhere) return thawed.error();
    if (thawed.ok() && thawed->changed) {
      parts_.log.Warning("a filesystem was frozen by an earlier agent, and is thawed",
                         {{"volume", record.volume}, {"snapshot", record.id}});
    }
  }
  const MutexLock lock(mu_);
  to_thaw_.erase(record.id);
  return OkStatus();
}

}  // namespace volumed
