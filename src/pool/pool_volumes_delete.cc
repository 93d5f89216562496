// The end of volumes, and what a new agent does about what the one before it has begun.
#include <utility>

#include "base/printable_text.h"
#include "pool/pool_volumes_parts.h"
#include "pool/static_backend.h"

namespace volumed {
namespace {

constexpr size_t kShownHolder = 256;  // bytes of a node's id in a message

}  // namespace

// REQUIRES: the row says kDeleting.
Status PoolVolumes::FinishDelete(Held& held) {
  Status gone = held.backend->Discard(held.record, held.call);
  if (gone.ok()) gone = CheckGone(held.record.id, held.call);
  if (!gone.ok()) return gone.error().AsMaybeApplied();
  if (const Status removed = Advance(held.record, PoolVolumeEvent::kDone); !removed.ok()) {
    return removed.error().AsMaybeApplied();
  }
  TellChanged();
  return OkStatus();
}

// On a disk that was away for a moment nothing was found, and its files would have no row. If it is
// there now, it is seen what is left.
Status PoolVolumes::CheckGone(const std::string& id, const CallOptions& call) const {
  const PoolId parsed = ParsePoolId(id).value();
  const Pool* const pool = PoolOf(parsed);
  if (pool == nullptr || pool->opened() == nullptr) return WhyNotHere(id, parsed.object);
  RETURN_IF_ERROR(pool->CheckThere(call));
  const SafePath directory = pool->opened()->layout.ArtefactDir(parsed);
  ASSIGN_OR_RETURN(const FileInfo there, parts_.kernel.Call(Stat{directory}, call));
  if (there.type == FileType::kMissing) return OkStatus();
  return Error::MaybeApplied(Code::kUnavailable, directory.Display() +
                                                     " is still there: its pool was away for a "
                                                     "moment while it was deleted");
}

// A volume of this id may be about to get its row.
Status PoolVolumes::DeleteNothing(const std::string& id) {
  ASSIGN_OR_RETURN(const Taken taken, Take({id}));
  if (!FindRow(id)) return OkStatus();
  return Error::NotApplied(Code::kAborted, "volume " + id + " was just made");
}

Status PoolVolumes::Delete(const std::string& id, bool only_unused, const CallOptions& call) {
  if (IsLost(id)) ForgetIfMoved(id, call);
  const Status here = WhyNotHere(id);
  if (!here.ok() && here.error().code() == Code::kNotFound) return DeleteNothing(id);
  ASSIGN_OR_RETURN(Held held, HoldThere(id, call));
  if (IsListedStatic(held.record.name)) {
    return PoolRefusal("volume " + id + " is " + ShownSource(held.record) +
                       ", which is listed in the configuration: take it out there first; its "
                       "data is never deleted");
  }
  if (only_unused && held.record.used) {
    return PoolRefusal("volume " + id + " was used: its content may be somebody's");
  }
  if (!held.record.leases.empty()) {
    return PoolRefusal("volume " + id + " is published on node " +
                       Quoted(held.record.leases.front().node, kShownHolder));
  }
  RETURN_IF_ERROR(CheckNotCopied(id));
  RETURN_IF_ERROR(parts_.irreversible.Admit(IrreversibleStep::kDelete, held.record.name));
  const Status ready =
      held.backend->PrepareDiscard(ParsePoolId(id).value(), held.record.object, held.call);
  if (!ready.ok()) return ready.error().With("volume " + id);
  // From here on what was moved into the pool is deleted like any other volume. One that was never
  // ready is given back.
  const bool was_ready = CheckUsable(held.record).ok();
  if (was_ready && IsTree(held.record.backend)) held.record.source.clear();
  RETURN_IF_ERROR(Advance(held.record, PoolVolumeEvent::kDelete));
  return FinishDelete(held);
}

Status PoolVolumes::Recover(const IsUsed& is_used, const CallOptions& call) {
  Status first;
  for (const std::unique_ptr<Pool>& pool : pools_) {
    Status recovered = Recover(*pool, is_used, call);
    if (first.ok()) first = std::move(recovered);
  }
  return first;
}

Status PoolVolumes::Recover(Pool& pool, const IsUsed& is_used, const CallOptions& call) {
  RETURN_IF_ERROR(pool.Open(!parts_.irreversible.InDoubt(), InPool(call, pool)));
  RETURN_IF_ERROR(FindLost(pool, PoolObject::kVolume, call));
  RETURN_IF_ERROR(FindLost(pool, PoolObject::kCut, call));
  NoteLookedThrough(pool);
  const Status half_done = EndHalfDone(pool, call);
  const Status discarded = EndCuts(pool, call);
  const Status ended = EndDeletions(pool, call);
  Status closed = CloseUnused(pool, is_used, call);
  for (const Status* status : {&half_done, &discarded, &ended}) {
    if (!status->ok()) return *status;
  }
  return closed;
}

// One that lacks its tools keeps the volumes of the others from nothing.
Status PoolVolumes::EndHalfDone(const Pool& pool, const CallOptions& call) {
  Status first;
  for (const auto& [kind, backend] : pool.opened()->backends) {
    Status done = backend->EndHalfDone(InPool(call, pool));
    if (first.ok()) first = std::move(done);
  }
  return first;
}

// A volume whose record was lost, with a root that was made anew, is not one that there is not: who
// asks for its end, or for its name, would get the wrong answer, and what it was promised somebody
// else. So it is with a cut, of which somebody may know.
Status PoolVolumes::FindLost(Pool& pool, PoolObject object, const CallOptions& call) {
  const CallOptions in_pool = InPool(call, pool);
  const PoolLayout& layout = pool.opened()->layout;
  const bool is_cut = object == PoolObject::kCut;
  ASSIGN_OR_RETURN(
      const DirectoryListing listing,
      parts_.kernel.Call(ListDirectory{is_cut ? layout.Cuts() : layout.Volumes()}, in_pool));
  for (const DirectoryEntry& entry : listing.entries) {
    const std::optional<PoolId> id = ParsePoolId(entry.name);
    if (!id || id->object != object || id->pool_tag != pool.tag()) continue;
    // Whoever makes or deletes it has it, and it has a row as long as it has files.
    const Result<Taken> taken = Take({entry.name});
    if (!taken.ok() || MeaningOf(entry.name, object) == PoolIdMeaning::kHere) continue;
    ASSIGN_OR_RETURN(const FileInfo info,
                     parts_.kernel.Call(Stat{layout.ArtefactDir(*id)}, in_pool));
    if (info.type == FileType::kMissing) continue;
    RETURN_IF_ERROR(pool.NoteLost());
    const std::string place = layout.ArtefactDir(*id).Display();
    MutexLock lock(mu_);
    auto& unreadable = is_cut ? unreadable_cuts_ : unreadable_;
    const std::string reason =
        "it is lost, and its files are at " + place +
        ": put the records that had it back, if there is a copy of them; else move the files away, "
        "and there is no such " +
        (is_cut ? "cut" : "volume");
    if (!unreadable.emplace(entry.name, reason).second) continue;
    if (!is_cut) lost_.insert(entry.name);
    parts_.log.Warning(
        is_cut ? "a cut has files and no record: it is left as it is"
               : "a volume has files and no record: it is left as it is, and no volume is made in "
                 "any pool of this node, as its name may be the same, until its directory is "
                 "moved away",
        {{is_cut ? "cut" : "volume", entry.name}, {"path", place}});
  }
  return OkStatus();
}

void PoolVolumes::NoteLookedThrough(const Pool& pool) {
  MutexLock lock(mu_);
  looked_through_.insert(pool.name());
}

Status PoolVolumes::CheckLookedThrough(const Pool& pool) const {
  MutexLock lock(mu_);
  if (looked_through_.contains(pool.name())) return OkStatus();
  return Error::NotApplied(Code::kUnavailable,
                           "pool " + pool.name() + " is still looked through for lost volumes");
}

bool PoolVolumes::IsLost(const std::string& id) const {
  MutexLock lock(mu_);
  return lost_.contains(id);
}

bool PoolVolumes::ForgetIfMoved(const std::string& id, const CallOptions& call) {
  const std::optional<PoolId> parsed = ParsePoolId(id);
  const Pool* const pool = parsed ? PoolOf(*parsed) : nullptr;
  if (pool == nullptr || pool->opened() == nullptr) return false;
  const CallOptions in_pool = InPool(call, *pool, id);
  const Result<FileInfo> there =
      parts_.kernel.Call(Stat{pool->opened()->layout.ArtefactDir(*parsed)}, in_pool);
  if (!there.ok() || there->type != FileType::kMissing) return false;
  // Where the disk of the pool was there is nothing, either.
  if (!pool->CheckThere(in_pool).ok()) return false;
  {
    MutexLock lock(mu_);
    if (lost_.erase(id) == 0) return true;
    unreadable_.erase(id);
  }
  parts_.log.Info("the files of a volume without a record were moved away", {{"volume", id}});
  return true;
}

// For that nobody has to know more of it than where its file is. Who had it mounted could not be
// rid of it otherwise.
Status PoolVolumes::CloseLost(const std::string& id, const CallOptions& call) {
  ASSIGN_OR_RETURN(const Taken taken, Take({id}));
  const PoolId parsed = ParsePoolId(id).value();
  const Pool* const pool = PoolOf(parsed);
  if (pool == nullptr || pool->opened() == nullptr) return WhyNotHere(id);
  const CallOptions in_pool = InPool(call, *pool, id);
  RETURN_IF_ERROR(CheckClosable(*pool, in_pool));
  for (const auto& [kind, backend] : pool->opened()->backends) {
    RETURN_IF_ERROR(backend->Close(parsed, in_pool));
  }
  return OkStatus();
}

Status PoolVolumes::EndDeletions(const Pool& pool, const CallOptions& call) {
  std::vector<std::string> begun;
  {
    MutexLock lock(mu_);
    for (const auto& [id, record] : volumes_) {
      const bool is_deleting = record.state == PoolVolumeState::kDeleting;
      if (is_deleting && record.pool == pool.name()) begun.push_back(id);
    }
  }
  Status first;
  for (const std::string& id : begun) {
    Result<Held> held = HoldThere(id, call);
    // Somebody else is at it, or was.
    if (!held.ok()) continue;
    Status ended = parts_.irreversible.Admit(IrreversibleStep::kDelete, held->record.name);
    if (ended.ok()) ended = FinishDelete(*held);
    if (ended.ok()) continue;
    parts_.log.Warning("volume is not deleted yet", {{"volume", id}, {"error", ended.error()}});
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

Status PoolVolumes::CloseUnused(const Pool& pool, const IsUsed& is_used, const CallOptions& call) {
  Status first;
  for (const auto& [kind, backend] : pool.opened()->backends) {
    ASSIGN_OR_RETURN(const std::vector<PoolId> open, backend->ListOpen(InPool(call, pool)));
    for (const PoolId& id : open) {
      const Result<Held> held = HoldThere(id.ToString(), call);
      if (!held.ok()) {
        parts_.log.Warning("device of a volume is left as it is",
                           {{"volume", id.ToString()}, {"error", held.error()}});
        continue;
      }
      // Asked while nobody else can open it: whoever does says so before.
      if (is_used(id.ToString())) continue;
      Status closed = backend->Close(id, held->call);
      if (!closed.ok() && first.ok()) first = std::move(closed);
    }
  }
  return first;
}

}  // namespace volumed
